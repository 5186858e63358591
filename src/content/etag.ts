import { createHash, type Hash } from 'node:crypto'

/** The ETag of content: the hash of its bytes in quotes (SPEC.md, Files). */
export const etagOf = (hash: Hash): string => `"${hash.digest('hex')}"`

/** Has the length of every ETag: a change is counted before its content is known. */
export const UNKNOWN_ETAG = etagOf(createHash('sha256'))
