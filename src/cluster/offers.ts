import { createHash } from 'node:crypto'
import { clock } from '../clock.ts'
import { messageOf } from '../errors.ts'
import type { Logger } from '../logger.ts'
import type { Directory } from '../projections/directory.ts'
import type { Hints } from '../ports/hints.ts'
import { type Claimer, type RunOffers, sessionOf, type WantedRun } from '../ports/claimer.ts'

/** The interval at which workers announce whether they have room, milliseconds. */
const ANNOUNCE_MS = 400
/** An announcement is trusted for this time; for a REPL longer, because it must reach the same worker again. */
const KNOWN_MS = 1000
const KNOWN_TO_SESSION_MS = 3000
/** Organizations without room that an announcement names. */
const MAX_FULL_FOR = 100
/** Longer runs use only the log, because every node receives every offer. */
const MAX_LENGTH = 16 << 10

/** The announcement of a worker with room. */
interface Room {
  /** Monotonic milliseconds. */
  readonly announcedAt: number
  /** The organizations for which it has none. */
  readonly fullFor: ReadonlySet<string>
}

/**
 * Offers runs with a waiting caller to a worker, which then requests and claims them in one append (decision 0018). An
 * offer that no worker takes delays the caller, but never loses a run.
 */
export class Offers implements RunOffers {
  readonly #hints: Hints
  readonly #directory: Pick<Directory, 'orgIdOf'>
  /** Workers with room; the worker with the latest offer is last. */
  readonly #rooms = new Map<string, Room>()

  constructor(hints: Hints, directory: Pick<Directory, 'orgIdOf'>) {
    this.#hints = hints
    this.#directory = directory
    hints.on('room', (text) => {
      const [worker_id = '', room, fullFor = ''] = text.split(' ')
      if (room === 'yes')
        this.#rooms.set(worker_id, { announcedAt: clock.monotonic(), fullFor: new Set(fullFor.split(',')) })
      else this.#rooms.delete(worker_id)
    })
  }

  /** Offers the run to one worker; returns false when there is none. */
  make(run: WantedRun): boolean {
    const session = sessionOf(run)
    const worker_id =
      session === undefined ? this.#next(this.#directory.orgIdOf(run.cause.env_id)) : this.#sameFor(session)
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
      .flatMap(([worker_id, { announcedAt }]) =>
        announcedAt < since ? [] : [{ worker_id, rank: rank(worker_id) }],
      )
      .sort((a, b) => (a.rank < b.rank ? 1 : -1))
    return first?.worker_id
  }

  #next(org_id: string): string | undefined {
    const now = clock.monotonic()
    for (const [worker_id, room] of this.#rooms) {
      if (now - room.announcedAt > KNOWN_TO_SESSION_MS) this.#rooms.delete(worker_id)
      if (now - room.announcedAt > KNOWN_MS || room.fullFor.has(org_id)) continue
      this.#rooms.delete(worker_id)
      this.#rooms.set(worker_id, room)
      return worker_id
    }
    return undefined
  }
}

/** Announces for which organizations the worker has room, and takes the runs offered to it, until the signal aborts. */
export const takeOffers = (
  claimer: Claimer,
  hints: Hints,
  { signal, logger }: { signal: AbortSignal; logger: Logger },
) => {
  const announce = () =>
    hints.publish(
      'room',
      claimer.isOpen
        ? `${claimer.worker_id} yes ${claimer.fullFor.slice(0, MAX_FULL_FOR).join(',')}`
        : `${claimer.worker_id} no`,
    )
  const stop = hints.on('offered', (text) => {
    if (text.startsWith(`${claimer.worker_id} `)) void take(text.slice(claimer.worker_id.length + 1))
  })
  /** Never rejects: another build may offer runs that this one cannot read. */
  const take = async (json: string): Promise<void> => {
    let run: WantedRun | undefined
    try {
      run = JSON.parse(json) as WantedRun
      if (claimer.hasRoom(run.cause.env_id)) await claimer.take(run)
    } catch (error) {
      logger.warn('An offered run could not be claimed', {
        run_id: run?.plan?.run_id,
        error: messageOf(error),
      })
    }
  }
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
