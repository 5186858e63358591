import { AppError } from '../errors.ts'
import { localConfig } from './connection.ts'
import { incomplete, REPLY_MS, unanswered } from './unanswered.ts'

interface Asked {
  readonly url: string
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
  /** The time on the clock of the service, milliseconds since 1970; NaN if the reply has none. */
  readonly date: number
}

/** Asks a path that needs no credential, such as `/readyz`. Resolves with the reply, also with a refusal. */
export const ask = async (target: string, signal: AbortSignal): Promise<Asked> => {
  const { url } = localConfig()
  const late = AbortSignal.any([signal, AbortSignal.timeout(REPLY_MS)])
  const response = await fetch(url + target, { signal: late, redirect: 'manual' }).catch((cause: unknown) => {
    throw signal.aborted ? cause : unanswered(url, cause)
  })
  const text = await response.text().catch((cause: unknown) => {
    throw signal.aborted ? cause : incomplete(url, cause)
  })
  const body = objectIn(text)
  if (body === null) throw new AppError('internal_server_error', `${url} is not svc: its reply is not JSON`)
  return { url, status: response.status, body, date: Date.parse(response.headers.get('date') ?? '') }
}

const objectIn = (text: string): Readonly<Record<string, unknown>> | null => {
  try {
    const value = JSON.parse(text) as unknown
    return typeof value === 'object' ? (value as Readonly<Record<string, unknown>> | null) : null
  } catch {
    return null // the reply of something else, such as a proxy
  }
}
