import { Agent, request } from 'node:https'
import type { axios } from 'acme-client'
import { clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { kindOf, type Problem, problemOf, refusalOf } from './problem.ts'

/** The time for one request. */
const TIMEOUT_MS = 30_000
/** Longer replies are refused: a chain has some KiB. */
const MAX_BYTES = 1 << 20

export type Send = Extract<typeof axios.defaults.adapter, (...args: never) => unknown>
type Reply = Awaited<ReturnType<Send>>

/** Headers of a reply; `axios` reads them in lower case. */
interface Received {
  readonly status: number
  readonly headers: Reply['headers']
  readonly text: string
}

/**
 * Sends the requests of `acme-client` over TLS. Its own transport waits as long as a reply asks for, and loses the type of
 * an error: here, every error is `unavailable` with a message for the owner of the domain. `ca`: PEM, in addition to none
 * of the usual roots; undefined for those.
 */
export const openTransport = (ca: string | undefined, onUnreachable: (error: unknown) => void): Send => {
  const agent = new Agent({ keepAlive: true, timeout: TIMEOUT_MS, ...(ca !== undefined && { ca }) })
  return async (config) => {
    const { method = 'get', url = '', data } = config
    const body = data === undefined ? undefined : String(data)
    let received: Received
    try {
      received = await send(agent, { method, url, body, headers: Object.entries(config.headers) })
    } catch (error) {
      onUnreachable(error)
      throw new AppError('unavailable', 'The certificate authority could not be reached', { cause: error })
    }
    const { status, headers, text } = received
    if (status >= 400) {
      const problem = problemIn(text)
      const kind = kindOf(problem)
      if (kind !== 'badNonce')
        // which the client answers by a repetition
        throw new AppError('unavailable', refusalOf(problem), {
          data: { kind, retryAfter: secondsIn(headers['retry-after']) },
        })
    }
    return { data: text, status, statusText: '', headers, config }
  }
}

/** Longer waits are none that an authority means. */
const MAX_SECONDS = 366 * 24 * 3600

/** The seconds in a header `Retry-After`, which has a number of them or a date; undefined if it has neither. */
const secondsIn = (header: unknown): number | undefined => {
  const text = typeof header === 'string' ? header.trim() : ''
  const seconds = /^\d+$/.test(text) ? Number(text) : Math.ceil((Date.parse(text) - clock.now()) / 1000)
  return seconds > 0 && seconds <= MAX_SECONDS ? seconds : undefined
}

const problemIn = (text: string): Problem => {
  try {
    return problemOf(JSON.parse(text))
  } catch {
    return {}
  }
}

interface Sent {
  readonly method: string
  readonly url: string
  readonly body: string | undefined
  readonly headers: readonly (readonly [string, unknown])[]
}

const send = (agent: Agent, { method, url, body, headers }: Sent): Promise<Received> =>
  new Promise((resolve, reject) => {
    const named = headers.flatMap(([name, value]) =>
      typeof value === 'string' ? [[name, value] as const] : [],
    )
    const length = body === undefined ? [] : [['Content-Length', String(Buffer.byteLength(body))] as const]
    const options = {
      agent,
      method: method.toUpperCase(),
      headers: Object.fromEntries([...named, ...length]),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    }
    const sent = request(url, options, (reply) => {
      const chunks: Buffer[] = []
      let bytes = 0
      reply.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes > MAX_BYTES) reply.destroy(new Error(`The reply has more than ${MAX_BYTES} bytes`))
        chunks.push(chunk)
      })
      reply.on('error', reject)
      reply.on('end', () =>
        resolve({
          status: reply.statusCode ?? 0,
          headers: reply.headers as Reply['headers'],
          text: Buffer.concat(chunks).toString('utf8'),
        }),
      )
    })
    sent.on('error', reject)
    sent.end(body)
  })
