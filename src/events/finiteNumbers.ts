import { isObject } from './isObject.ts'

/**
 * What a number beyond a double has: an exponent of three digits, or more digits than one of two digits can leave finite.
 * The look-behind keeps the search linear.
 */
const PERHAPS_TOO_LARGE = /[eE]\+?\d{3}|(?<!\d)\d{200}/

/** The rest of a number from its first digit. */
const NUMBER = /\d[\d.eE+-]*/y

const QUOTE = 0x22
const BACKSLASH = 0x5c

/**
 * Returns the path of a number that JSON can write and a double cannot have, such as `event_data.n` for `1e400`; undefined
 * if there is none. It would be stored as `null`. Only the text is searched, unless it contains such a number.
 */
export const tooLargeNumberIn = (value: unknown, json: string): string | undefined =>
  PERHAPS_TOO_LARGE.test(json) && writesInfinity(json) ? infinityIn(value)?.join('.') : undefined

/** Whether JSON contains a number beyond a double. A walk of its value takes longer than its parse. */
const writesInfinity = (json: string): boolean => {
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at)
    if (code === QUOTE) {
      for (at++; at < json.length && json.charCodeAt(at) !== QUOTE; at++)
        if (json.charCodeAt(at) === BACKSLASH) at++
    } else if (code >= 0x30 && code <= 0x39) {
      NUMBER.lastIndex = at
      const [number = ''] = NUMBER.exec(json) ?? []
      if (!Number.isFinite(Number(number))) return true
      at += number.length - 1
    }
  }
  return false
}

const infinityIn = (value: unknown): string[] | undefined => {
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : []
  if (!Array.isArray(value) && !isObject(value)) return undefined
  // Pairs of names and values would take longer than the parse of the JSON.
  for (const name of Array.isArray(value) ? value.keys() : Object.keys(value)) {
    const found = infinityIn((value as Readonly<Record<string, unknown>>)[name])
    if (found) return [String(name), ...found]
  }
  return undefined
}
