let lastMs = 0
let lastIso = ''

/** The one place that reads the clock; deciders get `now` inside their command. */
export const clock = {
  /** Milliseconds since 1970. */
  now: (): number => Date.now(),
  /** ISO 8601 UTC. Asked for many times in a millisecond under load, so the text is kept. */
  iso: (): string => {
    const ms = Date.now()
    if (ms !== lastMs) {
      lastMs = ms
      lastIso = new Date(ms).toISOString()
    }
    return lastIso
  },
  /** Monotonic milliseconds, for durations. */
  monotonic: (): number => performance.now(),
}

/** Milliseconds since 1970 as ISO 8601 UTC. */
export const isoOf = (ms: number): string => new Date(ms).toISOString()
