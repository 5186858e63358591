import Type, { type Static } from 'typebox'
import { fact, Id, Name, record, Text, Time } from './scalars.ts'

const upload = {
  upload_id: Id,
  path: Name,
  content_type: Text,
  /** The key of the complete content, and the id of its upload in the blobs. */
  key: Type.String(),
  blob_upload_id: Type.String(),
  /** Bytes of the complete content, if the client announced them. */
  expected_size: Type.Optional(Type.Integer()),
  part_size: Type.Integer(),
  parts_expected: Type.Integer(),
  /** The run that uploads; null for a client. */
  by_run_id: Type.Union([Id, Type.Null()]),
  expires_at: Time,
}

const Upload = record(upload)
/** The part of an upload that never changes. */
export type Upload = Static<typeof Upload>

export const UploadBegun = fact('UploadBegun', { ...upload })

const part = {
  part_number: Type.Integer(),
  /** Bytes. */
  size: Type.Integer(),
  /** With its quotes. */
  etag: Text,
  /** The id of the part in the blobs. */
  blob_etag: Type.String(),
}

const Part = record(part)
export type Part = Static<typeof Part>

/** The part is stored and replaces an earlier one with the same number. */
export const PartUploaded = fact('PartUploaded', {
  upload_id: Id,
  ...part,
  /** Bytes of the earlier part, if there was one. */
  replaced_size: Type.Optional(Type.Integer()),
})

/** The parts were joined. From now on the upload cannot be cancelled, and its content becomes a file. */
export const UploadJoined = fact('UploadJoined', {
  upload_id: Id,
  /** The number of the last part that was joined; absent in facts of earlier versions. A later one may have arrived meanwhile. */
  parts: Type.Optional(Type.Integer()),
  /** The revision of the last part among them; absent in facts of earlier versions. A later one may have replaced a joined one. */
  parts_revision: Type.Optional(Type.Integer()),
})

/** The joined parts are a file. */
export const UploadCompleted = fact('UploadCompleted', { upload_id: Id })

/** The upload was cancelled or expired, and its parts are removed. */
export const UploadAborted = fact('UploadAborted', {
  upload_id: Id,
  reason: Type.Union([Type.Literal('asked'), Type.Literal('expired')]),
})
