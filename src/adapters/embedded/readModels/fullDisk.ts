import { isFullDisk } from '../../../disk/fullDisk.ts'
import { unavailable } from '../sqlite.ts'

/** Who writes tries again after two seconds at the latest. A write that is not repeated must not be reported forever. */
const OVER_AFTER_MS = 5000

/** Reports that writes are refused because the disk is full, and when no write was refused for a while. */
export class FullDisk {
  readonly #onRefusing: (reason: string | null) => void
  #over: NodeJS.Timeout | undefined
  #closed = false

  constructor(onRefusing: (reason: string | null) => void) {
    this.#onRefusing = onRefusing
  }

  /** Receives the failure of any work on the read models. */
  failed(error: unknown): void {
    if (this.#closed || !isFullDisk(error)) return
    if (this.#over) this.#over.refresh()
    else {
      this.#over = setTimeout(() => {
        this.#over = undefined
        this.#onRefusing(null)
      }, OVER_AFTER_MS).unref()
      this.#onRefusing(unavailable(error).message)
    }
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#over)
  }
}
