import { signal } from '@preact/signals'
import { createClient, ServiceError } from '../../client/index.ts'
import { type AnyInput, dataOf, openTransport } from '../../client/transport.ts'

/** Whether the service replies. */
export const isReachable = signal(true)

export type Scope = 'env' | 'operator'

/** The scope whose session has ended while the page was open, until the visitor has signed in again. */
export const ended = signal<Scope | null>(null)

/** How often the visitor has signed in again: what a page has loaded or follows begins again with each. */
export const signIns = signal(0)

/** How often an action was refused because something is deleted: what a page has loaded is loaded again with each. */
export const deletions = signal(0)

let onRefusal: (scope: Scope) => void = () => {}

/** Calls back when the service no longer accepts the session of a scope. */
export const onSessionEnd = (listener: (scope: Scope) => void): void => void (onRefusal = listener)

const scopeOf = (pathname: string): Scope => (pathname.startsWith('/operator/') ? 'operator' : 'env')

/** The browser adds the cookie. A failure of the connection or an ended session is shown on every page. */
const watched: typeof fetch = async (target, init) => {
  const sentAfter = signIns.peek()
  const response = await fetch(target, init).catch((error: unknown) => {
    if (!init?.signal?.aborted) isReachable.value = false
    throw error
  })
  isReachable.value = response.status !== 502 && response.status !== 504
  const { pathname } = new URL(response.url)
  const isOfSession = !pathname.endsWith('/sign-in') && !new Headers(init?.headers).has('authorization')
  if (response.status === 401 && isOfSession && sentAfter === signIns.peek()) onRefusal(scopeOf(pathname))
  return response
}

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

/** The text of an error for a person. */
export const textOf = (error: unknown): string =>
  error instanceof ServiceError && error.code === 'unreachable'
    ? 'The service does not answer. The page tries again when it returns.'
    : error instanceof ServiceError && error.status === 401 && ended.peek()
      ? 'Your session had ended, so nothing was done. Repeat it after signing in.'
      : error instanceof Error
        ? error.message
        : String(error)
