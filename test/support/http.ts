import { setTimeout as delay } from 'node:timers/promises'

/** A reply of the service, with its JSON parsed. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  /** The body as text. */
  readonly text: string
  /** The parsed body; undefined if it is not JSON. */
  readonly json: unknown
}

export interface Sent {
  /** Strings, bytes and forms are sent unchanged, anything else as JSON. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

/** An error body (SPEC.md, Errors) with its status. */
export interface Refusal {
  readonly status: number
  readonly code: string
  readonly message: string
  readonly request_id: string
}

export interface Pagination {
  readonly total: number
  readonly limit: number
  readonly offset: number
  readonly has_more: boolean
  readonly next?: string
}

/** An API client with one credential. Paths are relative to `/v1`, unless they are full URLs. */
export interface Api {
  readonly url: string
  readonly key: string
  /** Sends a request and returns any reply. */
  send(method: string, path: string, sent?: Sent): Promise<Answer>
  /** Returns `data` of a reply that must be a 2xx. */
  get<T>(path: string): Promise<T>
  post<T>(path: string, body?: unknown): Promise<T>
  patch<T>(path: string, body?: unknown): Promise<T>
  remove(path: string): Promise<void>
  page<T>(path: string): Promise<{ data: T[]; pagination: Pagination }>
  /** Returns the error of a reply that must not be a 2xx. */
  refused(method: string, path: string, body?: unknown): Promise<Refusal>
}

/**
 * FerretDB decodes whole collections, and may be late by seconds for all nodes of a cluster. A request that is refused for it
 * with `Retry-After` is repeated, as a client should.
 */
const LATE_REPEATS = 5

/** Sends requests to several nodes in turn. */
export const openApi = (urls: string | readonly string[], key: string): Api => {
  const nodes = typeof urls === 'string' ? [urls] : urls
  const [url = ''] = nodes
  let turn = 0
  const next = () => nodes[turn++ % nodes.length] ?? ''
  const send = (method: string, path: string, { body, headers, signal }: Sent = {}): Promise<Answer> =>
    exchange(path.startsWith('http') ? path : `${next()}/v1${path}`, {
      method,
      headers: { Authorization: `Bearer ${key}`, ...headers },
      ...(body !== undefined && { body: isRaw(body) ? body : JSON.stringify(body) }),
      ...(signal && { signal }),
    })
  const accepted = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const answered = async (repeats: number): Promise<Answer> => {
      const answer = await send(method, path, { body })
      const isLate = nodes.length > 1 && answer.status === 503 && answer.text.includes('The read models')
      if (!isLate || repeats === 0) return answer
      await delay(Number(answer.headers.get('Retry-After')) * 1000)
      return answered(repeats - 1)
    }
    const { status, text, json } = await answered(LATE_REPEATS)
    if (status >= 200 && status <= 299) return json as T
    throw new Error(`Expected ${method} ${path} to be accepted, got ${status} ${text.slice(0, 500)}`)
  }
  const dataOf = async <T>(method: string, path: string, body?: unknown): Promise<T> =>
    (await accepted<{ data: T }>(method, path, body)).data
  return {
    url,
    key,
    send,
    get: (path) => dataOf('GET', path),
    post: (path, body) => dataOf('POST', path, body),
    patch: (path, body) => dataOf('PATCH', path, body),
    remove: (path) => accepted('DELETE', path),
    page: (path) => accepted('GET', path),
    refused: async (method, path, body) => {
      const { status, json, text } = await send(method, path, { body })
      const { error } = (json ?? {}) as { error?: Omit<Refusal, 'status'> }
      if (status < 400 || !error)
        throw new Error(`Expected an error from ${method} ${path}, got ${status} ${text}`)
      return { status, ...error }
    },
  }
}

const exchange = async (url: string, init: RequestInit): Promise<Answer> => {
  const response = await fetch(url, init)
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, json: parsed(text) }
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const isRaw = (body: unknown): body is string | FormData | Uint8Array<ArrayBuffer> =>
  typeof body === 'string' || body instanceof FormData || body instanceof Uint8Array
