import { Backoff } from '../loops/backoff.ts'

/** The wait for a machine that is too busy to start a process. */
export interface Patience {
  /** The time that the first attempt gets. */
  readonly probeMs?: number
  /** Receives the reason for each further attempt. */
  readonly onSlow?: (reason: string) => void
  /** Ends the wait: it rejects with its reason. */
  readonly signal?: AbortSignal
}

/** Why an attempt did not succeed; `LATE`: it got no more time. */
export type Failure = string | typeof LATE
export const LATE = Symbol('late')

/** The subject of the lines about an attempt: `No child process became ready`, ` in the process tier`. */
export interface Attempted {
  readonly late: string
  readonly refused: string
  readonly where?: string
}

/** The time that the first attempt gets, and the longest. Each gets twice the time of the one before. */
const PROBE_MS = 30_000
const LONGEST_PROBE_MS = 600_000

/** Failures of a machine without room for a process: they say nothing about what was tried. */
const NO_ROOM =
  /EAGAIN|ENOMEM|EMFILE|ENFILE|Resource temporarily unavailable|Cannot allocate memory|Too many open files|no file descriptors left|ended by SIGKILL/
/** Pauses before the next attempt then. */
const PAUSES = { firstMs: 1000, longestMs: 30_000 }

/** Whether a program failed because the machine had no room for it. */
export const lacksRoom = (output: string): boolean => NO_ROOM.test(output)

/**
 * Repeats an attempt while the machine is too busy for it. Resolves with null when it succeeds, or with the reason if the
 * machine refuses it.
 */
export const untilAnswered = async (
  { late, refused, where = '' }: Attempted,
  { probeMs = PROBE_MS, onSlow = () => {}, signal }: Patience,
  attempt: (ms: number) => Promise<Failure | null>,
): Promise<string | null> => {
  const pauses = new Backoff(PAUSES)
  let ms = probeMs
  for (;;) {
    const failure = await attempt(ms)
    signal?.throwIfAborted()
    if (failure === LATE) {
      const reason = `${late} within ${ms / 1000} s${where}`
      ms = Math.min(2 * ms, LONGEST_PROBE_MS)
      onSlow(`${reason}; trying again for ${ms / 1000} s`)
    } else if (failure !== null && lacksRoom(failure)) {
      onSlow(`${refused}${where}: ${failure}; trying again`)
      await pauses.pause(signal ? { signal } : {})
    } else return failure
    signal?.throwIfAborted()
  }
}
