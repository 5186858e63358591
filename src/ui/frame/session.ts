import { batch, computed, signal } from '@preact/signals'
import { compilePermissions, lackText } from '../../access/permissions.ts'
import type { SignIn } from '../../client/index.ts'
import { ServiceError } from '../../client/index.ts'
import { ask, ended, isUnanswered, onRefusals, signIns, textOf } from './api.ts'
import { reportFailed } from './notices.tsx'
import { onReturn } from './repeat.ts'

/** The environment and the rights of the session; undefined until the service has replied, null without a session. */
export const session = signal<SignIn | null | undefined>(undefined)
export const operator = signal<{ readonly expires_at: string } | null | undefined>(undefined)

/** The environment in a text: its id, if the key does not permit to read its name. */
export const envLabel = computed(() => session.value?.env_name ?? session.value?.env_id ?? '')

const granted = computed(() => compilePermissions(session.value?.permissions ?? {}))

/** Whether the session permits an action; without a path, on everything of the type. */
export const may = (type: string, action: string, path?: string): boolean =>
  granted.value.allows(type, action, path)

/** Why the session does not permit an action; undefined if it does. */
export const refusalOf = (type: string, action: string, path?: string): string | undefined =>
  may(type, action, path) ? undefined : lackText(type, action, path)

/** Whether the session permits an action on something of the type. */
export const maySome = (type: string, action: string): boolean =>
  Object.entries(session.value?.permissions ?? {}).some(
    ([resource, actions]) =>
      (resource.startsWith(`${type}:`) || resource === '*:*') &&
      actions.some((one) => one === action || one === '*'),
  )

let isRefreshing = false

/** Reads what the session permits now: its API key may permit less or more than when the page was opened. */
export const refreshSession = async (): Promise<void> => {
  if (isRefreshing) return
  isRefreshing = true
  const before = session.peek()
  const now = await present<SignIn>('GET /v1/sign-in').catch(() => null)
  isRefreshing = false
  const isSame = now?.session_id === before?.session_id && before === session.peek()
  if (now && isSame && JSON.stringify(now) !== JSON.stringify(before)) session.value = now
}

onRefusals({
  // The session remains until the visitor signs in again or out, so that the page keeps what was written in it.
  onEnd: (scope) => {
    if ((scope === 'operator' ? operator : session).peek()) ended.value = scope
  },
  onForbidden: () => void refreshSession(),
})

onReturn(() => {
  if (session.peek() && !ended.peek()) void refreshSession()
})

/** Shows the page with another session; one of the same environment continues it. */
const continueWith = (change: () => void): void =>
  batch(() => {
    change()
    ended.value = null
    signIns.value++
  })

/** Null without a session. Rejects if the service cannot tell: there may be one, which a ticket must not replace. */
const present = async <T>(operation: string): Promise<T | null> => {
  try {
    return await ask<T>(operation)
  } catch (error) {
    const { status = 0 } = error instanceof ServiceError ? error : {}
    if (status >= 400 && status < 500 && status !== 429) return null
    throw error
  }
}

/** A ticket of `svc open` that waits for the visitor: another person's link must not replace a session. */
export const offeredTicket = signal<string | null>(null)

/** Why the ticket of the address was refused; empty without one. */
export const ticketRefusal = signal('')

/** Takes the ticket out of the address, which the browser keeps in its history. */
const takeTicket = (): string | null => {
  const ticket = new URLSearchParams(location.hash.slice(1)).get('ticket')
  if (ticket !== null) history.replaceState(null, '', location.pathname + location.search)
  return ticket
}

/** Finds the sessions of this browser. A ticket begins one if there is none. */
export const openSession = async (): Promise<void> => {
  offeredTicket.value = takeTicket() ?? offeredTicket.value
  try {
    const [env, installation] = await Promise.all([
      session.value ?? present<SignIn>('GET /v1/sign-in'),
      present<{ readonly expires_at: string }>('GET /operator/sign-in').catch(() => null),
    ])
    operator.value = installation
    if (env || offeredTicket.value === null) session.value = env
    else await signInWithTicket()
  } catch {
    setTimeout(() => void openSession(), 1000)
  }
}

/** The other tabs of the browser, which send the same cookie. */
const tabs = new BroadcastChannel('svc-session')

/** Otherwise a page would change an environment that is not the one in its head. */
tabs.onmessage = async () => {
  const env = await present<SignIn>('GET /v1/sign-in').catch(() => undefined)
  if (env?.session_id === session.peek()?.session_id) return
  if (env && env.env_id === session.peek()?.env_id) return continueWith(() => (session.value = env))
  session.value = undefined // the pages begin again
  ended.value = null
  await openSession()
}

/** Begins the session of the offered ticket. Rejects if the service does not answer: the ticket may still be valid. */
export const signInWithTicket = async (): Promise<void> => {
  try {
    await signIn({ ticket: offeredTicket.peek() ?? '' })
    offeredTicket.value = null
  } catch (error) {
    if (isUnanswered(error)) throw error
    offeredTicket.value = null
    ticketRefusal.value = textOf(error)
    session.value ??= null
  }
}

/** Begins a session of an environment. */
export const signIn = async (credential: { readonly token: string } | { readonly ticket: string }) => {
  const begun = await ask<SignIn>('POST /v1/sign-in', { body: credential })
  continueWith(() => (session.value = begun))
  tabs.postMessage('changed')
}

export const signInAsOperator = async (token: string): Promise<void> => {
  const begun = await ask<{ readonly expires_at: string }>('POST /operator/sign-in', { body: { token } })
  continueWith(() => (operator.value = begun))
}

/** Ends the sessions of this browser. One that could not be ended continues, and is reported. */
export const signOut = async (): Promise<void> => {
  try {
    if (session.peek()) await ask('DELETE /v1/sign-in')
    session.value = null
    if (operator.peek()) await ask('DELETE /operator/sign-in')
    operator.value = null
    ended.value = null
    tabs.postMessage('changed')
  } catch (error) {
    reportFailed(`You are still signed in: ${textOf(error)}`)
  }
}
