import { clock } from '../../../src/clock.ts'
import { type Stored, textOf } from './stored.ts'

/** The rules by which metadata hides events of a stream. `$all` still contains them. */
export interface Retention {
  readonly maxAgeMs?: number
  readonly maxCount?: number
  /** The first visible revision; `DELETED` if the stream was deleted and can be opened again. */
  readonly from?: number
}

/** `$tb` of a deleted stream, as parsed from JSON: 2^63 - 1 is not exact as a double. */
export const DELETED = 2 ** 63

/** Only the last event of a metadata stream is visible. */
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
    return {} // invalid JSON hides nothing
  }
}

/** Returns the first visible revision; the number of events if none is visible. */
export const firstShown = (
  events: readonly Stored[],
  { maxAgeMs = Infinity, maxCount = Infinity, from = 0 }: Retention,
): number => {
  let first = Math.min(Math.max(from, events.length - maxCount, 0), events.length)
  const oldest = clock.now() - maxAgeMs
  while (first < events.length && (events[first] as Stored).created < oldest) first++
  return first
}
