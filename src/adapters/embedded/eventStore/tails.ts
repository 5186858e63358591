import { BoundedMap } from '../../../boundedMap.ts'

/** Streams whose newest positions are kept in memory. */
const STREAMS = 256

/** Positions that are kept for each stream; twice as many before older ones are dropped. */
const POSITIONS = 64

interface Tail {
  /** Revision of the first position. */
  first: number
  readonly positions: number[]
}

/** The positions of the newest events of recently used streams: most reads of a stream begin near its end. */
export class Tails {
  readonly #tails = new BoundedMap<string, Tail>(STREAMS)

  add(stream: string, revision: number, position: number): void {
    const tail = this.#tails.get(stream)
    if (!tail || revision !== tail.first + tail.positions.length) {
      this.#tails.set(stream, { first: revision, positions: [position] })
      return
    }
    tail.positions.push(position)
    if (tail.positions.length < 2 * POSITIONS) return
    tail.positions.splice(0, POSITIONS)
    tail.first += POSITIONS
  }

  /** The positions from a revision; undefined if older ones than those in memory are needed. */
  from(stream: string, revision: number, limit: number): number[] | undefined {
    const tail = this.#tails.get(stream)
    if (!tail || revision < tail.first) return undefined
    return tail.positions.slice(revision - tail.first, revision - tail.first + limit)
  }

  clear(): void {
    this.#tails.clear()
  }
}
