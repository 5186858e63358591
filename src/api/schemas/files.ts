import Type from 'typebox'
import { Timestamp, Uuid, nullable } from './parts.ts'

/** Files and their uploads. */

export const FileUpload = Type.Object({
  file_id: Uuid,
  path: Type.String(),
  size: Type.Integer({ description: 'Size in bytes' }),
  etag: Type.String({ description: 'ETag of the content, including the quotes' }),
  content_type: Type.String(),
  storage_backend: Type.String(),
  created_at: Timestamp,
  updated_at: Timestamp,
})

export const File = Type.Object({
  ...FileUpload.properties,
  created_by_run_id: nullable(Uuid),
  updated_by_run_id: nullable(Uuid),
})

export const UploadedPart = Type.Object({
  part_number: Type.Integer(),
  size: Type.Integer({ description: 'Size in bytes' }),
  etag: Type.String({ description: 'ETag of the part, including the quotes' }),
})

export const MultipartUpload = Type.Object({
  upload_id: Uuid,
  path: Type.String(),
  part_size: Type.Integer({ description: 'Recommended size in bytes of every part except the last' }),
  parts_expected: Type.Integer({ description: 'Expected number of parts; 1 without an `expected_size`' }),
  expires_at: Timestamp,
})

export const UploadUnderWay = Type.Object({
  ...MultipartUpload.properties,
  parts: Type.Array(UploadedPart),
})
