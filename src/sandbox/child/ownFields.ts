import { types } from 'node:util'
import { MASK } from '../../events/mask.ts'
import { endOfPart } from '../frames.ts'

/** What is left of the room for the details of one error, in characters. */
export interface Room {
  left: number
}

/** Bounds of the own fields of an error: they are for people. */
const MAX_LEVELS = 5
const MAX_ENTRIES = 32
const MAX_TEXT = 1024
const MAX_KEY = 128
/** The room that a list or an object takes: its memory, which is more than its text. */
const CONTAINER = 64

/** Fields whose values are secrets, such as the headers of a request in the error of an HTTP client. */
const SECRET =
  /^(?:(?:proxy-)?authorization|(?:set-)?cookie|.*(?:password|passwd|secret|api[-_]?key|private[-_]?key)|(?:.*[-_])?token)$/i

const CUT = '…'

/**
 * Copies the own fields of an object as JSON that is small, without `except`. Getters are not called, and instances of
 * classes are named only, because they may contain half of the process.
 */
export const ownFieldsOf = (
  value: object,
  except: ReadonlySet<string>,
  { room, shown }: { room: Room; shown: (text: string) => string },
): Record<string, unknown> | undefined => {
  function plain(each: unknown, level: number): unknown {
    if (typeof each === 'string') return text(shown(each.slice(0, 2 * MAX_TEXT)))
    if (typeof each === 'number') return Number.isFinite(each) ? each : String(each)
    if (typeof each === 'boolean' || each === null) return each
    if (typeof each === 'bigint' || typeof each === 'symbol') return text(String(each))
    if (typeof each !== 'object') return undefined
    if (types.isProxy(each)) return '[Proxy]'
    if (types.isDate(each)) return Number.isNaN(each.getTime()) ? 'Invalid Date' : each.toISOString()
    if (types.isNativeError(each)) return text(shown(`${String(each.name)}: ${String(each.message)}`))
    if (each instanceof URL) return text(each.href)
    if (level >= MAX_LEVELS || room.left <= 0) return CUT
    room.left -= CONTAINER
    if (Array.isArray(each)) {
      const items = each.slice(0, MAX_ENTRIES).map((item: unknown) => plain(item, level + 1) ?? null)
      return each.length > MAX_ENTRIES ? [...items, `${CUT} ${each.length - MAX_ENTRIES} more`] : items
    }
    if (!isPlain(each)) return `[${classOf(each)}]`
    return entriesOf(each, NONE, (item) => plain(item, level + 1)) ?? {}
  }

  function text(given: string): string {
    const cut = given.length > MAX_TEXT ? `${given.slice(0, endOfPart(given, 0, MAX_TEXT - 1))}${CUT}` : given
    room.left -= cut.length
    return cut
  }

  function entriesOf(
    object: object,
    without: ReadonlySet<string>,
    convert: (each: unknown) => unknown,
  ): Record<string, unknown> | undefined {
    const entries: [string, unknown][] = []
    const keys = Object.keys(object).filter((key) => !without.has(key))
    for (const key of keys) {
      if (entries.length === MAX_ENTRIES || room.left <= 0) {
        entries.push([CUT, `${keys.length - entries.length} more`])
        break
      }
      const descriptor = Object.getOwnPropertyDescriptor(object, key)
      if (!descriptor || !('value' in descriptor)) continue
      const converted = SECRET.test(key) && descriptor.value !== null ? MASK : convert(descriptor.value)
      if (converted === undefined) continue
      room.left -= key.length
      entries.push([key.slice(0, MAX_KEY), converted])
    }
    return entries.length === 0 ? undefined : Object.fromEntries(entries)
  }

  return entriesOf(value, except, (each) => plain(each, 1))
}

const NONE: ReadonlySet<string> = new Set()

/** Evaluated code runs in a context with its own `Object`. */
export const isPlain = (value: object): boolean => {
  const prototype = Object.getPrototypeOf(value) as object | null
  return (
    prototype === null ||
    (Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'isPrototypeOf'))
  )
}

/** The name of the class of a value, for messages. */
export const classOf = (value: object): string => {
  const prototype: unknown = Object.getPrototypeOf(value)
  const { constructor } = (prototype ?? {}) as { readonly constructor?: unknown }
  const name: unknown = typeof constructor === 'function' ? constructor.name : undefined
  return typeof name === 'string' && name !== '' ? name.slice(0, MAX_KEY) : 'object'
}
