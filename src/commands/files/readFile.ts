import type { Readable } from 'node:stream'
import type { File } from '../../events/file.ts'
import type { CommandDeps } from '../deps.ts'

/**
 * Reads the content of a file, or a range of bytes (SPEC.md, Files). Rejects with `not_found` if the content was
 * replaced or deleted.
 */
export const readFile = (
  { blobs }: Pick<CommandDeps, 'blobs'>,
  { key }: Pick<File, 'key'>,
  range?: { from: number; to: number },
): Promise<Readable> => blobs.get(key, range)
