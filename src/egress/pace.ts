/** New connections and lookups of one child: one for each of these intervals, after a burst. */
const EVERY_MS = 5
const BURST = 512

/**
 * Limits the rate of something to one for each interval, after a burst. Returns the milliseconds to wait, given
 * monotonic milliseconds.
 */
export const paced = (): ((now: number) => number) => {
  let next = Number.NEGATIVE_INFINITY
  return (now) => {
    const at = Math.max(next, now - BURST * EVERY_MS)
    next = at + EVERY_MS
    return Math.max(0, at - now)
  }
}
