/** The maximum stored output of one run. The child cuts first; the worker checks again, because it trusts no child. */
export const MAX_OUTPUT_BYTES = 256 << 10
export const MAX_OUTPUT_LINES = 10_000

/** The last line of truncated output. */
export const OUTPUT_CUT = '… more output was cut off'

interface OutputLine {
  readonly source: 'stdout' | 'stderr'
  readonly text: string
}

/** Bounds the lines of one run: returns a line as it is stored, or null after the one that says that output was cut off. */
export const openOutputLimit = (): ((line: OutputLine) => OutputLine | null) => {
  let [bytes, lines] = [0, 0]
  const isTooMuch = () => bytes > MAX_OUTPUT_BYTES || lines > MAX_OUTPUT_LINES
  return ({ source, text }) => {
    if (isTooMuch()) return null
    bytes += Buffer.byteLength(text) + 1
    lines++
    return isTooMuch() ? { source: 'stderr', text: OUTPUT_CUT } : { source, text }
  }
}
