import Type, { type Static } from 'typebox'
import { fact, Id, Name, record, Text, Time } from './scalars.ts'

const RunId = Type.Union([Id, Type.Null()])

/** The current state of a file. Its content is in the blobs under `key`, and no other content ever has this key. */
const file = {
  file_id: Id,
  path: Name,
  key: Type.String(),
  /** Bytes. */
  size: Type.Integer(),
  /** With its quotes. */
  etag: Text,
  content_type: Text,
  storage_backend: Text,
  /** The run that wrote the file; null for a client. */
  created_by_run_id: RunId,
  updated_by_run_id: RunId,
  created_at: Time,
  updated_at: Time,
}

/** The former content of a file: it is not read and does not count. */
const Former = record({ key: Type.String(), size: Type.Integer() })

/** A file was created, or the file at the path got new content; `replaced` is the old content. */
export const FileStored = fact('FileStored', { ...file, replaced: Type.Optional(Former) })

export const FileDeleted = fact('FileDeleted', { file_id: Id, path: Name, former: Former })

const File = record(file)
export type File = Static<typeof File>
