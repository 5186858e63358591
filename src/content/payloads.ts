import { createHash } from 'node:crypto'
import { text } from 'node:stream/consumers'
import type { PayloadRef } from '../events/scalars.ts'
import type { Blobs } from '../ports/blobs.ts'

/** A JSON payload of a fact: in the fact itself, or in the blobs when it is large. */
export interface Payload {
  readonly value?: unknown
  readonly ref?: PayloadRef
}

/** Bytes of JSON that a fact carries itself. */
const INLINE_BYTES = 64 << 10

/** JSON is at most this many times as long as `roughBytes` says: a control character is written with six. */
const MOST_PER_ROUGH_BYTE = 6

/** Keeps large payloads out of the log: stored under their hash, so the same bytes lie there once. */
export class Payloads {
  readonly #blobs: Blobs

  constructor(blobs: Blobs) {
    this.#blobs = blobs
  }

  /** `value` must be JSON. Durable when it resolves. */
  async keep(value: unknown): Promise<Payload> {
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

/** About how many bytes the JSON of a value has; stops counting at `limit`. */
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
