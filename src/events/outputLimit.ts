/** The maximum stored output of one run. The child cuts first; the worker checks again, because it trusts no child. */
export const MAX_OUTPUT_BYTES = 256 << 10
export const MAX_OUTPUT_LINES = 10_000

/** The last line of truncated output. */
export const OUTPUT_CUT = '… more output was cut off'
