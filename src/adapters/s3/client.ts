import { Agent as HttpAgent, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { S3Client, S3Errors } from '@bradenmacdonald/s3-lite-client'
import { clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { Backoff } from '../../loops/backoff.ts'
import { withDeadline } from '../../loops/deadline.ts'
import type { Address } from './address.ts'
import { bytesOf, exchange, SILENCE_MS } from './exchange.ts'
import { demandRoot, mayPass } from './failures.ts'
import { textOf } from './xml.ts'

const MAX_TRIES = 4
const PAUSES = { firstMs: 100, longestMs: 1600, factor: 4 }
/** No attempt begins later than this after the first, so that a caller does not wait for several timeouts. */
const RETRY_WITHIN_MS = SILENCE_MS / 2
/** S3 answers reads at once, but the completion of a large upload takes longer. */
const CONTROL_MS = { POST: 30_000, GET: SILENCE_MS } as const

const SIGNED_FOR_S = 900

/**
 * The last character of every object name. Without it, `a` and `a/b` would be a file and a folder of one name on
 * servers that store objects as files. No key contains it, and it sorts first, so names sort like their keys.
 */
const END = ','

/** Content of a known size. A body that cannot be read again is sent once, on a new connection. */
export interface Body {
  readonly size: number
  readonly repeatable: boolean
  open(): AsyncIterable<Uint8Array> | Iterable<Uint8Array>
}

const SLICE_BYTES = 64 << 10

/** Bytes in memory. They are sent in slices, so that a stalled connection is noticed. */
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
  readonly headers?: Record<string, string | number> | undefined
  readonly body?: Body
}

/**
 * Requests to one bucket, signed by the library. Requests for one object use `exchange`, which streams in both
 * directions and can be aborted. Uploads and lists use the library, which can do neither.
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

  /** Returns the response with its body unread. Rejects with the library's `ServerError` for a status from 300. */
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
        agent: repeatable && this.#agent, // S3 may be closing a kept-alive connection at this moment
      })
      const status = response.statusCode ?? 0
      if (status >= 300) throw serverError(status, await textIn(response))
      return response
    })
  }

  /** Sends a request and returns the response after its body was discarded. */
  async sendForHeaders(request: ObjectRequest): Promise<IncomingMessage> {
    const response = await this.send(request)
    await textIn(response)
    return response
  }

  /**
   * Sends a request about the bucket or an upload and returns the XML of the response. `root`: its outermost element; a failure
   * that S3 reports with status 200 is repeated like any other.
   */
  async control(
    method: 'GET' | 'POST',
    query: Record<string, string>,
    {
      key,
      payload,
      root,
      onRetry,
    }: { key?: string; payload?: string; root?: string; onRetry?: () => void } = {},
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
      const xml = await answerOf(CONTROL_MS[method], answering)
      if (root !== undefined) demandRoot(xml, root)
      return xml
    })
  }

  /** Returns the prefix of the object names whose keys begin with `keyPrefix`. */
  namePrefixOf(keyPrefix: string): string {
    return this.#prefix + keyPrefix
  }

  /** Returns the key of an object name; null for an object that svc did not store. */
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

/** A response to HEAD has no body and therefore no error code. */
const serverError = (status: number, xml: string): Error =>
  new S3Errors.ServerError(
    status,
    textOf(xml, 'Code') ?? `status ${status}`,
    textOf(xml, 'Message') ?? 'no reason given',
  )

/** Limits the wait for a request of the library, which cannot be cancelled and ends by its own timeouts. */
const answerOf = <T>(ms: number, answer: Promise<T>): Promise<T> =>
  withDeadline(ms, answer, () => new AppError('unavailable', `S3 did not answer within ${ms / 1000} s`))
