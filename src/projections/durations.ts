/**
 * Durations as a histogram with buckets of growing width, like the exponential histogram of OpenTelemetry: 16 buckets for
 * each doubling. Histograms of equal buckets are merged by adding their counts.
 */
export interface Durations {
  /** The number of durations by bucket. */
  readonly [bucket: string]: number
}

/** Buckets for each doubling of the duration. */
const PER_DOUBLING = 16
/** Upper bound of a bucket divided by its lower bound. */
const WIDTH = 2 ** (1 / PER_DOUBLING)
/** Longer durations are counted as this one, milliseconds: 49 days. Its bucket is the last of 514. */
const LONGEST_MS = 2 ** 32
/** The relative error of a percentile: a value in the middle of a bucket is at most this far from each of the bucket. */
export const RELATIVE_ERROR = (WIDTH - 1) / (WIDTH + 1)

/** Returns the bucket of a duration: 0 below a millisecond, 1 for a millisecond. A negative duration is one of 0 ms. */
export const bucketOf = (ms: number): number =>
  ms >= 1 ? 1 + Math.ceil(PER_DOUBLING * Math.log2(Math.min(ms, LONGEST_MS))) : 0

const middleOf = (bucket: number): number => (bucket === 0 ? 0 : (2 * WIDTH ** (bucket - 1)) / (1 + WIDTH))

/** Returns the number of durations. */
export const countOf = (durations: Durations): number => Object.values(durations).reduce(sum, 0)
const sum = (a: number, b: number): number => a + b

/** Merges histograms. */
export const mergedDurations = (all: Iterable<Durations>): Durations => {
  const merged: Record<string, number> = {}
  for (const durations of all)
    for (const [bucket, count] of Object.entries(durations)) merged[bucket] = (merged[bucket] ?? 0) + count
  return merged
}

/**
 * Returns the duration in milliseconds that `percent` of the durations do not exceed (nearest rank), within
 * `RELATIVE_ERROR`; null if there is none.
 */
export const percentileOf = (durations: Durations, percent: number): number | null => {
  const rank = Math.max(1, Math.ceil((percent / 100) * countOf(durations)))
  let passed = 0
  for (const [bucket, count] of Object.entries(durations)) {
    passed += count // integer keys are in ascending order
    if (passed >= rank) return middleOf(Number(bucket))
  }
  return null
}
