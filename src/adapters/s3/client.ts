import { Agent as HttpAgent, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { S3Client, S3Errors } from '@bradenmacdonald/s3-lite-client'
import { clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { Backoff } from '../../loops/backoff.ts'
import { withDeadline } from '../../loops/deadline.ts'
import type { Address } from './address.ts'
import { bytesOf, exchange, SILENCE_MS } from './exchange.ts'
import { mayPass } from './failures.ts'
import { textOf } from './xml.ts'

const MAX_TRIES = 4
const PAUSES = { firstMs: 100, longestMs: 1600, factor: 4 }
/** No further try begins this long after the first, so that nobody waits for one silence after the other. */
const RETRY_WITHIN_MS = SILENCE_MS / 2
/** S3 says at once whether it can, but puts large uploads together before it says it did. */
const CONTROL_MS = { POST: 30_000, GET: SILENCE_MS } as const

const SIGNED_FOR_S = 900

/**
 * Ends the name of every blob in the bucket. No key contains it, so `a` and `a/b` are not a file and a folder of one
 * name, which S3 on files does not list; and it sorts before all that keys contain, so names sort as their keys.
 */
const END = ','

/** Content of a known size. What cannot be read again is tried once, on a connection of its own. */
export interface Body {
  readonly size: number
  readonly repeatable: boolean
  open(): AsyncIterable<Uint8Array> | Iterable<Uint8Array>
}

const SLICE_BYTES = 64 << 10

/** Bytes in memory, sent in slices, so that it shows whether S3 takes them. */
export const bodyOf = (bytes: Uint8Array): Body => ({
  size: bytes.length,
  repeatable: true,
  *open() {
    for (let at = 0; at < bytes.length; at += SLICE_BYTES) yield bytes.subarray(at, at + SLICE_BYTES)
  },
})

interface ObjectRequest {
  readonly method: 'GET' | 'PUT' | 'HEAD' | 'DELETE'
  readonly key: string
  readonly query?: Record<string, string>
  readonly headers?: Record<string, string | number>
  readonly body?: Body
}

/**
 * Requests to one bucket. The library signs; what concerns one object goes over an exchange of ours, which streams both
 * ways and can be broken off. What concerns uploads and lists goes through the library, which can neither.
 */
export class Client {
  readonly #library: S3Client
  readonly #agent: HttpAgent
  readonly #prefix: string

  constructor({ endPoint, accessKey, secretKey, region, bucket, prefix }: Address) {
    this.#library = new S3Client({ endPoint, accessKey, secretKey, region, bucket, pathStyle: true })
    this.#agent = endPoint.startsWith('https:')
      ? new HttpsAgent({ keepAlive: true })
      : new HttpAgent({ keepAlive: true })
    this.#prefix = prefix
  }

  /** The answer, its body still to be read. Rejects with the library's `ServerError` from status 400 on. */
  async send({ method, key, query, headers, body }: ObjectRequest): Promise<IncomingMessage> {
    const repeatable = body?.repeatable ?? true
    return this.#patiently(repeatable, async () => {
      const url = await this.#library.getPresignedUrl(method, this.#nameOf(key), {
        expirySeconds: SIGNED_FOR_S,
        ...(query && { parameters: query }),
      })
      const response = await exchange(url, {
        method,
        headers: { ...headers, ...(body && { 'content-length': body.size }) },
        ...(body && { body: body.open() }),
        agent: repeatable && this.#agent, // one kept alive may be closed by S3 just now
      })
      const status = response.statusCode ?? 0
      if (status >= 300) throw serverError(status, await textIn(response))
      return response
    })
  }

  /** As `send`, for what answers nothing but headers. */
  async tell(request: ObjectRequest): Promise<IncomingMessage> {
    const response = await this.send(request)
    await textIn(response)
    return response
  }

  /** One request about the bucket or an upload; answers its XML. */
  async control(
    method: 'GET' | 'POST',
    query: Record<string, string>,
    { key, payload, onRetry }: { key?: string; payload?: string; onRetry?: () => void } = {},
  ): Promise<string> {
    let tries = 0
    return this.#patiently(true, async () => {
      if (tries++ > 0) onRetry?.()
      const options = {
        method,
        query,
        objectName: key === undefined ? '' : this.#nameOf(key),
        returnBody: true,
      }
      const answering = this.#library
        .makeRequest({ ...options, ...(payload !== undefined && { payload }) })
        .then((response) => response.text())
      return answerOf(CONTROL_MS[method], answering)
    })
  }

  /** What the names of keys that begin so begin with. */
  namePrefixOf(keyPrefix: string): string {
    return this.#prefix + keyPrefix
  }

  /** The key of a name in the bucket, null for what is not ours. */
  keyOf(name: string): string | null {
    return name.startsWith(this.#prefix) && name.endsWith(END)
      ? name.slice(this.#prefix.length, -END.length)
      : null
  }

  close(): void {
    this.#agent.destroy()
  }

  #nameOf(key: string): string {
    return this.#prefix + key + END
  }

  async #patiently<T>(repeatable: boolean, attempt: () => Promise<T>): Promise<T> {
    const began = clock.monotonic()
    const backoff = new Backoff(PAUSES)
    for (let tries = 1; ; tries++) {
      try {
        return await attempt()
      } catch (error) {
        const late = clock.monotonic() - began > RETRY_WITHIN_MS
        if (!repeatable || tries === MAX_TRIES || late || !mayPass(error)) throw error
      }
      await backoff.pause()
    }
  }
}

const MAX_TEXT_BYTES = 1 << 20

const textIn = async (response: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of bytesOf(response)) {
    if ((bytes += chunk.length) > MAX_TEXT_BYTES) break
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

/** HEAD has no body to tell a code in. */
const serverError = (status: number, xml: string): Error =>
  new S3Errors.ServerError(
    status,
    textOf(xml, 'Code') ?? `status ${status}`,
    textOf(xml, 'Message') ?? 'no reason told',
  )

/** A request of the library cannot be cancelled: one that takes too long is left to its own timeouts. */
const answerOf = <T>(ms: number, answer: Promise<T>): Promise<T> =>
  withDeadline(ms, answer, () => new AppError('unavailable', `S3 did not answer within ${ms / 1000} s`))
