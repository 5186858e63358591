/** The most output that is stored of one run. The child cuts first; the worker repeats the check, because it trusts no child. */
export const MAX_OUTPUT_BYTES = 256 << 10

/** The last line of output that was cut. */
export const OUTPUT_CUT = '… more output was cut off'
