import { isDeepStrictEqual } from 'node:util'

/** Plain JSON. */
export type Plain = string | number | boolean | null | readonly Plain[] | { readonly [field: string]: Plain }

/** The fields that a fact changed, by their path in the state. A new field has no `before`, a removed one no `after`. */
export type Changes = Readonly<Record<string, { readonly before?: Plain; readonly after?: Plain }>>

/** Copies a state to plain JSON: a map becomes an object, a set a list. */
export const plainOf = (value: unknown): Plain => {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') return Number.isFinite(value) ? value : null
  if (value instanceof Set || Array.isArray(value)) return [...value].map(plainOf)
  if (value instanceof Map) return plainFields([...value].map(([name, field]) => [String(name), field]))
  return typeof value === 'object' ? plainFields(Object.entries(value)) : null
}

const plainFields = (fields: readonly (readonly [string, unknown])[]): Plain =>
  Object.fromEntries(fields.flatMap(([name, field]) => (field === undefined ? [] : [[name, plainOf(field)]])))

/** Returns the differences of two states. */
export const changesBetween = (before: Plain, after: Plain): Changes =>
  Object.fromEntries(differences(before, after, []))

type Difference = readonly [path: string, change: Changes[string]]

const differences = (before: Plain, after: Plain, path: readonly string[]): Difference[] => {
  if (!isFields(before) || !isFields(after))
    return isDeepStrictEqual(before, after) ? [] : [[path.join('.'), { before, after }]]
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((name): Difference[] => {
    const at = [...path, name]
    const [was, is] = [fieldOf(before, name), fieldOf(after, name)]
    if (was === undefined) return is === undefined ? [] : [[at.join('.'), { after: is }]]
    return is === undefined ? [[at.join('.'), { before: was }]] : differences(was, is, at)
  })
}

/** A field may have the name of what every object inherits, such as `constructor`. */
const fieldOf = (fields: { readonly [field: string]: Plain }, name: string): Plain | undefined =>
  Object.hasOwn(fields, name) ? fields[name] : undefined

const isFields = (value: Plain): value is { readonly [field: string]: Plain } =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
