import { AppError, isAppError, messageOf } from '../errors.ts'
import { onOneLine } from '../logger.ts'
import { operatorTokenIn } from '../process/secretsFile.ts'
import { type Connection, connectionHere, localConfig, tokenOf } from './connection.ts'
import { WrongUsage } from './wrongUsage.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
type Query = Readonly<Record<string, string | number | boolean | undefined>>

interface Request {
  readonly query?: Query
  /** Sent as JSON. */
  readonly body?: unknown
  /** Sent as it is, instead of a body. */
  readonly content?: AsyncIterable<Uint8Array>
  readonly headers?: Readonly<Record<string, string>>
}

/** The HTTP API of a running service, with one credential. */
export interface Client {
  readonly url: string
  readonly token: string
  /** Resolves with `data` of the reply. Rejects with the error of the service, or with `unavailable`. */
  request<T>(method: Method, path: string, request?: Request): Promise<T>
  /** Reads all pages of a list, in the order of the list. */
  all<T>(path: string, query?: Query): AsyncGenerator<T, void, undefined>
  /** Sends bytes. Resolves and rejects as `request` does. */
  upload<T>(path: string, content: AsyncIterable<Uint8Array>, headers: Request['headers']): Promise<T>
  /** Resolves with a reply that is not JSON, such as a stream or a download. Rejects as `request` does. */
  open(method: Method, path: string, request?: Request): Promise<Response>
}

interface Asked {
  readonly url: string
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
  /** The time on the clock of the service, milliseconds since 1970; NaN if the reply has none. */
  readonly date: number
}

/** Items of one request of a list: the largest page of the API. */
const PAGE = 100

/** Time for a reply that a service has at hand, milliseconds: a stopped process accepts connections and never replies. */
const REPLY_MS = 10_000

/** Encodes the values of a path, so that a name cannot become another path. */
export const path = (texts: TemplateStringsArray, ...values: readonly string[]): string =>
  String.raw({ raw: texts }, ...values.map(segmentOf))

const segmentOf = (value: string): string => {
  if (['', '.', '..'].includes(value)) throw new WrongUsage(`expected a name or an id, got "${value}"`)
  return encodeURIComponent(value)
}

/** The token of the environment, else the one that a service in the same directory uses. */
const operatorConnection = (): Connection => {
  const config = localConfig()
  const found = config.operatorToken ?? operatorTokenIn(config.dataDir, config.masterKey)
  const key = tokenOf('SVC_OPERATOR_TOKEN', 'operator token', config, found)
  return { url: config.url, key, what: 'operator token', fix: 'set SVC_OPERATOR_TOKEN', project: null }
}

/** The API of the operator. */
export const connectOperator = (signal: AbortSignal): Client => connect(operatorConnection(), signal)

/** The API of an environment. */
export const connectEnvironment = (signal: AbortSignal, profile?: string): Client =>
  connect(connectionHere(profile), signal)

const connect = ({ url, key: token, what, fix }: Connection, signal: AbortSignal): Client => {
  const open = async (method: Method, target: string, request: Request = {}): Promise<Response> => {
    const { query = {}, body, content, headers } = request
    const sent = fetch(url + target + queryOf(query), {
      method,
      signal,
      redirect: 'manual', // a redirected POST would become a GET
      headers: {
        authorization: `Bearer ${token}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(content && { 'content-type': 'application/octet-stream' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(content && { body: ReadableStream.from(content), duplex: 'half' }),
    })
    const response = await answer(sent, url, signal)
    if (response.ok) return response
    if (response.status === 401) throw new AppError('unauthorized', `${url} refused the ${what}; ${fix}`)
    throw refusalOf(url, response, await textOf(response))
  }
  const textOf = (response: Response): Promise<string> => wholeReply(response.text(), url, signal)
  const dataIn = async (response: Response): Promise<Partial<Envelope>> =>
    response.status === 204 ? { data: null } : dataOf(url, await textOf(response))
  const request = async <T>(method: Method, target: string, given?: Request): Promise<T> =>
    (await dataIn(await open(method, target, given))).data as T
  return {
    url,
    token,
    open,
    request,
    upload: (target, content, headers = {}) => request('POST', target, { content, headers }),
    async *all<T>(target: string, query: Query = {}) {
      for (let offset = 0, total = 1; offset < total; offset += PAGE) {
        const response = await open('GET', target, { query: { ...query, limit: PAGE, offset } })
        const { data, pagination } = await dataIn(response)
        yield* data as readonly T[]
        total = (pagination as { readonly total: number }).total
      }
    },
  }
}

/** Asks a path that needs no credential, such as `/readyz`. Resolves with the reply, also with a refusal. */
export const ask = async (target: string, signal: AbortSignal): Promise<Asked> => {
  const { url } = localConfig()
  const late = AbortSignal.timeout(REPLY_MS)
  const sent = fetch(url + target, { signal: AbortSignal.any([signal, late]), redirect: 'manual' })
  const response = await answer(sent, url, signal)
  const body = parsed(await wholeReply(response.text(), url, signal))
  if (body === null) throw new AppError('internal_server_error', `${url} is not svc: its reply is not JSON`)
  return { url, status: response.status, body, date: Date.parse(response.headers.get('date') ?? '') }
}

/** Rejects with `unavailable` where nothing answers, unless the command was interrupted. */
const answer = (sent: Promise<Response>, url: string, signal: AbortSignal): Promise<Response> =>
  sent.catch((cause: unknown) => {
    if (signal.aborted || isAppError(cause)) throw cause
    const detail = `the service at ${url} does not answer (${reasonOf(cause)})`
    throw new AppError('unavailable', `${detail}: start it with svc serve, or set SVC_URL`, {
      cause,
      data: { detail }, // the message without how to fix the problem
    })
  })

/** Rejects with `unavailable` if the connection ends within the reply, unless the command was interrupted. */
const wholeReply = (text: Promise<string>, url: string, signal: AbortSignal): Promise<string> =>
  text.catch((cause: unknown) => {
    if (signal.aborted) throw cause
    const detail = `the reply of the service at ${url} is incomplete (${reasonOf(cause)})`
    throw new AppError('unavailable', `${detail}: see svc status, then repeat the command`, {
      cause,
      data: { detail },
    })
  })

const queryOf = (query: Query): string => {
  const given = Object.entries(query).filter(([, value]) => value !== undefined)
  return given.length === 0
    ? ''
    : `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()}`
}

type Envelope = Readonly<Record<'data' | 'pagination' | 'error', unknown>>

const dataOf = (url: string, text: string): Partial<Envelope> => {
  const reply = parsed(text)
  if (reply !== null && 'data' in reply) return reply
  throw new AppError('internal_server_error', `${url} is not svc: its reply is not JSON with data`)
}

const refusalOf = (url: string, response: Response, text: string): AppError => {
  const error = parsed(text)?.error as Readonly<Record<string, unknown>> | undefined
  const location = response.headers.get('location')
  const message = String(error?.['message'] ?? (location ? `a redirect to ${location}` : text.slice(0, 200)))
  if (error && response.status < 500)
    return new AppError('bad_request', onOneLine(message), { data: { status: response.status } })
  const request = error ? ` (request ${String(error['request_id'])})` : ''
  return new AppError('unavailable', onOneLine(`${url} replied ${response.status}: ${message}${request}`))
}

const parsed = (text: string): (Partial<Envelope> & Readonly<Record<string, unknown>>) | null => {
  try {
    const value = JSON.parse(text) as unknown
    return typeof value === 'object' ? (value as Readonly<Record<string, unknown>> | null) : null
  } catch {
    return null // the reply of something else, such as a proxy
  }
}

const reasonOf = (error: unknown): string => {
  if (error instanceof DOMException && error.name === 'TimeoutError')
    return `no reply within ${REPLY_MS / 1000} s`
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof Error && 'code' in cause ? String(cause.code) : messageOf(error)
}
