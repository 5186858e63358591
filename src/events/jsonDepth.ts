/** Levels of nesting in a value: deeper JSON would overflow the stack when it is stringified again. */
export const MAX_JSON_DEPTH = 1000

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** Returns whether a text nests more than `depth` levels. It is scanned, not parsed, so it need not be valid JSON. */
export const nestsDeeperThan = (depth: number, json: string): boolean => {
  if (json.length <= depth) return false // too short for that many brackets
  let level = 0
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at)
    if (code === QUOTE) {
      for (at++; at < json.length && json.charCodeAt(at) !== QUOTE; at++)
        if (json.charCodeAt(at) === BACKSLASH) at++
    } else if (code === OPEN_ARRAY || code === OPEN_OBJECT) {
      if (++level > depth) return true
    } else if (code === CLOSE_ARRAY || code === CLOSE_OBJECT) level--
  }
  return false
}
