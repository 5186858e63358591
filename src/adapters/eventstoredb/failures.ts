import { AppError, messageOf } from '../../errors.ts'

/** Not every rejection of the client is one of its own errors: some are raw gRPC, some a plain `Error`. */
interface Failure {
  readonly type?: string
  readonly code?: number
  readonly message?: string
}

const typeOf = (error: unknown): string | undefined => (error as Failure | null)?.type

export const isMissingStream = (error: unknown): boolean =>
  typeOf(error) === 'stream-not-found' || typeOf(error) === 'stream-deleted'

export const isMissingGroup = (error: unknown): boolean =>
  typeOf(error) === 'persistent-subscription-does-not-exist'

export const isExistingGroup = (error: unknown): boolean => typeOf(error) === 'persistent-subscription-exists'

/** Plain errors come from a client that failed to find a node: it may answer with the same one for ever. */
export const isClientWedged = (error: unknown): boolean =>
  !(error instanceof AppError) && typeOf(error) === undefined

/** Trying again will not help: wrong user or password, a position that never was. */
const refusalOf = (error: unknown): AppError | undefined => {
  const { code, message = '' } = (error ?? {}) as Failure
  if (typeOf(error) === 'access-denied' || code === 7 || code === 16) {
    return new AppError('bad_request', 'The event store refused user or password', {
      cause: error,
    })
  }
  if (message.includes('InvalidPosition')) {
    return new AppError('bad_request', 'Expected a cursor of this log, got a position that never was', {
      cause: error,
    })
  }
  return undefined
}

/** Any failure of a call as the port's error. */
export const appErrorOf = (error: unknown): AppError => {
  if (error instanceof AppError) return error
  return (
    refusalOf(error) ??
    new AppError('unavailable', `The event store does not answer: ${messageOf(error)}`, { cause: error })
  )
}
