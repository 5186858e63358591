import { certificateProblem } from './certificate.ts'
import type { ClientOptions } from './client.ts'
import { PathError, ServiceError } from './errors.ts'
import { randomKey } from './randomKey.ts'
import { isLongWait, pauseOf, reasonOf, wait } from './wait.ts'

/** The input of any operation; `Operations` has the types of each. */
export interface AnyInput {
  readonly path?: Readonly<Record<string, string | number>>
  readonly query?: Readonly<Record<string, unknown>>
  /** JSON, or a form. */
  readonly body?: unknown
  /** The media type of a body that is sent as it is. */
  readonly type?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly idempotencyKey?: string
  readonly signal?: AbortSignal
}

/** Sends an operation such as `GET /v1/runs/{run_id}`. Rejects with a `ServiceError` unless the status is 2xx. */
export type Send = (operation: string, input?: AnyInput) => Promise<Response>

const DEFAULT_RETRIES = 4

/** The service does nothing twice under one key, and replies from its state to these methods. */
const isRepeatable = (method: string, { idempotencyKey }: AnyInput): boolean =>
  method !== 'POST' || idempotencyKey !== undefined

/** The service refuses with these before it does anything, or does it once under the key that each repeated POST has. */
const REFUSED_FOR_NOW: readonly number[] = [429, 503]
/** No reply, or that of a proxy whose service does not answer: the request may have been executed. */
const UNKNOWN_OUTCOME: readonly number[] = [0, 502, 504]

/** Whether another attempt may succeed. */
export const isTransient = ({ status, code }: ServiceError): boolean =>
  REFUSED_FOR_NOW.includes(status) || (UNKNOWN_OUTCOME.includes(status) && code !== 'untrusted')

/** Whether the request may have been executed, or may be in progress. */
export const isUncertain = (error: ServiceError): boolean =>
  error.status === 503 || UNKNOWN_OUTCOME.includes(error.status) || isInProgress(error)

/**
 * Whether an earlier attempt with the same key may be in progress. The service takes some seconds to notice that the node of
 * that attempt died. Without an earlier attempt, it is the conflict with another request.
 */
export const isInProgress = ({ code, retryAfter }: ServiceError): boolean =>
  code === 'conflict' && retryAfter !== null

export const openTransport = (options: ClientOptions): Send => {
  const base = baseOf(options.url)
  const { retries = DEFAULT_RETRIES } = options
  return async (operation, input = {}) => {
    const [method = '', template = ''] = operation.split(' ')
    const target = base + pathOf(template, input.path ?? {}) + queryOf(input.query ?? {})
    const sent = method === 'POST' && retries > 0 ? keyed(options, input) : input
    let wasUncertain = false
    for (let failures = 0; ;) {
      try {
        return await attempt(options, method, target, sent)
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error
        // An earlier attempt has deleted it.
        if (wasUncertain && method === 'DELETE' && error.code === 'not_found')
          return new Response(null, { status: 204 })
        const isSafe = REFUSED_FOR_NOW.includes(error.status) || isRepeatable(method, input)
        const isWaiting = wasUncertain && method === 'POST' && isInProgress(error)
        if (!(isTransient(error) && isSafe) && !isWaiting) throw error
        if (failures === retries || isLongWait(error.retryAfter)) throw error
        wasUncertain ||= isUncertain(error)
        failures++
        await wait(pauseOf(failures, error.retryAfter), input.signal)
      }
    }
  }
}

const KEY_HEADER = 'idempotency-key'

/** A 503 may follow what was stored, so a request without a key gets one that is the same in each attempt. */
const keyed = ({ headers: always }: ClientOptions, input: AnyInput): AnyInput => {
  const isKeyed = Object.keys({ ...always, ...input.headers }).some(
    (name) => name.toLowerCase() === KEY_HEADER,
  )
  return isKeyed ? input : { ...input, idempotencyKey: input.idempotencyKey ?? randomKey() }
}

const attempt = async (
  { token, fetch: send = globalThis.fetch, headers: always }: ClientOptions,
  method: string,
  target: string,
  { body, type, headers, idempotencyKey, signal }: AnyInput,
): Promise<Response> => {
  const bearer = typeof token === 'function' ? await token() : token
  const isJson = body !== undefined && type === undefined && !(body instanceof FormData)
  const request: RequestInit = {
    method,
    redirect: 'manual', // a redirect could carry the token to another host
    headers: {
      ...always,
      ...(bearer !== null && { authorization: `Bearer ${bearer}` }),
      ...(isJson && { 'content-type': 'application/json' }),
      ...(type !== undefined && { 'content-type': type }),
      ...(idempotencyKey !== undefined && { [KEY_HEADER]: idempotencyKey }),
      ...headers,
    },
    ...(signal && { signal }),
    ...(body !== undefined && {
      body: isJson ? JSON.stringify(body) : (body as NonNullable<RequestInit['body']>),
    }),
  }
  const response = await send(target, request).catch((cause: unknown) => {
    if (signal?.aborted) throw reasonOf(signal)
    throw unreachable(target, cause)
  })
  if (response.ok) return response
  throw await refusalOf(target, response)
}

/** A failure of the connection. */
const unreachable = (target: string, cause: unknown): ServiceError => {
  const { origin } = new URL(target)
  const problem = certificateProblem(cause)
  return problem === null
    ? new ServiceError('unreachable', `${origin} does not answer: ${detailOf(cause)}`, { cause })
    : new ServiceError('untrusted', `${origin} ${problem}`, { cause })
}

/** `fetch` of Node says only `fetch failed`; its cause has the reason. */
const detailOf = (error: unknown): string => {
  const { cause } = error instanceof Error ? error : {}
  if (cause instanceof Error) return 'code' in cause ? String(cause.code) : cause.message
  return error instanceof Error ? error.message : String(error)
}

const refusalOf = async (target: string, response: Response): Promise<ServiceError> => {
  const text = await response.text().catch(() => '')
  const { error } = (parsed(text) ?? {}) as {
    readonly error?: { readonly code?: string; readonly message?: string; readonly request_id?: string }
  }
  const location = response.headers.get('location')
  const shown = location === null ? text.slice(0, 200) : `a redirect to ${location}`
  const seconds = Number(response.headers.get('retry-after') ?? 'none')
  return new ServiceError(
    error?.code ?? 'unexpected_reply',
    error?.message ?? `${new URL(target).origin} replied ${response.status}: ${shown}`,
    {
      status: response.status,
      requestId: response.headers.get('x-request-id') ?? error?.request_id ?? null,
      retryAfter: Number.isFinite(seconds) ? seconds : null,
      page: helpPageOf(target, response.headers.get('link')),
    },
  )
}

/** The page that a `Link` header names, if the service itself serves it. */
const helpPageOf = (target: string, link: string | null): string | null => {
  const [, page = ''] = /<([^>]*)>; *rel="help"/.exec(link ?? '') ?? []
  const url = page !== '' && URL.canParse(page, target) ? new URL(page, target) : null
  return url?.origin === new URL(target).origin ? url.href : null
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return null // the reply of something else, such as a proxy
  }
}

/** The data of a JSON reply; a list keeps its `pagination`. */
export const dataOf = async (response: Response): Promise<unknown> => {
  const { status } = response
  if (status === 204) return undefined
  const text = await response.text().catch((cause: unknown) => {
    throw new ServiceError('unreachable', 'The connection ended within the reply', { status, cause })
  })
  const reply = parsed(text)
  if (typeof reply !== 'object' || reply === null || !('data' in reply))
    throw new ServiceError('unexpected_reply', `Expected JSON with data, got ${text.slice(0, 200)}`, {
      status,
    })
  const { data, pagination } = reply as Readonly<Record<string, unknown>>
  return pagination === undefined ? data : { data, pagination }
}

const baseOf = (url: string): string => {
  const protocol = URL.canParse(url) ? new URL(url).protocol : null
  if (protocol === 'http:' || protocol === 'https:') return url.replace(/\/+$/, '')
  throw new TypeError(`Expected \`url\` of createClient to begin with http:// or https://, got "${url}"`)
}

/** A parameter that ends the path of an operation may contain slashes. */
const pathOf = (template: string, path: NonNullable<AnyInput['path']>): string =>
  template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = String(path[name] ?? '')
    const segments = name === 'path' || name === 'blob_key' ? value.split('/') : [value]
    if (segments.some((segment) => segment === '' || segment === '.' || segment === '..'))
      throw new PathError(`Expected \`path.${name}\` of ${template} to be a name, got "${value}"`, value)
    return segments.map(encodeURIComponent).join('/')
  })

const queryOf = (query: NonNullable<AnyInput['query']>): string => {
  const given = Object.entries(query).filter(([, value]) => value !== undefined)
  return given.length === 0
    ? ''
    : `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()}`
}
