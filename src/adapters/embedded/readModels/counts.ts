import type { DatabaseSync } from 'node:sqlite'
import type { CollectionSpec, Query } from '../../../ports/readModels.ts'
import { type Column, columnOf } from '../../shared/columns.ts'
import { arrays } from '../sqlite.ts'
import { facetOf, quoted } from './columns.ts'

interface Group {
  readonly name: string
  readonly fields: readonly string[]
  /** Where the fields stand among the indexed ones. */
  readonly at: readonly number[]
}

/** How many documents have which values in the `equal` fields of the counted indexes. */
export class Counts {
  readonly #groups = new Map<string, Group>()
  readonly #deltas = new Map<string, number>()
  readonly #read
  readonly #add
  readonly #sweep

  constructor(db: DatabaseSync, table: string, { indexes }: CollectionSpec, fields: readonly string[]) {
    for (const { equal, counted } of indexes) {
      const sorted = equal.toSorted()
      const name = sorted.join('\n')
      if (counted)
        this.#groups.set(name, { name, fields: sorted, at: sorted.map((field) => fields.indexOf(field)) })
    }
    const counts = quoted(`${table}__counts`)
    db.exec(`CREATE TABLE IF NOT EXISTS ${counts} (facet TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID`)
    this.#read = arrays(db.prepare(`SELECT n FROM ${counts} WHERE facet = ?`))
    this.#add = db.prepare(`INSERT INTO ${counts} VALUES (?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n`)
    this.#sweep = db.prepare(`DELETE FROM ${counts} WHERE facet = ? AND n = 0`)
  }

  /** The number of documents a query without bounds matches; undefined when it is not kept. */
  of({ equal }: Query): number | undefined {
    const group = this.#groups.get(Object.keys(equal).sort().join('\n'))
    if (!group) return undefined
    const row = this.#read.get(
      facetOf(
        group.name,
        group.fields.map((field) => columnOf(equal[field])),
      ),
    )
    return row ? (row as unknown as [number])[0] : 0
  }

  /** A document with these indexed fields came (1) or went (-1). */
  count(columns: readonly Column[], by: 1 | -1): void {
    for (const { name, at } of this.#groups.values()) {
      const facet = facetOf(
        name,
        at.map((index) => columns[index] ?? null),
      )
      this.#deltas.set(facet, (this.#deltas.get(facet) ?? 0) + by)
    }
  }

  /** Stores what was counted since, within the transaction of the documents. */
  flush(): void {
    for (const [facet, delta] of this.#deltas) {
      if (delta !== 0) this.#add.run(facet, delta)
      if (delta < 0) this.#sweep.run(facet)
    }
    this.#deltas.clear()
  }

  /** Forgets what was counted since: the transaction failed. */
  discard(): void {
    this.#deltas.clear()
  }
}
