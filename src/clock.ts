let lastMs = 0
let lastIso = ''

/** Only this file reads the clock. Deciders and sagas receive `now`. */
export const clock = {
  /** Milliseconds since 1970. */
  now: (): number => Date.now(),
  /** ISO 8601 UTC. Under load it is read many times in a millisecond, so the text is cached. */
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
