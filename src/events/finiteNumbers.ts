import { isObject } from './isObject.ts'

/**
 * What a number beyond a double has: an exponent of three digits, or more digits than one of two digits can leave finite.
 * The look-behind keeps the search linear.
 */
const PERHAPS_TOO_LARGE = /[eE]\+?\d{3}|(?<!\d)\d{200}/

/**
 * Returns the path of a number that JSON can write and a double cannot have, such as `event_data.n` for `1e400`; undefined
 * if there is none. It would be stored as `null`. Only the text is searched, unless it may contain such a number.
 */
export const tooLargeNumberIn = (value: unknown, json: string): string | undefined =>
  PERHAPS_TOO_LARGE.test(json) ? infinityIn(value)?.join('.') : undefined

const infinityIn = (value: unknown): string[] | undefined => {
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : []
  if (!Array.isArray(value) && !isObject(value)) return undefined
  // `Object.entries` of a long list would take longer than the parse of its JSON.
  for (const [name, part] of Array.isArray(value) ? value.entries() : Object.entries(value)) {
    const found = infinityIn(part)
    if (found) return [String(name), ...found]
  }
  return undefined
}
