import { createHash } from 'node:crypto'
import { clock } from '../clock.ts'
import { messageOf } from '../errors.ts'
import type { Logger } from '../logger.ts'
import type { Hints } from '../ports/hints.ts'
import { type Claimer, type RunOffers, sessionOf, type WantedRun } from '../ports/claimer.ts'

/** The interval at which workers announce whether they have room, milliseconds. */
const ANNOUNCE_MS = 400
/** An announcement is trusted for this time; for a REPL longer, because it must reach the same worker again. */
const KNOWN_MS = 1000
const KNOWN_TO_SESSION_MS = 3000
/** Longer runs use only the log, because every node receives every offer. */
const MAX_LENGTH = 16 << 10

/**
 * Offers runs with a waiting caller to a worker, which then requests and claims them in one append (decision 0018). An
 * offer that no worker takes delays the caller, but never loses a run.
 */
export class Offers implements RunOffers {
  readonly #hints: Hints
  /** Workers with room, and the time of their announcement; the worker with the latest offer is last. */
  readonly #rooms = new Map<string, number>()

  constructor(hints: Hints) {
    this.#hints = hints
    hints.on('room', (text) => {
      const [worker_id = '', room] = text.split(' ')
      if (room === 'yes') this.#rooms.set(worker_id, clock.monotonic())
      else this.#rooms.delete(worker_id)
    })
  }

  /** Offers the run to one worker; returns false when there is none. */
  make(run: WantedRun): boolean {
    const session = sessionOf(run)
    const worker_id = session === undefined ? this.#next() : this.#sameFor(session)
    if (worker_id === undefined || !this.#hints.connected) return false
    const text = JSON.stringify(run)
    if (text.length > MAX_LENGTH) return false
    this.#hints.publish('offered', `${worker_id} ${text}`)
    return true
  }

  /** Returns the same worker on every node while it has room. When a worker disappears, only its sessions move. */
  #sameFor(session: string): string | undefined {
    const rank = (worker_id: string) => createHash('sha256').update(`${session} ${worker_id}`).digest('hex')
    const since = clock.monotonic() - KNOWN_TO_SESSION_MS
    const [first] = [...this.#rooms]
      .flatMap(([worker_id, announcedAt]) =>
        announcedAt < since ? [] : [{ worker_id, rank: rank(worker_id) }],
      )
      .sort((a, b) => (a.rank < b.rank ? 1 : -1))
    return first?.worker_id
  }

  #next(): string | undefined {
    const now = clock.monotonic()
    for (const [worker_id, announcedAt] of this.#rooms) {
      if (now - announcedAt > KNOWN_TO_SESSION_MS) this.#rooms.delete(worker_id)
      if (now - announcedAt > KNOWN_MS) continue
      this.#rooms.delete(worker_id)
      this.#rooms.set(worker_id, announcedAt)
      return worker_id
    }
    return undefined
  }
}

/** Announces whether the worker has room, and takes the runs offered to it, until the signal aborts. */
export const takeOffers = (
  claimer: Claimer,
  hints: Hints,
  { signal, logger }: { signal: AbortSignal; logger: Logger },
) => {
  const announce = () => hints.publish('room', `${claimer.worker_id} ${claimer.hasRoom ? 'yes' : 'no'}`)
  const stop = hints.on('offered', (text) => {
    if (!text.startsWith(`${claimer.worker_id} `) || !claimer.hasRoom) return
    const run = JSON.parse(text.slice(claimer.worker_id.length + 1)) as WantedRun
    claimer.take(run).catch((error: unknown) =>
      logger.warn('An offered run could not be claimed', {
        run_id: run.plan.run_id,
        error: messageOf(error),
      }),
    )
  })
  const announcing = setInterval(announce, ANNOUNCE_MS)
  announce()
  signal.addEventListener(
    'abort',
    () => {
      clearInterval(announcing)
      stop()
      announce()
    },
    { once: true },
  )
}
