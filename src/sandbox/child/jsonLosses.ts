/** Finds what JSON would change or leave out without an error. */
import { types } from 'node:util'
import { classOf, isPlain } from './ownFields.ts'

/** Characters of a path and of one of its names in a message. */
const MAX_PATH = 300
const MAX_KEY = 80

/** A value that JSON cannot represent, for the author of the function. */
export interface Loss {
  /** Such as `result.orders[2].tags`. */
  readonly path: string
  /** Such as `a Map; use Object.fromEntries(map)`. */
  readonly reason: string
}

type Key = string | number

/**
 * Returns the first value in `value` that JSON cannot represent; undefined if there is none. Objects with `toJSON` decide
 * themselves. As in JSON, `undefined` is left out of objects and is null in lists. Only `maxValues` are read: the JSON of
 * more is too large in any case. `root` is the name of the value in a path.
 */
export const lossIn = (
  value: unknown,
  { root, maxDepth, maxValues }: { root: string; maxDepth: number; maxValues: number },
): Loss | undefined => {
  const reason = reasonOf(value)
  if (reason !== undefined) return { path: root, reason }
  if (typeof value !== 'object' || value === null) return undefined
  const path: Key[] = []
  const above: object[] = []
  let values = maxValues

  const search = (object: object): string | undefined => {
    if (above.length >= maxDepth) return tooDeep(object)
    above.push(object)
    if (Array.isArray(object)) {
      for (let index = 0; index < object.length && values > 0; index++) {
        const found = searchIn(object[index], index)
        if (found !== undefined) return found
      }
    } else {
      for (const key of Object.keys(object)) {
        if (values <= 0) break
        const found = searchIn((object as Record<string, unknown>)[key], key)
        if (found !== undefined) return found
      }
    }
    above.pop()
    return undefined
  }

  /** The path of a circular reference ends where it closes. */
  const tooDeep = (object: object): string => {
    const seen = new Set<object>()
    for (const [level, each] of [...above, object].entries()) {
      if (seen.has(each)) {
        path.length = level
        return 'a circular reference: the object contains itself'
      }
      seen.add(each)
    }
    return `nested more than ${maxDepth} levels deep`
  }

  const searchIn = (each: unknown, key: Key): string | undefined => {
    if (--values < 0) return undefined
    if (typeof each === 'string' || typeof each === 'boolean' || each === null || each === undefined)
      return undefined
    const reason = typeof each === 'function' && !hasToJson(each) ? FUNCTION : reasonOf(each)
    if (reason === undefined && (typeof each !== 'object' || isOpaque(each))) return undefined
    path.push(key)
    const found = reason ?? search(each)
    if (found === undefined) path.pop()
    return found
  }

  const found = isOpaque(value) ? undefined : search(value)
  return found === undefined ? undefined : { path: `${root}${textOf(path)}`, reason: found }
}

const FUNCTION = 'a function, which JSON leaves out'

/** The reason for which JSON cannot represent the value itself; a function alone is a result of `null`. */
const reasonOf = (value: unknown): string | undefined => {
  switch (typeof value) {
    case 'number':
      return Number.isFinite(value) ? undefined : `${value}; use null or a text`
    case 'bigint':
      return 'a BigInt; use String(value)'
    case 'object':
      return value === null || isOpaque(value) || Array.isArray(value) || isPlain(value) || isSignal(value)
        ? undefined
        : reasonOfInstance(value)
    case 'symbol':
      return 'a symbol; use its description'
    default:
      return undefined
  }
}

/** JSON takes the value of `toJSON`, and of the objects of texts and numbers. A buffer would become a list of numbers. */
const isOpaque = (value: object): boolean =>
  (hasToJson(value) && !types.isUint8Array(value)) || types.isBoxedPrimitive(value)

/** Functions may return `currentRun()`, which contains one. */
const isSignal = (value: object): boolean => value instanceof AbortSignal

const hasToJson = (value: object): boolean =>
  typeof (value as { readonly toJSON?: unknown }).toJSON === 'function'

const reasonOfInstance = (value: object): string => {
  if (types.isMap(value)) return 'a Map; use Object.fromEntries(map)'
  if (types.isSet(value)) return 'a Set; use [...set]'
  if (types.isPromise(value)) return 'a Promise; await it'
  if (types.isNativeError(value)) return `an error (${classOf(value)}); use its message`
  if (types.isGeneratorObject(value)) return 'a generator; collect its values'
  if (types.isAnyArrayBuffer(value) || ArrayBuffer.isView(value))
    return `bytes (${classOf(value)}); use Buffer.from(bytes).toString('base64')`
  return `an instance of ${classOf(value)}; use a plain object, or give the class a toJSON()`
}

const textOf = (path: readonly Key[]): string => {
  const text = path
    .map((key) =>
      typeof key === 'number'
        ? `[${key}]`
        : /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(key)
          ? `.${key.slice(0, MAX_KEY)}`
          : `[${JSON.stringify(key.slice(0, MAX_KEY))}]`,
    )
    .join('')
  return text.length > MAX_PATH ? `${text.slice(0, MAX_PATH / 2)}…${text.slice(-MAX_PATH / 2)}` : text
}
