import { elapsedMs, instantNow } from '../clock.ts'
import type { Cursor } from '../events/event.ts'
import { Backoff } from '../loops/backoff.ts'

/** Interval of looks at the clocks, milliseconds. */
const LOOK_MS = 500
/** A process that did nothing for this long may have been declared lost soon after: `LOST_MS` of `cluster/liveness.ts`. */
const PAUSED_MS = 3000
const PAUSES = { firstMs: 50, longestMs: 1000 }

interface Deps {
  /** The end of the log. */
  readonly head: () => Promise<Cursor>
  /** Resolves when the worker has read the facts about itself up to a cursor, or the signal aborts. */
  readonly reached: (cursor: Cursor, signal: AbortSignal) => Promise<void>
  /** Whether the event store has not been reached for so long that the others may have declared the worker lost. */
  readonly isCutOff: () => boolean
  /** Called when the worker is sure again. */
  readonly onSure: () => void
  readonly signal: AbortSignal
}

/**
 * Notices that this process was paused, that its machine was suspended, or that it is cut off from the event store. The
 * others may have declared the worker lost, and it reads that in the log a moment after it continues. Until then it is not
 * sure of its id: what it claims would be lost at once.
 */
export class PauseWatch {
  readonly #deps: Deps
  #seen = instantNow()
  #checking: Promise<void> | undefined
  #isPausedAgain = false

  constructor(deps: Deps) {
    this.#deps = deps
    const looking = setInterval(() => void this.isSure, LOOK_MS).unref()
    deps.signal.addEventListener('abort', () => clearInterval(looking), { once: true })
  }

  /** Whether the worker knows all facts about itself that were stored during its last pause. */
  get isSure(): boolean {
    this.#look()
    return this.#checking === undefined
  }

  /** Resolves when it is sure, or the signal aborts. */
  async sure(): Promise<void> {
    while (!this.isSure && !this.#deps.signal.aborted) await this.#checking
  }

  #look(): void {
    const now = instantNow()
    const passed = elapsedMs(this.#seen, now.monotonic, now.wall)
    this.#seen = now
    if (passed < PAUSED_MS && !this.#deps.isCutOff()) return
    this.#isPausedAgain = true
    this.#checking ??= this.#check()
  }

  async #check(): Promise<void> {
    const { head, reached, onSure, signal } = this.#deps
    const backoff = new Backoff(PAUSES)
    while (this.#isPausedAgain && !signal.aborted) {
      this.#isPausedAgain = false
      try {
        await reached(await head(), signal)
      } catch {
        this.#isPausedAgain = true // the store does not answer
        await backoff.pause({ signal })
      }
    }
    this.#checking = undefined
    onSure()
  }
}
