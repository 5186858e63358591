import type { ErrorDetails, ErrorLocation, Thrown } from '../events/run.ts'
import { RawJson } from '../events/rawJson.ts'
import { heapBytesOf } from '../loops/heapBytes.ts'
import { MAX_CAUSES, MAX_DETAILS, MAX_FILE, MAX_SNIPPET, ProtocolViolation } from './frames.ts'

/** Memory of the details. Those that the code of the child sends take less. */
const MAX_HEAP = 4 * MAX_DETAILS

/** Levels of the own fields of an error. The child sends at most five. */
const MAX_FIELD_LEVELS = 8

/** User code wrote the text: a control character could forge a line of a terminal or a log. */
const CONTROL = /(?!\t)\p{Cc}/gu

type Fields = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype

/**
 * Checks the details of an error that a child sent, because user code can write to the same pipe. Details that are too
 * large are left out. Throws `ProtocolViolation` for anything that the code of the child does not send.
 */
export const errorDetails = (value: unknown): ErrorDetails => {
  if (value instanceof RawJson) return {}
  if (!isObject(value)) throw unexpected('details', value)
  if (JSON.stringify(value).length > MAX_DETAILS || heapBytesOf(value) > MAX_HEAP) return {}
  const { location } = value
  return {
    ...namedOf(value),
    ...insideOf(value, 0),
    ...(location !== undefined && { location: locationOf(location) }),
  }
}

const namedOf = ({ name }: Fields): { name?: string } =>
  name === undefined ? {} : { name: textOf(name, 'name') }

const insideOf = (
  { fields, cause, errors }: Fields,
  level: number,
): { fields?: Record<string, unknown>; cause?: Thrown; errors?: Thrown[] } => {
  if ((cause !== undefined || errors !== undefined) && level >= MAX_CAUSES) throw unexpected('cause', cause)
  if (errors !== undefined && !Array.isArray(errors)) throw unexpected('errors', errors)
  return {
    ...(fields !== undefined && { fields: fieldsOf(fields) }),
    ...(cause !== undefined && { cause: thrownOf(cause, level + 1) }),
    ...(errors !== undefined && { errors: errors.map((each) => thrownOf(each, level + 1)) }),
  }
}

const thrownOf = (value: unknown, level: number): Thrown => {
  if (!isObject(value)) throw unexpected('cause', value)
  const { message, code, stack } = value
  if (code !== undefined && typeof code !== 'string' && typeof code !== 'number')
    throw unexpected('code', code)
  return {
    ...namedOf(value),
    message: textOf(message, 'message'),
    ...(code !== undefined && { code }),
    ...(stack !== undefined && { stack: textOf(stack, 'stack') }),
    ...insideOf(value, level),
  }
}

const fieldsOf = (value: unknown): Record<string, unknown> => {
  if (!isObject(value) || levelsOf(value) > MAX_FIELD_LEVELS) throw unexpected('fields', value)
  return value
}

/** Levels of objects and lists in a value whose size is known to be small. */
const levelsOf = (value: unknown): number =>
  typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(levelsOf)) : 0

const locationOf = (value: unknown): ErrorLocation => {
  if (!isObject(value)) throw unexpected('location', value)
  const { file, line, column, snippet } = value
  return {
    file: printable(textOf(file, 'file').slice(0, MAX_FILE)),
    line: positionOf(line),
    column: positionOf(column),
    ...(snippet !== undefined && { snippet: printable(textOf(snippet, 'snippet').slice(0, MAX_SNIPPET)) }),
  }
}

const positionOf = (value: unknown): number => {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0) return value
  throw unexpected('location', value)
}

const textOf = (value: unknown, name: string): string => {
  if (typeof value === 'string') return value
  throw unexpected(name, value)
}

const printable = (text: string): string => text.replace(CONTROL, '\ufffd')

const unexpected = (name: string, value: unknown): ProtocolViolation =>
  new ProtocolViolation(`Expected valid \`${name}\` of an error, got ${typeof value}`)
