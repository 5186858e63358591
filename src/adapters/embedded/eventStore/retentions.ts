import type { DatabaseSync } from 'node:sqlite'
import { BoundedMap } from '../../../boundedMap.ts'
import { clock, isoOf } from '../../../clock.ts'
import { rows } from '../sqlite.ts'

/** The age in seconds at which events of a stream expire; null: they do not. */
export interface Retention {
  readonly stream: string
  readonly seconds: number | null
}

/** Streams whose retention is kept in memory. */
const REMEMBERED = 50_000
/** No stream has this name; its row has the shortest retention that any stream ever had. */
const SHORTEST = ''
/** Longer than the retention of any stream, seconds. */
const LONGEST = 100 * 365 * 86_400

/** Records in a restored log that its rows may have lost events. The retentions of its streams are set again. */
export const markRestored = (db: DatabaseSync): void => {
  db.prepare('INSERT OR REPLACE INTO retentions VALUES (?, ?)').run(SHORTEST, LONGEST)
}

/** The retentions of streams. They are in `log.db`, because nothing else contains them. */
export class Retentions {
  readonly #get
  readonly #set
  readonly #remove
  /** Seconds; `Infinity` if the events do not expire. */
  readonly #known = new BoundedMap<string, number>(REMEMBERED)
  #shortest: number

  constructor(db: DatabaseSync) {
    this.#get = rows<[seconds: number]>(db.prepare('SELECT seconds FROM retentions WHERE stream = ?'))
    this.#set = db.prepare('INSERT OR REPLACE INTO retentions VALUES (?, ?)')
    this.#remove = db.prepare('DELETE FROM retentions WHERE stream = ?')
    this.#shortest = this.#get.get(SHORTEST)?.[0] ?? Infinity
  }

  /** Whether events may have expired, or may have been removed. */
  get isAny(): boolean {
    return this.#shortest !== Infinity
  }

  /** Events since this time do not expire in any stream. */
  get keptFrom(): string {
    return timeBefore(this.#shortest)
  }

  /** Events of a stream before this time have expired; an empty string, which sorts first, if none has. */
  expiredBefore(stream: string): string {
    if (!this.isAny) return ''
    const known = this.#known.get(stream)
    if (known !== undefined) return timeBefore(known)
    const seconds = this.#get.get(stream)?.[0] ?? Infinity
    this.#known.set(stream, seconds)
    return timeBefore(seconds)
  }

  has({ stream, seconds }: Retention): boolean {
    return this.#known.get(stream) === (seconds ?? Infinity)
  }

  /** Called in a transaction; `wrote` follows when it is durable. */
  write(retentions: readonly Retention[]): void {
    let shortest = this.#shortest
    for (const { stream, seconds } of retentions) {
      if (seconds === null) this.#remove.run(stream)
      else this.#set.run(stream, seconds)
      shortest = Math.min(shortest, seconds ?? Infinity)
    }
    if (shortest < this.#shortest) this.#set.run(SHORTEST, shortest)
  }

  wrote(retentions: readonly Retention[]): void {
    for (const { stream, seconds } of retentions) {
      this.#known.set(stream, seconds ?? Infinity)
      this.#shortest = Math.min(this.#shortest, seconds ?? Infinity)
    }
  }
}

const timeBefore = (seconds: number): string =>
  seconds === Infinity ? '' : isoOf(Math.max(0, clock.now() - seconds * 1000))
