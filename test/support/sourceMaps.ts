const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

const digitsOf = (difference: number): string => {
  let rest = difference < 0 ? (-difference << 1) | 1 : difference << 1
  let text = ''
  do {
    const digit = rest & 31
    rest >>>= 5
    text += DIGITS[rest > 0 ? digit | 32 : digit] ?? ''
  } while (rest > 0)
  return text
}

/** A position in the generated file and its original, all from 0. Without a source, the position has no original. */
export interface Mapping {
  readonly line: number
  readonly column: number
  readonly source?: number
  readonly originalLine?: number
  readonly originalColumn?: number
}

/** The `mappings` of a source map, of positions in their order in the generated file. */
export const mappingsOf = (positions: readonly Mapping[]): string => {
  const lines: string[][] = []
  const before = { column: 0, source: 0, originalLine: 0, originalColumn: 0 }
  for (const { line, column, source, originalLine = 0, originalColumn = 0 } of positions) {
    while (lines.length <= line) {
      lines.push([])
      before.column = 0
    }
    let text = digitsOf(column - before.column)
    before.column = column
    if (source !== undefined) {
      text += digitsOf(source - before.source)
      text += digitsOf(originalLine - before.originalLine)
      text += digitsOf(originalColumn - before.originalColumn)
      Object.assign(before, { source, originalLine, originalColumn })
    }
    lines.at(-1)?.push(text)
  }
  return lines.map((segments) => segments.join(',')).join(';')
}

/** A source map that maps each line of the generated file to a line of the source; undefined: to none. */
export const mapOfLines = (
  source: string,
  content: string | null,
  lines: readonly (number | undefined)[],
): string =>
  JSON.stringify({
    version: 3,
    sources: [source],
    ...(content !== null && { sourcesContent: [content] }),
    mappings: mappingsOf(
      lines.flatMap((originalLine, line) =>
        originalLine === undefined ? [] : [{ line, column: 0, source: 0, originalLine }],
      ),
    ),
  })
