/** The one place that reads the clock; deciders get `now` inside their command. */
export const clock = {
  /** Milliseconds since 1970. */
  now: (): number => Date.now(),
  /** ISO 8601 UTC. */
  iso: (): string => new Date(Date.now()).toISOString(),
  /** Monotonic milliseconds, for durations. */
  monotonic: (): number => performance.now(),
}

/** Milliseconds since 1970 as ISO 8601 UTC. */
export const isoOf = (ms: number): string => new Date(ms).toISOString()
