import type { Cursor } from '../../../events/event.ts'
import type { Stored, Write } from '../../../ports/readModels.ts'
import type { RareCommits } from './commits.ts'
import type { Table } from './table.ts'

/**
 * The writes of a thread that fills a table. A document is written when a batch has passed without a change of it, because
 * most documents change a few times within a short time. L1: all of them are written before each commit.
 */
export class LateWrites {
  readonly #table: Table
  readonly #commits: RareCommits
  /** The last writes of the newest batch, and of the one before. No id is in both. */
  #young = new Map<string, Write>()
  #old = new Map<string, Write>()

  constructor(table: Table, commits: RareCommits) {
    this.#table = table
    this.#commits = commits
    commits.beforeEach(() => this.#put()) // L1
  }

  stored(id: string): Stored | null {
    return this.#young.get(id) ?? this.#old.get(id) ?? this.#table.stored(id)
  }

  add(writes: readonly Write[], checkpoint: Cursor): void {
    this.#commits.run(() => {
      const [last, passed, next] = [this.#young, this.#old, new Map<string, Write>()]
      for (const write of writes) {
        const { id, cursor } = write
        const known = next.get(id) ?? last.get(id) ?? passed.get(id)
        if (known && cursor <= known.cursor) continue
        next.set(id, write)
        last.delete(id)
        passed.delete(id)
      }
      this.#table.put(passed.values())
      this.#table.advance(checkpoint)
      this.#old = last
      this.#young = next
    })
  }

  /** Returns the table with all documents. */
  flushed(): Table {
    if (this.#young.size + this.#old.size > 0) this.#commits.run(() => this.#put())
    return this.#table
  }

  #put(): void {
    this.#table.put(this.#old.values())
    this.#table.put(this.#young.values())
    this.#old = new Map()
    this.#young = new Map()
  }
}
