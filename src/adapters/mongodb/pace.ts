import { clock } from '../../clock.ts'

const FEWEST = 1
const FIRST = 10
const MOST = 500
/** Far below the time after which a command is given up. */
const WANTED_MS = 500

/**
 * How many ids go into a command. MongoDB is soon given as many as a projector has; a server that looks at the
 * whole collection for each (FerretDB 1) gets few enough to answer in time.
 */
export class Pace {
  #size = FIRST

  get size(): number {
    return Math.floor(this.#size)
  }

  /** Does work on `count` things, and learns from the time it takes. */
  async keep<T>(count: number, work: () => Promise<T>): Promise<T> {
    const began = clock.monotonic()
    try {
      return await work()
    } finally {
      const wanted = (count * WANTED_MS) / Math.max(1, clock.monotonic() - began)
      if (wanted < this.#size || count >= this.size) {
        this.#size = Math.min(MOST, Math.max(FEWEST, wanted), this.#size * 8)
      }
    }
  }
}
