import { createHash } from 'node:crypto'
import { clock } from '../clock.ts'
import { messageOf } from '../errors.ts'
import type { Logger } from '../logger.ts'
import type { Hints } from '../ports/hints.ts'
import { type Claimer, type RunOffers, sessionOf, type WantedRun } from '../ports/claimer.ts'

/** Workers tell this often whether they have room, milliseconds. */
const TELL_MS = 400
/** And are believed for this long; longer where it matters more to meet the same one than to be fast. */
const KNOWN_MS = 1000
const KNOWN_TO_SESSION_MS = 3000
/** Longer ones go through the log alone: every node hears an offer. */
const MAX_LENGTH = 16 << 10

/**
 * Runs that somebody waits for are offered to a worker directly, which then asks for them and claims them in one append
 * (decision 0018). An offer that nobody takes costs the one who made it the time it waits, never a run.
 */
export class Offers implements RunOffers {
  readonly #hints: Hints
  /** Workers with room, and when they told so; the one that was offered something last stands last. */
  readonly #rooms = new Map<string, number>()

  constructor(hints: Hints) {
    this.#hints = hints
    hints.on('room', (text) => {
      const [worker_id = '', room] = text.split(' ')
      if (room === 'yes') this.#rooms.set(worker_id, clock.monotonic())
      else this.#rooms.delete(worker_id)
    })
  }

  /** Offers the run to one worker; false when there is none to offer it to. */
  make(run: WantedRun): boolean {
    const session = sessionOf(run)
    const worker_id = session === undefined ? this.#next() : this.#sameFor(session)
    if (worker_id === undefined || !this.#hints.connected) return false
    const text = JSON.stringify(run)
    if (text.length > MAX_LENGTH) return false
    this.#hints.publish('offered', `${worker_id} ${text}`)
    return true
  }

  /** The same worker as long as it has room, whoever asks; when it goes, only its sessions move. */
  #sameFor(session: string): string | undefined {
    const rank = (worker_id: string) => createHash('sha256').update(`${session} ${worker_id}`).digest('hex')
    const since = clock.monotonic() - KNOWN_TO_SESSION_MS
    const [first] = [...this.#rooms]
      .flatMap(([worker_id, told]) => (told < since ? [] : [{ worker_id, rank: rank(worker_id) }]))
      .sort((a, b) => (a.rank < b.rank ? 1 : -1))
    return first?.worker_id
  }

  #next(): string | undefined {
    const now = clock.monotonic()
    for (const [worker_id, told] of this.#rooms) {
      if (now - told > KNOWN_TO_SESSION_MS) this.#rooms.delete(worker_id)
      if (now - told > KNOWN_MS) continue
      this.#rooms.delete(worker_id)
      this.#rooms.set(worker_id, told)
      return worker_id
    }
    return undefined
  }
}

/** Tells whether the worker has room, and takes what is offered to it, until the signal aborts. */
export const takeOffers = (
  claimer: Claimer,
  hints: Hints,
  { signal, logger }: { signal: AbortSignal; logger: Logger },
) => {
  const tell = () => hints.publish('room', `${claimer.worker_id} ${claimer.hasRoom ? 'yes' : 'no'}`)
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
  const telling = setInterval(tell, TELL_MS)
  tell()
  signal.addEventListener(
    'abort',
    () => {
      clearInterval(telling)
      stop()
      tell()
    },
    { once: true },
  )
}
