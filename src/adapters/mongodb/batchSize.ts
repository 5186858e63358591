import { clock } from '../../clock.ts'

const MIN_IDS = 1
const FIRST_IDS = 10
const MAX_IDS = 500
/** The target duration of a command, far below `DEADLINE_MS` in failures.ts. */
const TARGET_MS = 500

/**
 * The number of ids in one command, adapted to the speed of the server. MongoDB soon gets as many as a projector
 * has. FerretDB 1, which scans the collection for each id, gets few enough to answer in time.
 */
export class BatchSize {
  #ids = FIRST_IDS

  get ids(): number {
    return Math.floor(this.#ids)
  }

  /** Runs a command on `count` ids and adapts the size to its duration. */
  async measure<T>(count: number, command: () => Promise<T>): Promise<T> {
    const began = clock.monotonic()
    try {
      return await command()
    } finally {
      const best = (count * TARGET_MS) / Math.max(1, clock.monotonic() - began)
      if (best < this.#ids || count >= this.ids) {
        this.#ids = Math.min(MAX_IDS, Math.max(MIN_IDS, best), this.#ids * 8)
      }
    }
  }
}
