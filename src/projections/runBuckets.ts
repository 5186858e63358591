/** The lengths of buckets: intervals of time in UTC. */
export type Interval = 'minute' | 'hour' | 'day'
export const intervals = ['minute', 'hour', 'day'] as const satisfies readonly Interval[]

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

interface Resolution {
  readonly bucketMs: number
  /** Buckets in one document. A document has a few kilobytes, because each change writes it as a whole. */
  readonly perDoc: number
  /** Days for which the buckets are kept; null: for ever. */
  readonly keptDays: number | null
}

export const resolutions: Readonly<Record<Interval, Resolution>> = {
  minute: { bucketMs: MINUTE_MS, perDoc: 15, keptDays: 4 },
  hour: { bucketMs: HOUR_MS, perDoc: 6, keptDays: 400 },
  day: { bucketMs: DAY_MS, perDoc: 10, keptDays: null },
}

const docMsOf = ({ bucketMs, perDoc }: Resolution): number => bucketMs * perDoc

/** Documents of one resolution that are kept: a newer one takes the place of the oldest. One more, because the newest is not complete. */
const placesOf = (resolution: Resolution): number | null =>
  resolution.keptDays === null ? null : (resolution.keptDays * DAY_MS) / docMsOf(resolution) + 1

/** One of the consecutive periods, counted from 1970, whose buckets are in one document. */
export interface Period {
  readonly interval: Interval
  readonly number: number
}

/** Returns the period of an instant (milliseconds since 1970). */
export const periodAt = (interval: Interval, ms: number): Period => ({
  interval,
  number: Math.floor(ms / docMsOf(resolutions[interval])),
})

/** Returns the number of the bucket of an instant within its period. */
export const bucketAt = ({ interval, number }: Period, ms: number): number => {
  const resolution = resolutions[interval]
  return Math.floor((ms - number * docMsOf(resolution)) / resolution.bucketMs)
}

/** Returns the place of the document of a period. Periods share a place when the earlier one is not kept any more. */
export const placeOf = ({ interval, number }: Period): string => {
  const places = placesOf(resolutions[interval])
  return `${interval}/${places === null ? number : number % places}`
}

/** Returns the instant at which a period ends (milliseconds since 1970). */
export const endOf = ({ interval, number }: Period): number => (number + 1) * docMsOf(resolutions[interval])

/** Returns the first instant (milliseconds since 1970) whose buckets are still kept at `now`. */
export const keptFrom = (interval: Interval, now: number): number => {
  const { bucketMs, keptDays } = resolutions[interval]
  return keptDays === null ? 0 : startOfBucket(now - keptDays * DAY_MS, bucketMs)
}

export const startOfBucket = (ms: number, bucketMs: number): number => Math.floor(ms / bucketMs) * bucketMs
