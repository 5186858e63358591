import { createHash, type Hash } from 'node:crypto'

/** The ETag of content: the hash of its bytes in quotes (SPEC.md, Files). */
export const etagOf = (hash: Hash): string => `"${hash.digest('hex')}"`

/** The hash in the ETag of content that was not uploaded in parts; that of parts is a hash of their hashes. */
export const hashIn = (etag: string): string | undefined => /^"([0-9a-f]{64})"$/.exec(etag)?.[1]

/** Has the length of every ETag: a change is counted before its content is known. */
export const UNKNOWN_ETAG = etagOf(createHash('sha256'))
