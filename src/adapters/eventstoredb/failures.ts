import { AppError, messageOf } from '../../errors.ts'

/** The client also rejects with raw gRPC errors and plain `Error`s. */
interface Failure {
  readonly type?: string
  readonly code?: number
  readonly message?: string
}

const typeOf = (error: unknown): string | undefined => (error as Failure | null)?.type

/** A stream that an operator ended for ever. */
export const isTombstone = (error: unknown): boolean => typeOf(error) === 'stream-deleted'

export const isMissingStream = (error: unknown): boolean =>
  typeOf(error) === 'stream-not-found' || isTombstone(error)

/** Others have appended since the expected revision. */
export const isWrongRevision = (error: unknown): boolean => typeOf(error) === 'wrong-expected-version'

export const isMissingGroup = (error: unknown): boolean =>
  typeOf(error) === 'persistent-subscription-does-not-exist'

export const isExistingGroup = (error: unknown): boolean => typeOf(error) === 'persistent-subscription-exists'

/** A plain error means that the client failed to find a node. It may then return the same error on every call. */
export const isClientWedged = (error: unknown): boolean =>
  !(error instanceof AppError) && typeOf(error) === undefined && !isDenied(error)

/** The server refused the user or password, also as the cause of an error of the port. */
export const isDenied = (error: unknown): boolean => {
  const failure = error instanceof AppError ? error.cause : error
  const { code } = (failure ?? {}) as Failure
  return typeOf(failure) === 'access-denied' || code === 7 || code === 16
}

/**
 * The server read bytes at a position that are no record: nothing was ever stored there. It has an error for most of such
 * bytes; the others give an unknown one. Where it has removed events, it reads the next one instead.
 */
export const isNoPlace = (error: unknown): boolean =>
  /ReadAllResult: (InvalidPosition|Error)\b/.test((error as Failure | null)?.message ?? '')

/** The failure of a server that does not answer in time. */
export const silent = (): AppError => new AppError('unavailable', 'The event store does not answer')

/**
 * Converts any failure of a call to an error of the port. A login that is refused while the service runs is an outage: an operator
 * replaces it there before the nodes have the new one, and what they do meanwhile must not fail for good.
 */
export const appErrorOf = (error: unknown): AppError => {
  if (error instanceof AppError) return error
  const reason = messageOf(error)
  if (isDenied(error))
    return new AppError('unavailable', 'The event store refused the user or password', { cause: error })
  if (reason.includes('InvalidPosition'))
    return new AppError('bad_request', 'Expected a cursor of this log, got a position that does not exist', {
      cause: error,
    })
  return new AppError('unavailable', `The event store does not answer: ${reason}`, { cause: error })
}
