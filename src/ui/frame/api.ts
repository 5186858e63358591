import { effect, signal } from '@preact/signals'
import { createClient, ServiceError } from '../../client/index.ts'
import { type AnyInput, dataOf, openTransport } from '../../client/transport.ts'
import { learnTime } from './serviceClock.ts'
import { inTurn } from './turns.ts'

/** Whether the service replies. */
export const isReachable = signal(true)

export type Scope = 'env' | 'operator'

/** The scope whose session has ended while the page was open, until the visitor has signed in again. */
export const ended = signal<Scope | null>(null)

/** How often the visitor has signed in again: what a page has loaded or follows begins again with each. */
export const signIns = signal(0)

/** How often the service was found again after it had not replied: what could not be loaded is loaded again with each. */
export const recoveries = signal(0)

/** How often an action was refused because something is deleted: what a page has loaded is loaded again with each. */
export const deletions = signal(0)

interface Listeners {
  /** The service no longer accepts the session of a scope. */
  readonly onEnd: (scope: Scope) => void
  /** The service refused a request of the session: it may permit less than before. */
  readonly onForbidden: () => void
}

let listeners: Listeners = { onEnd: () => {}, onForbidden: () => {} }

/** Calls back when the service refuses requests of a session. */
export const onRefusals = (own: Listeners): void => void (listeners = own)

const scopeOf = (pathname: string): Scope => (pathname.startsWith('/operator/') ? 'operator' : 'env')

/** A reply to a read that has not begun after this time never comes: its connection is dead. */
const REPLY_MS = 60_000

/** As `fetch`, but it rejects if no reply begins in time. The rest of the reply may take longer. */
const fetchInTime: typeof fetch = async (target, init) => {
  const limit = new AbortController()
  const signals = [limit.signal, ...(init?.signal ? [init.signal] : [])]
  const timer = setTimeout(() => limit.abort(), REPLY_MS)
  try {
    return await fetch(target, { ...init, signal: AbortSignal.any(signals) })
  } finally {
    clearTimeout(timer)
  }
}

/** Whether a request only reads and its reply ends: the client itself watches a live stream, and an action is sent at once. */
const isRead = (init: RequestInit | undefined): boolean =>
  (init?.method ?? 'GET') === 'GET' && new Headers(init?.headers).get('accept') !== 'text/event-stream'

/** The browser adds the cookie. A failure of the connection or an ended session is shown on every page. */
const sent: typeof fetch = async (target, init) => {
  const sentAfter = signIns.peek()
  const send = isRead(init) ? fetchInTime : fetch
  const response = await send(target, init).catch((error: unknown) => {
    if (!init?.signal?.aborted) isReachable.value = false
    throw error
  })
  learnTime(response)
  const isAnswered = response.status !== 502 && response.status !== 504
  if (isAnswered && !isReachable.peek()) recoveries.value++
  isReachable.value = isAnswered
  const { pathname } = new URL(response.url)
  const isOfSession = !pathname.endsWith('/sign-in') && !new Headers(init?.headers).has('authorization')
  if (!isOfSession || sentAfter !== signIns.peek()) return response
  const scope = scopeOf(pathname)
  if (response.status === 401) listeners.onEnd(scope)
  if (response.status === 403 && scope === 'env') listeners.onForbidden()
  return response
}

const watched: typeof fetch = (target, init) =>
  isRead(init) ? inTurn(() => sent(target, init), init?.signal ?? undefined) : sent(target, init)

/** The pause between two looks at a service that does not answer. */
const LOOK_MS = 1000
/** The longest time of one: its reply is small. */
const LOOK_LIMIT_MS = 5000

const look = (): void => void sent('/healthz', { signal: AbortSignal.timeout(LOOK_LIMIT_MS) }).catch(() => {})

/** Otherwise a page without live updates would not notice that the service is back. */
effect(() => {
  if (isReachable.value) return
  const timer = setInterval(look, LOOK_MS)
  return () => clearInterval(timer)
})

const options = {
  url: location.origin,
  token: null,
  headers: { 'svc-dashboard': '1' }, // a page of another origin cannot send it
  fetch: watched,
  retries: 2,
}

/** The API of the environment of the session. */
export const api = createClient(options)

const send = openTransport(options)

/** Sends an operation that has no method in `api`, such as those of the operator; resolves with `data` of the reply. */
export const ask = async <T>(operation: string, input?: AnyInput): Promise<T> =>
  (await dataOf(await send(operation, input))) as T

/** Whether what a page shows is deleted, or never was in this environment. */
export const isGone = (error: unknown): boolean => error instanceof ServiceError && error.status === 404

/** Whether no reply arrived, also because a proxy found no service. */
export const isUnanswered = (error: unknown): boolean =>
  error instanceof ServiceError &&
  (error.code === 'unreachable' || error.status === 502 || error.status === 504)

/**
 * Whether the service has refused a request for good, so that a repetition needs another key: the service repeats the refusal that
 * it has stored with the key, although its reason may be gone. After anything else, the request may have been executed, or may be
 * in progress: that refusal has `Retry-After`, and a conflict with something that exists has not.
 */
export const isFinalRefusal = (error: unknown): boolean =>
  error instanceof ServiceError &&
  error.status >= 400 &&
  error.status < 500 &&
  error.status !== 408 &&
  error.status !== 429 &&
  error.retryAfter === null

/** The text of an error for a person. */
export const textOf = (error: unknown): string =>
  isUnanswered(error)
    ? 'The service does not answer.'
    : error instanceof ServiceError && error.status === 401 && ended.peek()
      ? 'Your session had ended, so nothing was done. Repeat it after signing in.'
      : error instanceof Error
        ? error.message
        : String(error)

/** The same for something that the reader has sent. */
export const sentTextOf = (error: unknown): string =>
  isUnanswered(error)
    ? `${textOf(error)} What you have written is kept: repeat it when the service answers.`
    : textOf(error)
