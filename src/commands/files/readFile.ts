import { openSection } from '../../content/blobContent.ts'
import type { Content } from '../../content/blobContent.ts'
import type { File } from '../../events/file.ts'
import type { CommandDeps } from '../deps.ts'

/**
 * Opens the content of a file, or a range of bytes (SPEC.md, Files). Rejects with `not_found` if the content was
 * replaced or deleted. Reading damaged content fails with `unavailable`.
 */
export const readFile = (
  { blobs }: Pick<CommandDeps, 'blobs'>,
  { key, size }: Pick<File, 'key' | 'size'>,
  range?: { from: number; to: number },
): Promise<Content> =>
  openSection(
    blobs,
    range ? { key, from: range.from, bytes: range.to - range.from + 1 } : { key, bytes: size },
  )
