import { MongoError, MongoInvalidArgumentError } from 'mongodb'
import { AppError, messageOf } from '../../errors.ts'
import { withDeadline } from '../../loops/deadline.ts'

/** The deadline of every command: longer than any reply takes, and short enough for a waiting caller. */
export const DEADLINE_MS = 4500

const DUPLICATE_KEY = 11000
const NAMESPACE_NOT_FOUND = 26
const NAMESPACE_EXISTS = 48
const NOT_IMPLEMENTED = 238
const QUERY_PLAN_KILLED = 175
const UNAUTHORIZED = 13
const AUTHENTICATION_FAILED = [18, 8000]

/** Runs a command on the server with a deadline. Failures become `unavailable`, except defects of svc. */
export const ask = async <T>(command: () => Promise<T>): Promise<T> => {
  try {
    return await withDeadline(
      DEADLINE_MS,
      command(),
      () => new Error(`Expected an answer within ${DEADLINE_MS} ms`),
    )
  } catch (error) {
    if (error instanceof AppError || error instanceof MongoInvalidArgumentError || isOurs(error)) throw error
    throw new AppError('unavailable', `The read models do not answer: ${messageOf(error)}`, { cause: error })
  }
}

/** A defect of svc, such as a document that BSON cannot represent: no retry helps. */
const isOurs = (error: unknown): boolean => error instanceof TypeError || error instanceof RangeError

export const isDuplicate = (error: unknown): boolean => codeOf(error) === DUPLICATE_KEY
/** The command was about a collection that does not exist. */
export const isAbsent = (error: unknown): boolean => codeOf(error) === NAMESPACE_NOT_FOUND
/** The collection to create exists. */
export const isThere = (error: unknown): boolean => codeOf(error) === NAMESPACE_EXISTS
export const isNotImplemented = (error: unknown): boolean => codeOf(error) === NOT_IMPLEMENTED

/** The collection was renamed or dropped during the query. */
export const isInterrupted = (error: unknown): boolean =>
  [...causesOf(error)].some((cause) => codeOf(cause) === QUERY_PLAN_KILLED)

/** The error for read models that cannot be opened: `bad_request` if waiting does not help, else `unavailable`. */
export const openingFailure = (error: unknown, place: string): AppError => {
  const refused = (why: string) =>
    new AppError('bad_request', `SVC_READ_MODELS: ${place}: ${why}`, { cause: error })
  const causes = [...causesOf(error)]
  const codes = causes.map(codeOf)
  if (codes.some((code) => AUTHENTICATION_FAILED.includes(Number(code)))) {
    return refused(
      'wrong user or password; correct the URL (add `?authSource=` if the user is defined in another database)',
    )
  }
  if (codes.includes(UNAUTHORIZED)) {
    return refused('the user may not read and write this database; grant it the role readWrite')
  }
  const incompatible = causes.find(
    (cause) => cause instanceof Error && cause.name === 'MongoCompatibilityError',
  )
  if (incompatible) return refused(`${messageOf(incompatible)}; use MongoDB 4.4 or newer`)
  const why = messageOf(causes.at(-1))
  return new AppError(
    'unavailable',
    `SVC_READ_MODELS: ${place} does not answer (${why}); start it or correct the URL`,
    {
      cause: error,
    },
  )
}

function* causesOf(error: unknown): Generator<unknown> {
  for (let cause = error; cause !== undefined; cause = cause instanceof Error ? cause.cause : undefined)
    yield cause
}

const codeOf = (error: unknown): unknown => (error instanceof MongoError ? error.code : undefined)
