import { type Content, openSection } from '../../content/blobContent.ts'
import { hashIn } from '../../content/etag.ts'
import type { File } from '../../events/file.ts'
import type { CommandDeps } from '../deps.ts'

/**
 * Opens the content of a file, or a range of bytes (SPEC.md, Files). Rejects with `not_found` if the content was
 * replaced or deleted. Reading damaged content fails with `unavailable`.
 */
export const readFile = (
  { blobs }: Pick<CommandDeps, 'blobs'>,
  { key, size, etag }: Pick<File, 'key' | 'size' | 'etag'>,
  range?: { from: number; to: number },
): Promise<Content> => {
  if (range && (range.from > 0 || range.to < size - 1))
    return openSection(blobs, { key, from: range.from, bytes: range.to - range.from + 1 })
  const sha256 = hashIn(etag)
  return openSection(blobs, { key, bytes: size, ...(sha256 !== undefined && { sha256 }) })
}
