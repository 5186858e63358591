import { messageOf } from '../../../errors.ts'

/** Interval of attempts to write while writes are refused. */
const PROBE_MS = 1000

/** Reports that writes are refused, for example because the disk is full, and when they are accepted again. */
export class Refusals {
  readonly #write: () => void
  readonly #onRefusing: (reason: string | null) => void
  #probing: NodeJS.Timeout | undefined
  #closed = false

  /** `write` throws as long as writes are refused: without requests, nothing else would notice that there is room. */
  constructor(write: () => void, onRefusing: (reason: string | null) => void) {
    this.#write = write
    this.#onRefusing = onRefusing
  }

  /** Whether writes are refused, and the next attempt is due within `PROBE_MS`. */
  get isPending(): boolean {
    return this.#probing !== undefined
  }

  /** Reports the first failure of a write. */
  failed(error: unknown): void {
    if (this.#probing || this.#closed) return
    this.#onRefusing(messageOf(error))
    this.#probeLater()
  }

  /** Reports the first success after a failure. */
  succeeded(): void {
    if (!this.#probing) return
    clearTimeout(this.#probing)
    this.#probing = undefined
    this.#onRefusing(null)
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#probing)
  }

  #probeLater(): void {
    this.#probing = setTimeout(() => {
      try {
        this.#write()
      } catch {
        this.#probeLater()
        return
      }
      this.succeeded()
    }, PROBE_MS).unref()
  }
}
