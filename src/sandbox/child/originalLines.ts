/**
 * The lines of a TypeScript module that its stripping changed, as comments at the end of the stripped module. Messages
 * show the source as its author wrote it, and lines and columns remain.
 */

const MARK = '//# svc-line='

/** Adds the lines of `original` that differ in `stripped`. */
export const withOriginalLines = (stripped: string, original: string): string => {
  const before = original.split('\n')
  const after = stripped.split('\n')
  const changed = before.flatMap((text, index) => (text === after[index] ? [] : [commentOf(index + 1, text)]))
  return changed.length === 0 ? stripped : `${stripped}\n${changed.join('\n')}\n`
}

/** JSON may contain line breaks of JavaScript that are none of JSON. */
const commentOf = (line: number, text: string): string =>
  `${MARK}${line}:${JSON.stringify(text).replace(/[\u2028\u2029]/g, (each) => `\\u${each.charCodeAt(0).toString(16)}`)}`

/** The original of a line, counted from 1; undefined if it was not changed. */
export const originalLine = (module: string, line: number): string | undefined => {
  const start = `\n${MARK}${line}:`
  const at = module.lastIndexOf(start)
  if (at < 0) return undefined
  const end = module.indexOf('\n', at + start.length)
  try {
    const text: unknown = JSON.parse(module.slice(at + start.length, end < 0 ? undefined : end))
    return typeof text === 'string' ? text : undefined
  } catch {
    return undefined // a comment of the user
  }
}
