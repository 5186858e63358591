import Type, { type Static } from 'typebox'
import { fact, Id, record, Time } from './scalars.ts'

const upload = {
  upload_id: Id,
  path: Type.String(),
  content_type: Type.String(),
  /** Where the whole will lie, and what the blobs call the upload of it. */
  key: Type.String(),
  blob_upload_id: Type.String(),
  /** Bytes of the whole, if the client said so. */
  expected_size: Type.Optional(Type.Integer()),
  part_size: Type.Integer(),
  parts_expected: Type.Integer(),
  /** The run whose code uploads; null: a client does. */
  by_run_id: Type.Union([Id, Type.Null()]),
  expires_at: Time,
}

const Upload = record(upload)
/** What stays the same through the life of an upload in parts. */
export type Upload = Static<typeof Upload>

export const UploadBegun = fact('UploadBegun', { ...upload })

const part = {
  part_number: Type.Integer(),
  /** Bytes. */
  size: Type.Integer(),
  /** With its quotes. */
  etag: Type.String(),
  /** What the blobs know the part by. */
  blob_etag: Type.String(),
}

const Part = record(part)
export type Part = Static<typeof Part>

/** The part is stored; one of the same number before it no longer is. */
export const PartUploaded = fact('PartUploaded', { upload_id: Id, ...part })

/** The parts are a file now. */
export const UploadCompleted = fact('UploadCompleted', { upload_id: Id })

/** Nobody will complete it: what there is of it is removed. */
export const UploadAborted = fact('UploadAborted', {
  upload_id: Id,
  reason: Type.Union([Type.Literal('asked'), Type.Literal('expired')]),
})
