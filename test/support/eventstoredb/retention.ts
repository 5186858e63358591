import { clock } from '../../../src/clock.ts'
import { type Stored, textOf } from './stored.ts'

/** What the metadata of a stream hides from its readers; `$all` shows it all the same. */
export interface Retention {
  readonly maxAgeMs?: number
  readonly maxCount?: number
  /** The first revision that is shown; `DELETED` when the stream was deleted and can be opened again. */
  readonly from?: number
}

/** `$tb` of a deleted stream as JSON reads it: 2^63 - 1 is no double. */
export const DELETED = 2 ** 63

/** Streams of metadata show their last event alone. */
export const OF_METADATA: Retention = { maxCount: 1 }

export const retentionOf = (metadata: Stored): Retention => {
  const { $maxAge, $maxCount, $tb } = fieldsOf(metadata)
  return {
    ...(typeof $maxAge === 'number' ? { maxAgeMs: $maxAge * 1000 } : {}),
    ...(typeof $maxCount === 'number' ? { maxCount: $maxCount } : {}),
    ...(typeof $tb === 'number' ? { from: $tb } : {}),
  }
}

export const fieldsOf = (metadata: Stored): Record<string, unknown> => {
  try {
    return JSON.parse(textOf(metadata.data)) as Record<string, unknown>
  } catch {
    return {} // what is no JSON hides nothing
  }
}

/** The first revision that readers see; the number of events when they see none. */
export const firstShown = (
  events: readonly Stored[],
  { maxAgeMs = Infinity, maxCount = Infinity, from = 0 }: Retention,
): number => {
  let first = Math.min(Math.max(from, events.length - maxCount, 0), events.length)
  const oldest = clock.now() - maxAgeMs
  while (first < events.length && (events[first] as Stored).created < oldest) first++
  return first
}
