import { createHash } from 'node:crypto'
import { text } from 'node:stream/consumers'
import type { Payload } from '../events/payload.ts'
import type { Blobs } from '../ports/blobs.ts'

/** Maximum bytes of JSON inside a fact; larger payloads become blobs. */
const INLINE_BYTES = 64 << 10

/** Upper bound of the ratio of JSON bytes to `roughBytes`: a control character becomes six characters. */
const MOST_PER_ROUGH_BYTE = 6

/** Keeps large payloads out of the log. A blob's key is the hash of its bytes, so equal payloads share one blob. */
export class Payloads {
  readonly #blobs: Blobs

  constructor(blobs: Blobs) {
    this.#blobs = blobs
  }

  /** Stores a JSON value, as a blob if it is large. The blob is durable when this resolves. */
  async keep<Value>(value: Value): Promise<Payload<Value>> {
    const surelySmall = INLINE_BYTES / MOST_PER_ROUGH_BYTE
    if (roughBytes(value, surelySmall) < surelySmall) return { value }
    const bytes = Buffer.from(JSON.stringify(value))
    if (bytes.length <= INLINE_BYTES) return { value }
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    const key = `payloads/${sha256.slice(0, 2)}/${sha256}.json`
    await this.#blobs.put(key, bytes)
    return { ref: { key, size: bytes.length, sha256 } }
  }

  async load({ value, ref }: Payload): Promise<unknown> {
    return ref ? JSON.parse(await text(await this.#blobs.get(ref.key))) : (value ?? null)
  }
}

/** Estimates the bytes of a value's JSON; stops counting at `limit`. */
const roughBytes = (value: unknown, limit: number): number => {
  let bytes = 0
  const visit = (part: unknown): void => {
    if (bytes >= limit) return
    if (typeof part === 'string') bytes += part.length + 2
    else if (typeof part !== 'object' || part === null) bytes += 8
    else {
      bytes += 2
      for (const key in part) {
        bytes += key.length + 4
        visit((part as Record<string, unknown>)[key])
      }
    }
  }
  visit(value)
  return bytes
}
