import { PathError } from '../client/errors.ts'
import { type Client, createClient, ServiceError } from '../client/index.ts'
import { AppError } from '../errors.ts'
import { onOneLine } from '../logger.ts'
import type { Connection } from './connection.ts'
import { incomplete } from './unanswered.ts'
import { WrongUsage } from './wrongUsage.ts'

/** Attempts after a lost connection: a person waits for the command. */
const RETRIES = 2

/** The API of an environment. */
export const connectClient = ({ url, key }: Connection, signal: AbortSignal, retries = RETRIES): Client =>
  createClient({
    url,
    token: key,
    retries,
    fetch: (target, init) =>
      fetch(target, { ...init, signal: init?.signal ? AbortSignal.any([signal, init.signal]) : signal }),
  })

const wantedOf = ({ value }: PathError): string =>
  value.includes('/')
    ? 'a path whose segments are between single slashes, none of them "." or ".."'
    : 'a name or an id'

/** The error of a command for an error of its client; null for any other error. */
export const serviceErrorOf = (error: unknown, connection: Connection | undefined): AppError | null => {
  if (error instanceof PathError) return new WrongUsage(`expected ${wantedOf(error)}, got "${error.value}"`)
  if (!(error instanceof ServiceError)) return null
  const { code, status, message, page, cause } = error
  const { url = 'the service', what = 'key', fix = '' } = connection ?? {}
  if (status === 401) return new AppError('unauthorized', onOneLine(`${url} refused the ${what}; ${fix}`))
  const isOk = status >= 200 && status < 300
  if (code === 'unreachable' && isOk) return incomplete(url, cause)
  if (isOk) return new AppError('internal_server_error', `${url} is not svc: its reply is not JSON with data`)
  const isRefusal = status >= 400 && status < 500 && code !== 'unexpected_reply'
  if (isRefusal)
    return new AppError('bad_request', onOneLine(message), { cause: error, data: { status, page } })
  return new AppError('unavailable', onOneLine(failureText(error, url)), { cause: error })
}

const failureText = ({ code, status, requestId, message }: ServiceError, url: string): string => {
  if (code === 'unreachable') return `${message}: start it with svc dev or svc serve, or set SVC_URL`
  if (code === 'unexpected_reply' || status === 0) return message
  return `${url} replied ${status}: ${message}${requestId === null ? '' : ` (request ${requestId})`}`
}
