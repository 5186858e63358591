import { resolve } from 'node:path'
import { inspect, types } from 'node:util'
import type { ErrorDetails, Thrown } from '../../events/run.ts'
import { endOfPart, MAX_CAUSES, MAX_DETAILS, MAX_MESSAGE, MAX_STACK } from '../frames.ts'
import { deniedText } from './deniedText.ts'
import { importSite } from './modules.ts'
import { classOf, ownFieldsOf, type Room } from './ownFields.ts'
import type { Site } from './sites.ts'
import type { Stacks } from './stacks.ts'

/** What a run reports of a thrown value. */
export interface Described extends ErrorDetails {
  readonly message: string
  readonly stack?: string
}

/** Characters of the message and the stack of a cause. */
const MAX_CAUSE_MESSAGE = 1 << 10
const MAX_CAUSE_STACK = 2 << 10
const MAX_CAUSE_CODE = 128

/** Errors of an `AggregateError` that are described. */
const MAX_ERRORS = 10

/** Characters for the causes and own fields of one error. JSON may escape some of them. */
const ROOM = MAX_DETAILS / 2

export const HIDDEN = 'Threw a value that cannot be shown'

/** Fields with a place of their own. */
const NAMED: ReadonlySet<string> = new Set(['name', 'message', 'stack', 'cause'])
const NAMED_IN_CAUSE: ReadonlySet<string> = new Set([...NAMED, 'code'])

/**
 * Describes a thrown value for its reader, with the frames and places of the user's own source. Never throws, not even
 * when a getter of the value throws.
 */
export const describe = (thrown: unknown, stacks: Stacks): Described => {
  if (!safely(() => isError(thrown)))
    return { message: safely(() => cut(stacks.places.hide(textOf(thrown)), MAX_MESSAGE)) ?? HIDDEN }
  const error = thrown as Error
  const denied = safely(() => deniedText(error))
  const text = denied
    ? cut(stacks.places.hide(denied), MAX_MESSAGE)
    : (textIn(error, 'message', MAX_MESSAGE, stacks) ?? HIDDEN)
  const message = text + (safely(() => assetHint(error, stacks)) ?? '')
  const stack = safely(() => {
    const given = typeof error.stack === 'string' ? error.stack : ''
    return stacks.read(denied ? given.replace(error.message, () => denied) : given)
  })
  const location =
    stack?.location ?? safely(() => importedAt(error, stacks)) ?? safely(() => siteBelow(error, stacks))
  const details = safely(() => {
    const room = { left: ROOM }
    const name = nameOf(error, stacks)
    const found = {
      ...(name && { name }),
      ...insideOf(error, { except: NAMED, stacks, room, above: [error] }),
    }
    return JSON.stringify(found).length > MAX_DETAILS ? { ...(name && { name }) } : found
  })
  return {
    message,
    ...(stack?.text && { stack: cut(stack.text, MAX_STACK) }),
    ...details,
    ...(location && { location }),
  }
}

/** The place of the first error below that has one: an `AggregateError` of `Promise.any` has no frames. */
const siteBelow = (error: Error, stacks: Stacks): Site | undefined => {
  const { errors } = error as { readonly errors?: unknown }
  const below: readonly unknown[] = [
    error.cause,
    ...(Array.isArray(errors) ? errors.slice(0, MAX_ERRORS) : []),
  ]
  for (const each of below) {
    const { location } = isError(each) ? stacks.read(String(each.stack)) : {}
    if (location) return location
  }
  return undefined
}

interface Around {
  readonly stacks: Stacks
  readonly room: Room
  /** The errors that contain this one. */
  readonly above: readonly unknown[]
}

/** The own fields of an error, its causes and its errors. */
const insideOf = (
  error: Error,
  { except, ...around }: Around & { readonly except: ReadonlySet<string> },
): ErrorDetails => {
  const { stacks, room } = around
  const cause = safely(() => error.cause)
  const errors: unknown = safely(() => (error as { readonly errors?: unknown }).errors)
  const others = Array.isArray(errors) ? new Set([...except, 'errors']) : except
  const fields = safely(() => ownFieldsOf(error, others, { room, shown: stacks.places.hide }))
  return {
    ...(fields && { fields }),
    ...(cause !== undefined && inside(around) && { cause: causeOf(cause, around) }),
    ...(Array.isArray(errors) && inside(around) && { errors: errorsOf(errors, around) }),
  }
}

const inside = ({ above, room }: Around): boolean => above.length <= MAX_CAUSES && room.left > 0

const errorsOf = (errors: readonly unknown[], around: Around): Thrown[] => {
  const some = errors.slice(0, MAX_ERRORS).map((each) => causeOf(each, around))
  return errors.length > MAX_ERRORS
    ? [...some, { message: `… ${errors.length - MAX_ERRORS} more errors` }]
    : some
}

const causeOf = (thrown: unknown, around: Around): Thrown => {
  const { stacks, room, above } = around
  if (above.includes(thrown)) return { message: 'An error that contains this one' }
  if (!safely(() => isError(thrown)))
    return spend(room, {
      message: safely(() => cut(stacks.places.hide(textOf(thrown)), MAX_CAUSE_MESSAGE)) ?? HIDDEN,
    })
  const error = thrown as Error
  const name = nameOf(error, stacks)
  const stack = safely(() => cut(stacks.read(String(error.stack)).text, MAX_CAUSE_STACK))
  const code: unknown = safely(() => (error as { readonly code?: unknown }).code)
  const own = spend(room, {
    ...(name && { name }),
    message: textIn(error, 'message', MAX_CAUSE_MESSAGE, stacks) ?? HIDDEN,
    ...(typeof code === 'string' && { code: cut(code, MAX_CAUSE_CODE) }),
    ...(typeof code === 'number' && Number.isFinite(code) && { code }),
    ...(stack && { stack }),
  })
  return { ...own, ...insideOf(error, { ...around, above: [...above, error], except: NAMED_IN_CAUSE }) }
}

const spend = (room: Room, own: Thrown): Thrown => {
  room.left -= own.message.length + (own.stack?.length ?? 0)
  return own
}

/** Names of errors that say less than the name of a class below them. */
const GENERAL = new Set(['Error', 'TypeError', 'RangeError', 'AggregateError'])
/** The name of a class, unless it is that of minified code or of Node's own errors. */
const CLASS = /^(?!NodeError$|SystemError$)\p{Lu}[\p{ID_Continue}$]{2,}$/u

/** The `name` of the error. Many classes of errors do not set it; then it is that of the class. */
const nameOf = (error: Error, stacks: Stacks): string | undefined => {
  const name = textIn(error, 'name', MAX_CAUSE_CODE, stacks)
  if (name === undefined || !GENERAL.has(name)) return name
  const found = safely(() => classOf(error))
  return found !== undefined && CLASS.test(found) && !GENERAL.has(found) ? found : name
}

const textIn = (
  error: Error,
  key: 'name' | 'message',
  length: number,
  { places }: Stacks,
): string | undefined => safely(() => cut(places.hide(String(error[key]).slice(0, 2 * length)), length))

/** Undefined if user code throws, such as a getter. */
const safely = <T>(read: () => T): T | undefined => {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** The advice for a file of the build that was read and does not exist. */
const assetHint = (error: Error, { places }: Stacks): string => {
  const { code, path } = error as { readonly code?: unknown; readonly path?: unknown }
  if (code !== 'ENOENT' || typeof path !== 'string' || places.fileOf(resolve(path)) === undefined) return ''
  return ': the build does not contain it; `svc.assets` in package.json adds files'
}

/** The place of an import that failed; undefined for any other error. */
export const importedAt = (error: Error, { siteOf }: Stacks): Site | undefined => {
  const at = importSite(error)
  return at && siteOf(at.file, at.line, at.column)
}

/** Evaluated code runs in a context with its own `Error` class. */
export const isError = (thrown: unknown): thrown is Error =>
  types.isNativeError(thrown) || thrown instanceof Error

export const textOf = (thrown: unknown): string =>
  typeof thrown === 'string' ? thrown : inspect(thrown, { depth: 3, breakLength: 120, getters: false })

export const cut = (text: string, length: number): string =>
  text.length > length ? `${text.slice(0, endOfPart(text, 0, length - 1))}…` : text
