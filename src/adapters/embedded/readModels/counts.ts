import type { DatabaseSync } from 'node:sqlite'
import type { CollectionSpec, Query } from '../../../ports/readModels.ts'
import { successorOf } from '../../shared/bounds.ts'
import type { Column } from '../../shared/columns.ts'
import {
  AFTER,
  BEFORE,
  type Beside,
  countedBy,
  type CountedIndex,
  countedIndexes,
  facetAsked,
  facetOf,
  type Passed,
  passed,
  stepKey,
  type Side,
} from '../../shared/facets.ts'
import { rows } from '../sqlite.ts'
import { quoted } from './columns.ts'

interface Group extends CountedIndex {
  /** The places of the fields among the indexed fields. */
  readonly at: readonly number[]
  readonly sortAt: number
}

/** The counts of one facet since the last flush, by the longest counted prefix. */
interface Delta {
  readonly group: Group
  readonly byStep: Map<string, number>
}

/**
 * The number of documents by the values of the `equal` fields of counted indexes; with `steps`, also for each
 * prefix of the sort field, so that a distant page costs no more than the first one.
 */
export class Counts {
  readonly #groups = new Map<string, Group>()
  readonly #deltas = new Map<string, Delta>()
  readonly #read
  readonly #sum
  readonly #descending
  readonly #add
  readonly #sweep

  constructor(db: DatabaseSync, table: string, spec: CollectionSpec, fields: readonly string[]) {
    for (const [name, index] of countedIndexes(spec)) {
      const at = index.fields.map((field) => fields.indexOf(field))
      this.#groups.set(name, { ...index, at, sortAt: fields.indexOf(index.sort) })
    }
    const counts = quoted(`${table}__counts`)
    db.exec(`CREATE TABLE IF NOT EXISTS ${counts} (facet TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID`)
    const range = `FROM ${counts} WHERE facet >= ? AND facet < ?`
    this.#read = rows<[n: number]>(db.prepare(`SELECT n FROM ${counts} WHERE facet = ?`))
    this.#sum = rows<[n: number]>(db.prepare(`SELECT coalesce(sum(n), 0) ${range}`))
    this.#descending = rows<[facet: string, n: number]>(
      db.prepare(`SELECT facet, n ${range} ORDER BY facet DESC`),
    )
    this.#add = db.prepare(`INSERT INTO ${counts} VALUES (?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n`)
    this.#sweep = db.prepare(`DELETE FROM ${counts} WHERE facet = ? AND n = 0`)
  }

  /** Returns the number of documents that match a query without bounds; undefined if it is not counted. */
  of(query: Query): number | undefined {
    const group = countedBy(this.#groups, query)
    if (!group) return undefined
    return this.#read.get(facetAsked(group, query))?.[0] ?? 0
  }

  /** Counts the documents after the step of `from`. The caller counts those from `from` to `before`, the step's end. */
  after(query: Query, from: string): Passed | undefined {
    const found = this.#beside(AFTER, query, from)
    return found && passed(found.count, found.step)
  }

  /** Counts the documents before the step of a text. The caller counts those of the step. */
  before(query: Query, text: string): Beside | undefined {
    return this.#beside(BEFORE, query, text)
  }

  #beside({ between }: Side, query: Query, text: string): Beside | undefined {
    const stepped = this.#stepped(query)
    if (!stepped) return undefined
    const { steps, facet } = stepped
    let count = 0
    let within = ''
    for (const length of steps) {
      const step = text.slice(0, length)
      const [first, end] = between(stepKey(facet, length, step), stepKey(facet, length, within))
      count += this.#sum.get(first, end)?.[0] ?? 0
      within = step
    }
    return { count, step: within }
  }

  /** Counts complete steps among the last `offset` documents. The others end `before` these. */
  last(query: Query, offset: number): Passed | undefined {
    const stepped = this.#stepped(query)
    if (!stepped) return undefined
    const { steps, facet } = stepped
    let count = 0
    let within = ''
    for (const length of steps) {
      const step = this.#stepAt(stepKey(facet, length, within), offset - count)
      if (!step) return undefined // there are fewer documents
      count += step.count
      within = step.key.slice(stepKey(facet, length, '').length)
    }
    return passed(count, within)
  }

  /** Counts a document with these indexed fields that was added (1) or removed (-1). */
  count(columns: readonly Column[], by: 1 | -1): void {
    for (const group of this.#groups.values()) {
      const facet = facetOf(
        group.name,
        group.at.map((index) => columns[index] ?? null),
      )
      const sort = columns[group.sortAt]
      const step = typeof sort === 'string' ? sort.slice(0, group.steps.at(-1) ?? 0) : ''
      let delta = this.#deltas.get(facet)
      if (!delta) this.#deltas.set(facet, (delta = { group, byStep: new Map() }))
      delta.byStep.set(step, (delta.byStep.get(step) ?? 0) + by)
    }
  }

  /** Stores the counts since the last flush, in the transaction of the documents. */
  flush(): void {
    for (const [facet, { group, byStep }] of this.#deltas) {
      const sums = new Map<string, number>()
      const add = (key: string, n: number) => sums.set(key, (sums.get(key) ?? 0) + n)
      for (const [step, n] of byStep) {
        add(facet, n)
        if (step !== '')
          for (const length of group.steps) add(stepKey(facet, length, step.slice(0, length)), n)
      }
      for (const [key, n] of sums) {
        if (n !== 0) this.#add.run(key, n)
        if (n < 0) this.#sweep.run(key)
      }
    }
    this.#deltas.clear()
  }

  /** Discards the counts since the last flush after a failed transaction. */
  discard(): void {
    this.#deltas.clear()
  }

  #stepped(query: Query): { steps: readonly number[]; facet: string } | undefined {
    const group = countedBy(this.#groups, query)
    if (!group || group.steps.length === 0 || group.sort !== query.sort) return undefined
    return { steps: group.steps, facet: facetAsked(group, query) }
  }

  /** Finds the step with the document at `offset` from the end, and the number of documents after that step. */
  #stepAt(beginning: string, offset: number): { key: string; count: number } | undefined {
    const steps = this.#descending.iterate(beginning, successorOf(beginning))
    let count = 0
    for (const [key, n] of steps) {
      if (count + n > offset) return { key, count }
      count += n
    }
    return undefined
  }
}
