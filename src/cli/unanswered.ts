import { AppError, messageOf } from '../errors.ts'

/** Time for a reply that a service has at hand, milliseconds: a stopped process accepts connections and never replies. */
export const REPLY_MS = 10_000

/** The error where nothing answers. `data.detail` is the message without how to fix the problem. */
export const unanswered = (url: string, cause: unknown): AppError => {
  const detail = `the service at ${url} does not answer (${reasonOf(cause)})`
  return failed(detail, 'start it with svc serve, or set SVC_URL', cause)
}

/** The error of a connection that ends within the reply; `data` as in `unanswered`. */
export const incomplete = (url: string, cause: unknown): AppError => {
  const detail = `the reply of the service at ${url} is incomplete (${reasonOf(cause)})`
  return failed(detail, 'see svc status, then repeat the command', cause)
}

const failed = (detail: string, fix: string, cause: unknown): AppError =>
  new AppError('unavailable', `${detail}: ${fix}`, { cause, data: { detail } })

const reasonOf = (error: unknown): string => {
  if (error instanceof DOMException && error.name === 'TimeoutError')
    return `no reply within ${REPLY_MS / 1000} s`
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof Error && 'code' in cause ? String(cause.code) : messageOf(error)
}
