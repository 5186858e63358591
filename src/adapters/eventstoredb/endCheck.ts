import { Backoff } from '../../loops/backoff.ts'

/** Most followers have ended before the first question. The follower of a stream without events is asked about again. */
const PAUSES = { firstMs: 1000, longestMs: 60_000 }

/**
 * Checks that a follower which waits has read everything. An empty page may come from a read that the server ended too
 * early: the follower would wait for an event that is stored already.
 */
export class EndCheck {
  readonly #lastRevision: () => Promise<number | null>
  readonly #onMissed: () => void
  #backoff = new Backoff(PAUSES)
  #timer: NodeJS.Timeout | undefined
  #isProven = false
  #isClosed = false

  /**
   * `lastRevision` resolves with null if the stream has no event left. `onMissed` is called when the stream has further
   * events, or lost events that may be further ones.
   */
  constructor(lastRevision: () => Promise<number | null>, onMissed: () => void) {
    this.#lastRevision = lastRevision
    this.#onMissed = onMissed
  }

  /** The follower waits after `revision`. */
  wait(revision: number): void {
    if (this.#isProven || this.#isClosed || this.#timer) return
    this.#timer = setTimeout(() => void this.#ask(revision), this.#backoff.next())
  }

  /** The follower got the event that follows its place, so it has missed none. */
  prove(): void {
    this.#isProven = true
    this.#stop()
  }

  /** The follower reads the stream again. */
  doubt(): void {
    this.#isProven = false
    this.#stop()
  }

  close(): void {
    this.#isClosed = true
    this.#stop()
  }

  async #ask(revision: number): Promise<void> {
    const asked = this.#timer
    const last = await this.#lastRevision().catch(() => undefined)
    if (this.#timer !== asked) return
    this.#timer = undefined
    if (last === undefined) this.wait(revision)
    else if (last === revision) this.#isProven = true
    else this.#onMissed()
  }

  #stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}
