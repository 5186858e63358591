import type { DatabaseSync } from 'node:sqlite'
import type { Doc, Found, Query } from '../../../ports/readModels.ts'
import { boundsOf, isBelow, isOpen } from '../../shared/bounds.ts'
import { type Column, columnOf } from '../../shared/columns.ts'
import { type Rows, rows } from '../sqlite.ts'
import { columnName } from './columns.ts'
import type { Counts } from './counts.ts'

/** The smallest offset for which the counts find the beginning of a page faster. */
const FAR = 200

/** The same page with a smaller offset, if the counts can skip documents. */
const nearer = (query: Query, counts: Counts): Query => {
  const passed = query.descending && isOpen(query) ? counts.last(query, query.offset) : undefined
  return passed ? { ...query, before: passed.before, offset: query.offset - passed.count } : query
}

/** The pages and totals of a table. */
export class TablePages {
  readonly #db: DatabaseSync
  readonly #name: string
  readonly #counts: Counts
  /** Statements by their SQL: there is one for each shape of query. */
  readonly #pages = new Map<string, Rows<[doc: string]>>()
  readonly #totals = new Map<string, Rows<[count: number]>>()

  /** `name`: as it is quoted in SQL. */
  constructor(db: DatabaseSync, name: string, counts: Counts) {
    this.#db = db
    this.#name = name
    this.#counts = counts
  }

  /** Finds documents along an index. */
  find(index: string, query: Query): Found<Doc> {
    const { limit, offset } = query
    if (offset >= FAR && query.totals === false) {
      const items = this.#page(index, nearer(query, this.#counts))
      return { items, total: offset + items.length }
    }
    if (offset >= FAR) {
      const total = this.#total(index, query)
      return { items: offset < total ? this.#page(index, nearer(query, this.#counts)) : [], total }
    }
    const items = this.#page(index, query)
    const isLastPage = items.length < limit && (items.length > 0 || offset === 0)
    return {
      items,
      total: isLastPage || query.totals === false ? offset + items.length : this.#total(index, query),
    }
  }

  #page(index: string, query: Query): Doc[] {
    const { source, values } = this.#source(index, query)
    const order = query.descending ? 'DESC' : 'ASC'
    const page = prepared(
      this.#db,
      this.#pages,
      `SELECT doc ${source} ORDER BY ${columnName(query.sort)} ${order}, id ${order} LIMIT ? OFFSET ?`,
    ).all(...values, query.limit, query.offset)
    return page.map(([doc]) => JSON.parse(doc) as Doc)
  }

  /** Uses the stored counts as far as possible, and counts the rest along the index. */
  #total(index: string, query: Query): number {
    const { from } = query
    if (boundsOf(query).length === 0) {
      const kept = this.#counts.of(query)
      if (kept !== undefined) return kept
    }
    if (isBelow(query)) {
      const [upTo, skipped] = [query.before, query.from ?? ''].map((end) => this.#before(index, query, end))
      if (upTo !== undefined && skipped !== undefined) return Math.max(0, upTo - skipped)
    }
    const passed = typeof from === 'string' && isOpen(query) ? this.#counts.after(query, from) : undefined
    return (passed?.count ?? 0) + this.#walk(index, passed ? { ...query, before: passed.before } : query)
  }

  /** The number of documents before a text; undefined if the index has no counts of steps. */
  #before(index: string, query: Query, before: string): number | undefined {
    const preceding = this.#counts.before(query, before)
    return preceding && preceding.count + this.#walk(index, { ...query, from: preceding.step, before })
  }

  #walk(index: string, query: Query): number {
    const { source, values } = this.#source(index, query)
    const [walked] = prepared(this.#db, this.#totals, `SELECT count(*) ${source}`).get(...values) ?? [0]
    return walked
  }

  #source(index: string, query: Query): { source: string; values: Column[] } {
    const { equal, sort } = query
    const bounds = boundsOf(query)
    const conditions = [
      ...Object.keys(equal).map((field) => `${columnName(field)} IS ?`),
      ...bounds.map(([operator]) => `${columnName(sort)} ${operator} ?`),
      'gone = 0',
    ]
    return {
      source: `FROM ${this.#name} INDEXED BY ${index} WHERE ${conditions.join(' AND ')}`,
      values: [...Object.values(equal).map(columnOf), ...bounds.map(([, column]) => column)],
    }
  }
}

const prepared = <Row extends readonly unknown[]>(
  db: DatabaseSync,
  known: Map<string, Rows<Row>>,
  sql: string,
): Rows<Row> => {
  const statement = known.get(sql) ?? rows<Row>(db.prepare(sql))
  known.set(sql, statement)
  return statement
}
