let lastMs = NaN
let lastIso = ''

/** The time at which the clock of this process stands still; null: it runs. */
let stoppedAt: number | null = null
const listeners = new Set<() => void>()

/** Only this file reads the clock. Deciders and sagas receive `now`. */
export const clock = {
  /** Milliseconds since 1970. */
  now: (): number => stoppedAt ?? Date.now(),
  /** ISO 8601 UTC. Under load it is read many times in a millisecond, so the text is cached. */
  iso: (): string => {
    const ms = clock.now()
    if (ms !== lastMs) {
      lastMs = ms
      lastIso = new Date(ms).toISOString()
    }
    return lastIso
  },
  /** Monotonic milliseconds, for durations. */
  monotonic: (): number => performance.now(),
}

/** Stops the clock of this process and moves it, for tests of functions. Durations and timers remain real. */
export const virtualClock = {
  get isStopped(): boolean {
    return stoppedAt !== null
  },
  /** Milliseconds since 1970; null: the clock runs again. */
  set(ms: number | null): void {
    stoppedAt = ms
    const present = [...listeners] // they may listen again, for the next move
    for (const listener of present) listener()
  },
  /** Calls back at each move, until the returned function is called. */
  onMove(listener: () => void): () => void {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  },
  /** As `clock.monotonic`, but it stands still with the clock. */
  monotonic: (): number => stoppedAt ?? performance.now(),
}

/** The time of the machine, for timers. */
export const wallNow = (): number => Date.now()

/** An instant on both clocks of the machine. */
export interface Instant {
  readonly monotonic: number
  readonly wall: number
}

export const instantNow = (): Instant => ({ monotonic: clock.monotonic(), wall: wallNow() })

/**
 * Milliseconds since an instant, by the clock that has moved further: the monotonic clock stands still while the machine is
 * suspended, and the other one may be set back.
 */
export const elapsedMs = (
  { monotonic, wall }: Instant,
  monotonicNow = clock.monotonic(),
  nowOfWall = wallNow(),
): number => Math.max(monotonicNow - monotonic, nowOfWall - wall)

/** Milliseconds since 1970 as ISO 8601 UTC. */
export const isoOf = (ms: number): string => new Date(ms).toISOString()
