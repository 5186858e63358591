import { type Client, createClient, ServiceError } from '../client/index.ts'
import { AppError } from '../errors.ts'
import { onOneLine } from '../logger.ts'
import type { Connection } from './connection.ts'

/** Attempts after a lost connection: a person waits for the command. */
const RETRIES = 2

/** The API of an environment for the commands of authors. */
export const connectClient = ({ url, key }: Connection, signal: AbortSignal): Client =>
  createClient({
    url,
    token: key,
    retries: RETRIES,
    fetch: (target, init) =>
      fetch(target, { ...init, signal: init?.signal ? AbortSignal.any([signal, init.signal]) : signal }),
  })

/** The error of a command for an error of its client; null for any other error. */
export const serviceErrorOf = (error: unknown, connection: Connection | undefined): AppError | null => {
  if (!(error instanceof ServiceError)) return null
  const { code, status, requestId, message } = error
  if (status === 401 && connection) {
    const { url, what, fix } = connection
    return new AppError('unauthorized', onOneLine(`${url} refused the ${what}; ${fix}`), { cause: error })
  }
  const request = status >= 500 && requestId !== null ? ` (request ${requestId})` : ''
  const fix = code === 'unreachable' ? ': start it with svc dev or svc serve, or set SVC_URL' : ''
  return new AppError(
    status >= 400 && status < 500 ? 'bad_request' : 'unavailable',
    onOneLine(message + request + fix),
    {
      cause: error,
      data: { status },
    },
  )
}
