import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { clock, isoOf } from '../clock.ts'
import { AppError, isAppError } from '../errors.ts'
import { AHEAD_BYTES, type Reservation } from './fileQuota.ts'
import type { Payload } from '../events/payload.ts'
import { jsonBytes, RawJson, StoredJson } from '../events/rawJson.ts'
import { type Content, openSection, type Section } from './blobContent.ts'
import { openJson } from './jsonContent.ts'
import { LostBlob } from './lostBlob.ts'
import { values } from '../loops/slices.ts'
import { listBytes, parseList, sha256Of } from './jsonList.ts'
import type { PayloadRef } from '../events/scalars.ts'
import { newId } from '../ids.ts'
import { type Convert, openText } from './textContent.ts'
import type { Blobs } from '../ports/blobs.ts'

/** Maximum bytes of JSON inside a fact; larger payloads become blobs. */
const INLINE_BYTES = 64 << 10

const OPEN_ARRAY = 0x5b
const OPEN_OBJECT = 0x7b

/** Upper bound of the ratio of JSON bytes to `roughBytes`: a control character becomes six characters. */
const MOST_PER_ROUGH_BYTE = 6

/**
 * Maximum lists and objects inside a fact. Each needs 64 bytes of memory when it is parsed, so a page of facts with
 * more would need a multiple of its size.
 */
const INLINE_CONTAINERS = 2048

/** The keys of the payloads of an environment begin with this. */
export const payloadsOf = (env_id: string): string => `payloads/${env_id}/`

/** The keys of the payloads that an environment stored on one day in UTC begin with this. */
export const payloadFolder = (env_id: string, now: number): string =>
  `${payloadsOf(env_id)}${isoOf(now).slice(0, 10)}/`

/** The environment and the day in the key of a payload; null for other keys, and for those of early versions. */
export const placeOf = (key: string): { readonly env_id: string; readonly day: string } | null => {
  const [folder, env_id, day, name] = key.split('/')
  return folder === 'payloads' && env_id && day && name ? { env_id, day } : null
}

interface PayloadsOptions {
  /** Milliseconds since 1970. */
  readonly now?: () => number
  /** Whether the payload of a key was removed, because its retention period has ended or its environment was deleted. */
  readonly isExpired?: (key: string) => Promise<boolean>
}

export interface ChunkReads {
  readonly ref: PayloadRef
  /** Rejects instead of the last chunk if the payload is damaged; chunks in another order are not compared. */
  readonly read: (from: number, bytes: number) => Promise<Buffer>
}

/**
 * Keeps large payloads out of the log. A key contains the environment and the day, so that payloads can be removed with
 * their facts. Equal payloads of one environment and day share a blob. Reads reject with `not_found` for a payload that has expired,
 * and with `LostBlob` for any other that is missing.
 */
export class Payloads {
  readonly #blobs: Blobs
  readonly #now: () => number
  readonly #isExpired: (key: string) => Promise<boolean>
  /** The blobs, for what reads payloads only. */
  readonly #reading: Pick<Blobs, 'get'> = { get: (key, range) => this.#get(key, range) }

  constructor(blobs: Blobs, { now = clock.now, isExpired = async () => false }: PayloadsOptions = {}) {
    this.#blobs = blobs
    this.#now = now
    this.#isExpired = isExpired
  }

  /**
   * Stores a JSON value, as a blob if it is large: of an environment, or under a key whose owner removes it. The blob is
   * durable when this resolves. With `room`, a blob for which the plan has no room is refused and not stored.
   */
  async keep<Value>(
    value: Value,
    place: { readonly env_id: string } | { readonly key: string },
    room?: Reservation,
  ): Promise<Payload<Value>> {
    const surelySmall = INLINE_BYTES / MOST_PER_ROUGH_BYTE
    if (roughBytes(value, surelySmall) < surelySmall) return { value: inFact(value) }
    const bytes = jsonBytes(value)
    if (isSmall(bytes)) return { value: inFact(value) }
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    const key = 'key' in place ? place.key : `${payloadFolder(place.env_id, this.#now())}${sha256}.json`
    return { ref: await this.#put({ key, size: bytes.length, sha256 }, bytes, room) }
  }

  /** The same for a list of any length under the key for its SHA-256. Other work continues meanwhile. */
  async keepList<Element>(
    list: readonly Element[],
    keyOf: (sha256: string) => string,
    room?: Reservation,
  ): Promise<Payload<Element[]>> {
    const bytes = await listBytes(list)
    if (isSmall(bytes)) return { value: [...list] }
    const sha256 = await sha256Of(bytes)
    return { ref: await this.#put({ key: keyOf(sha256), size: bytes.length, sha256 }, bytes, room) }
  }

  async #put(ref: PayloadRef, bytes: Buffer, room?: Reservation): Promise<PayloadRef> {
    await room?.cover(bytes.length)
    await this.#blobs.put(ref.key, bytes)
    return ref
  }

  /** Stores bytes of unknown size as a blob, unless there are at most `inlineBytes`; these are returned. */
  async keepBytes(
    content: AsyncIterable<Buffer>,
    inlineBytes: number,
    { env_id }: { readonly env_id: string },
    room?: Reservation,
  ): Promise<Buffer | PayloadRef> {
    const chunks = content[Symbol.asyncIterator]()
    const first: Buffer[] = []
    let size = 0
    const hash = createHash('sha256')
    let arrived = 0
    const all = async function* (): AsyncGenerator<Buffer> {
      await room?.cover(size, AHEAD_BYTES)
      for (const chunk of first.splice(0)) yield hashed(chunk)
      for await (const chunk of { [Symbol.asyncIterator]: () => chunks }) {
        await room?.cover(arrived + chunk.length, AHEAD_BYTES)
        yield hashed(chunk)
      }
    }
    const hashed = (chunk: Buffer) => {
      arrived += chunk.length
      hash.update(chunk)
      return chunk
    }
    try {
      while (size <= inlineBytes) {
        const next = await chunks.next()
        if (next.done) return Buffer.concat(first)
        first.push(next.value)
        size += next.value.length
      }
      const key = `${payloadFolder(env_id, this.#now())}${newId()}.bin`
      const stored = await this.#blobs.put(key, all())
      return { key, size: stored.size, sha256: hash.digest('hex') }
    } finally {
      await chunks.return?.() // a refused put may have read nothing, and the content has memory until it is closed
    }
  }

  /** Removes bytes that no fact references. */
  discard({ key }: PayloadRef): Promise<void> {
    return this.#blobs.remove(key)
  }

  /** Reads a payload in the blobs in chunks, one after the other from its begin. */
  inChunks(ref: PayloadRef): ChunkReads {
    const { key, size, sha256 } = ref
    let hash = createHash('sha256')
    let at = 0
    const read = async (from: number, bytes: number): Promise<Buffer> => {
      const wanted = Math.min(bytes, size - from)
      if (wanted <= 0) return Buffer.alloc(0)
      const chunk = await this.#bytes({ key, from, bytes: wanted })
      if (from === 0) [hash, at] = [createHash('sha256'), 0]
      if (from !== at) return chunk
      hash.update(chunk)
      at += chunk.length
      if (at === size && hash.digest('hex') !== sha256)
        throw new LostBlob(`The blob ${key} is damaged: its bytes have changed`)
      return chunk
    }
    return { ref, read }
  }

  /** Returns a payload that remains in the blobs if it is large. */
  stored({ value, ref }: Payload): unknown {
    return ref ? new StoredJson(ref) : (value ?? null)
  }

  /** Converts a value to JSON that is read from the blobs while it is sent. */
  openJson(value: unknown): Promise<Content> {
    return openJson(this.#reading, value)
  }

  /** Opens a text in the blobs, which is read while it is sent; any other value is its JSON. */
  openText(stored: StoredJson, convert: Convert): ReturnType<typeof openText> {
    return openText(this.#reading, stored, convert)
  }

  /** Loads the fields of an object; large ones remain text. */
  async loadLoosely({ value, ref }: Payload): Promise<unknown> {
    if (!ref) return value ?? null
    const whole = new RawJson(await this.#bytes({ key: ref.key, bytes: ref.size }))
    return values.complete(whole.looseSteps())
  }

  /** Reads the fields of an object in the blobs; large ones remain there. Any other value remains there as a whole. */
  async fieldsOf(stored: StoredJson): Promise<unknown> {
    const { key, from, to } = stored
    const whole = new RawJson(await this.#bytes({ key, from, bytes: to - from }))
    const loose = await values.complete(whole.looseSteps())
    if (loose === whole) return stored
    return Object.fromEntries(
      Object.entries(loose as object).map(([name, value]) => {
        if (!(value instanceof RawJson) || value.bytes.buffer !== whole.bytes.buffer) return [name, value]
        const at = from + value.bytes.byteOffset - whole.bytes.byteOffset
        return [name, new StoredJson({ key, size: to }, at, at + value.bytes.length)]
      }),
    )
  }

  /** Rejects for a payload that is damaged: a changed byte could be another value. */
  async load({ value, ref }: Payload): Promise<unknown> {
    if (!ref) return value ?? null
    const bytes = await buffer(await this.#get(ref.key))
    const damage = damageOf(ref, bytes, createHash('sha256').update(bytes).digest('hex'))
    if (damage !== null) throw new LostBlob(damage)
    return JSON.parse(bytes.toString())
  }

  /** Rejects as a read would if the payload is missing or shorter or longer than it was. */
  async demandStored({ key, size }: PayloadRef): Promise<void> {
    const found = await this.#blobs.head(key)
    if (!found) throw await this.#missing(key)
    if (found.size !== size)
      throw new LostBlob(`The blob ${key} is damaged: expected ${size} bytes, got ${found.size}`)
  }

  /**
   * Loads a list of any length, while other work continues. Its errors for a damaged or missing list are not retryable, because
   * nothing waits for the list of functions of a build (decision 0072).
   */
  async loadList(ref: PayloadRef): Promise<unknown[]> {
    const bytes = await buffer(await this.#blobs.get(ref.key))
    const damage = damageOf(ref, bytes, await sha256Of(bytes))
    if (damage !== null) throw new AppError('internal_server_error', damage)
    return parseList(bytes)
  }

  /** Rejects with `LostBlob` if the blob is shorter or longer than it was. */
  async #bytes(section: Section): Promise<Buffer> {
    return buffer((await openSection(this.#reading, section)).chunks)
  }

  async #get(key: string, range?: { from: number; to?: number }): Promise<Readable> {
    try {
      return await this.#blobs.get(key, range)
    } catch (error) {
      throw isAppError(error, 'not_found') ? await this.#missing(key, error) : error
    }
  }

  async #missing(key: string, cause?: unknown): Promise<AppError> {
    return (await this.#isExpired(key))
      ? new AppError('not_found', 'The retention period of the value has ended', { cause })
      : new LostBlob(`The blob ${key} is missing`, cause)
  }
}

/** What is wrong with the bytes of a payload; null: nothing. */
const damageOf = ({ key, size, sha256 }: PayloadRef, bytes: Buffer, found: string): string | null =>
  found === sha256
    ? null
    : `The blob ${key} is damaged: expected ${size} bytes with the SHA-256 ${sha256}, got ${bytes.length} other bytes`

/** A small value without text of JSON, which no fact contains: a large text can have become small by masking. */
const inFact = <Value>(value: Value): Value =>
  hasRawJson(value) ? (JSON.parse(jsonBytes(value).toString()) as Value) : value

const hasRawJson = (value: unknown): boolean => {
  if (typeof value !== 'object' || value === null) return false
  if (value instanceof RawJson) return true
  for (const key in value) if (hasRawJson((value as Record<string, unknown>)[key])) return true
  return false
}

/** Whether JSON may be inside a fact. */
const isSmall = (bytes: Buffer): boolean => bytes.length <= INLINE_BYTES && !hasManyContainers(bytes)

/** Counts opening brackets, also those in texts. */
const hasManyContainers = (json: Buffer): boolean => {
  let containers = 0
  for (const byte of json)
    if ((byte === OPEN_ARRAY || byte === OPEN_OBJECT) && ++containers > INLINE_CONTAINERS) return true
  return false
}

/** Estimates the bytes of a value's JSON; stops counting at `limit`. */
export const roughBytes = (value: unknown, limit: number): number => {
  let bytes = 0
  const visit = (part: unknown): void => {
    if (bytes >= limit) return
    if (typeof part === 'string') bytes += part.length + 2
    else if (typeof part !== 'object' || part === null) bytes += 8
    else if (part instanceof RawJson) bytes += part.bytes.length
    else {
      bytes += 2
      for (const key in part) {
        if (bytes >= limit) return
        bytes += key.length + 4
        visit((part as Record<string, unknown>)[key])
      }
    }
  }
  visit(value)
  return bytes
}
