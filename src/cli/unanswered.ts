import { certificateProblem } from '../client/certificate.ts'
import { AppError, isAppError, messageOf } from '../errors.ts'

/** Time for a reply that a service has at hand, milliseconds: a stopped process accepts connections and never replies. */
export const REPLY_MS = 10_000

/** The error where nothing answers. `data.detail` is the message without how to fix the problem. */
export const unanswered = (url: string, cause: unknown): AppError => {
  const problem = certificateProblem(cause)
  if (problem !== null) return new AppError('unavailable', `${url} ${problem}`, { cause })
  const detail = `the service at ${url} does not answer (${reasonOf(cause)})`
  return failed(detail, 'start it with svc serve, or set SVC_URL', cause)
}

/** The error of a connection that ends within the reply; `data` as in `unanswered`. */
export const incomplete = (url: string, cause: unknown): AppError => {
  const detail = `the reply of the service at ${url} is incomplete (${reasonOf(cause)})`
  return failed(detail, 'see svc status, then repeat the command', cause)
}

/** Yields the content of a reply. Rejects with `incomplete` if the connection ends within it. */
export async function* received(
  { url, signal }: { readonly url: string; readonly signal: AbortSignal },
  content: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  try {
    yield* content
  } catch (cause) {
    throw signal.aborted ? cause : incomplete(url, cause)
  }
}

/** Adds to the error of a service that went away within an operation how its end is found. */
export const continuing = <T>(reply: Promise<T>, hint: string): Promise<T> =>
  reply.catch((error: unknown) => {
    if (!isAppError(error, 'unavailable')) throw error
    throw new AppError('unavailable', `${error.message}; ${hint}`, { cause: error, data: error.data })
  })

const failed = (detail: string, fix: string, cause: unknown): AppError =>
  new AppError('unavailable', `${detail}: ${fix}`, { cause, data: { detail } })

const reasonOf = (error: unknown): string => {
  if (error instanceof DOMException && error.name === 'TimeoutError')
    return `no reply within ${REPLY_MS / 1000} s`
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof Error && 'code' in cause ? String(cause.code) : messageOf(error)
}
