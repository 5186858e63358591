/** The revision of a tombstone: after every other; on the wire the largest 64-bit number. */
export const TOMBSTONE = Infinity
const LARGEST = String(2n ** 63n - 1n)

/** An event as it was sent. */
export interface Proposed {
  readonly id: string
  readonly type: string
  readonly contentType: string
  readonly data: Uint8Array
  readonly metadata: Uint8Array
}

/** An event of the log. */
export interface Stored extends Proposed {
  readonly stream: string
  /** From 0; `TOMBSTONE` for the event that ends a stream for ever. */
  readonly revision: number
  /** Commit and prepare position, which are the same: a place in bytes, so it rises with gaps. */
  readonly position: number
  /** Milliseconds since 1970. */
  readonly created: number
}

export const revisionText = (revision: number): string =>
  revision === TOMBSTONE ? LARGEST : String(revision)

export const metaStreamOf = (stream: string): string => `$$${stream}`

const utf8 = new TextEncoder()
const text = new TextDecoder()

export const bytesOf = (value: string): Uint8Array => utf8.encode(value)
export const textOf = (bytes: Uint8Array): string => text.decode(bytes)
