import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { clock } from '../../../clock.ts'
import type { CollectionSpec, Doc, Found, Query, Stored, Write } from '../../../ports/readModels.ts'
import { type Column, columnOf, fieldOf, indexedFields, sameColumn } from '../../shared/columns.ts'
import { indexKey } from '../../shared/declared.ts'
import { rows } from '../sqlite.ts'
import { type Commits, eachCommitted } from './commits.ts'
import { columnName, quoted } from './columns.ts'
import { Counts } from './counts.ts'
import { forgettingIn } from './forgetting.ts'
import { TablePages } from './tablePages.ts'

/** A row for the check of a write: its id, the cursor of its last write, whether it was removed, its indexed fields. */
type Row = [rowid: number, cursor: string, gone: 0 | 1, ...fields: Column[]]

/** UUIDs and cursors. Their order in SQLite is that of JavaScript. */
const TIMED = /^[0-9a-f-]+$/
/** After all of them. */
const AFTER_TIMED = 'g'

/** Documents that are written between two looks at the clock. */
const WRITES_PER_LOOK = 16

/** The name of the table that a new version gets. */
export const tableName = ({ name, version }: Pick<CollectionSpec, 'name' | 'version'>): string =>
  `${name}__v${version}`

/**
 * One version of a collection. A row has a document as JSON text, its indexed fields and the
 * cursor of its last write. A removed document keeps its row (`gone`), so that no older write restores it, until its removal is
 * forgotten.
 */
export class Table {
  readonly spec: CollectionSpec
  readonly db: DatabaseSync
  readonly #name: string
  readonly #commits: Commits
  readonly #fields: readonly string[]
  readonly #counts: Counts
  readonly #indexes = new Map<string, string>()
  /** The statements that create missing indexes, by index. */
  readonly #missing = new Map<string, string>()
  readonly #pages: TablePages
  readonly #doc
  readonly #written
  readonly #row
  readonly #slice
  readonly #entries
  readonly #counted
  readonly #insert
  readonly #replace
  readonly #delete
  readonly #mark
  /** Undefined without the index of removals. */
  readonly #forget: StatementSync | undefined
  /** Statements by the places of the fields that they change. */
  readonly #amendments = new Map<string, StatementSync>()
  /** No stored id before `AFTER_TIMED` is larger. */
  #largest: string | undefined
  readonly #checkpoint
  readonly #advance
  #readers = 0
  #left: () => void = () => {}

  /**
   * `isIndexedLater`: a missing index is created by the first query that needs it, or by `createIndexes`. An index over
   * stored documents takes a fraction of the time that their writes would take for it. That is not so for a sparse index:
   * few writes change it, and its creation reads all documents.
   */
  constructor(
    db: DatabaseSync,
    spec: CollectionSpec,
    name: string,
    {
      isIndexedLater = false,
      commits = eachCommitted(db),
    }: { readonly isIndexedLater?: boolean; readonly commits?: Commits } = {},
  ) {
    this.spec = spec
    this.db = db
    this.#commits = commits
    this.#name = quoted(name)
    this.#fields = indexedFields(spec)
    const columns = this.#fields.map(columnName)
    const listed = columns.map((column) => `, ${column}`).join('')
    db.exec(`CREATE TABLE IF NOT EXISTS ${this.#name}
      (id TEXT PRIMARY KEY, cursor TEXT NOT NULL, gone INTEGER NOT NULL, doc TEXT${listed})`)
    for (const [number, { equal, sort, sparse }] of spec.indexes.entries()) {
      const index = quoted(`${name}__${number}`)
      const keys = [...equal, sort].map(columnName).join(', ')
      this.#missing.set(
        index,
        `CREATE INDEX IF NOT EXISTS ${index} ON ${this.#name} (${keys}, id)
        WHERE gone = 0${sparse ? ` AND ${columnName(sort)} IS NOT NULL` : ''}`,
      )
      this.#indexes.set(indexKey(equal, sort), index)
    }
    for (const [number, { sparse }] of spec.indexes.entries())
      if (sparse || !isIndexedLater) this.#createIndex(quoted(`${name}__${number}`))
    this.#counts = new Counts(db, name, spec, this.#fields)
    this.#pages = new TablePages(db, this.#name, this.#counts)
    const at = 'WHERE rowid = ?'
    this.#doc = rows<[doc: string]>(db.prepare(`SELECT doc FROM ${this.#name} WHERE id = ? AND gone = 0`))
    this.#written = rows<[cursor: string, doc: string | null]>(
      db.prepare(`SELECT cursor, doc FROM ${this.#name} WHERE id = ?`),
    )
    this.#row = rows<Row>(db.prepare(`SELECT rowid, cursor, gone${listed} FROM ${this.#name} WHERE id = ?`))
    this.#slice = rows<[rowid: number, doc: string]>(
      db.prepare(`SELECT rowid, doc FROM ${this.#name} WHERE rowid > ? AND gone = 0 ORDER BY rowid LIMIT ?`),
    )
    this.#entries = rows<[rowid: number, id: string, cursor: string, doc: string | null]>(
      db.prepare(`SELECT rowid, id, cursor, doc FROM ${this.#name} WHERE rowid > ? ORDER BY rowid LIMIT ?`),
    )
    this.#counted = rows<[count: number, last: number | null]>(
      db.prepare(`SELECT count(*) FILTER (WHERE gone = 0), max(rowid) FROM
        (SELECT rowid, gone FROM ${this.#name} WHERE rowid > ? ORDER BY rowid LIMIT ?)`),
    )
    this.#insert = db.prepare(
      `INSERT INTO ${this.#name} (cursor, gone, doc${listed}, id) VALUES (?, ?, ?${', ?'.repeat(columns.length)}, ?)`,
    )
    const assigned = columns.map((column) => `, ${column} = ?`).join('')
    this.#replace = db.prepare(`UPDATE ${this.#name} SET cursor = ?, gone = ?, doc = ?${assigned} ${at}`)
    this.#delete = db.prepare(`DELETE FROM ${this.#name} ${at}`)
    this.#mark = db.prepare(`INSERT INTO ${this.#name} (rowid, id, cursor, gone) VALUES (?, ?, ?, 1)`)
    this.#forget = forgettingIn(db, name)
    this.#checkpoint = db.prepare('SELECT checkpoint FROM collections WHERE name = ? AND version = ?')
    this.#advance = db.prepare(`UPDATE collections SET checkpoint = ?1
      WHERE name = ?2 AND version = ?3 AND (checkpoint IS NULL OR checkpoint < ?1)`)
  }

  createIndexes(before: () => void): void {
    for (const index of this.#missing.keys()) {
      before()
      this.#createIndex(index)
    }
  }

  #createIndex(index: string): void {
    const sql = this.#missing.get(index)
    if (sql === undefined) return
    this.db.exec(sql)
    this.#missing.delete(index)
  }

  get(id: string): Doc | null {
    const row = this.#doc.get(id)
    return row ? (JSON.parse(row[0]) as Doc) : null
  }

  /** The last write of a document, which may be a removal; null if there was none. */
  stored(id: string): Stored | null {
    const row = this.#written.get(id)
    return row ? storedOf(...row) : null
  }

  /** Reads at most `limit` documents after a row, and the row after which the next read begins. */
  slice(after: number, limit: number): { docs: Doc[]; last: number } {
    const slice = this.#slice.all(after, limit)
    return {
      docs: slice.map(([, doc]) => JSON.parse(doc) as Doc),
      last: slice.at(-1)?.[0] ?? after,
    }
  }

  /** The same for the last writes, including removals. */
  entries(after: number, limit: number): { entries: [id: string, stored: Stored][]; last: number } {
    const slice = this.#entries.all(after, limit)
    return {
      entries: slice.map(([, id, cursor, doc]) => [id, storedOf(cursor, doc)]),
      last: slice.at(-1)?.[0] ?? after,
    }
  }

  /** Counts documents among at most `limit` rows after a row; `last` is null if there is no such row. */
  countSlice(after: number, limit: number): { count: number; last: number | null } {
    const [count, last] = this.#counted.get(after, limit) ?? [0, null]
    return { count, last }
  }

  /** The number of documents that contain events after a cursor. */
  countAfter(cursor: string): number {
    const newer = rows<[count: number]>(
      this.db.prepare(`SELECT count(*) FROM ${this.#name} WHERE cursor > ? AND gone = 0`),
    )
    return newer.get(cursor)?.[0] ?? 0
  }

  /** Keeps the table from being dropped until the returned function is called. */
  retain(): () => void {
    this.#readers++
    return () => {
      if (--this.#readers === 0) this.#left()
    }
  }

  /** Resolves once no reader retains the table. */
  async unread(signal: AbortSignal): Promise<void> {
    if (this.#readers === 0 || signal.aborted) return
    await new Promise<void>((resolve) => {
      this.#left = resolve
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
  }

  find(query: Query): Found<Doc> {
    const index = this.#indexes.get(indexKey(Object.keys(query.equal), query.sort))
    if (index === undefined)
      throw new Error(`Expected ${this.#name} with an index for ${JSON.stringify(query)}`)
    this.#createIndex(index)
    return this.#pages.find(index, query)
  }

  checkpoint(): string | null {
    const row = this.#checkpoint.get(this.spec.name, this.spec.version)
    return (row?.['checkpoint'] ?? null) as string | null
  }

  /**
   * Writes documents from `at` together until `milliseconds` have passed, and the checkpoint with the last one.
   * Returns the next `at`. The checkpoint never moves back: a late repeat of an old batch changes nothing.
   */
  write(
    writes: readonly Write[],
    checkpoint: string,
    { at, milliseconds }: { readonly at: number; readonly milliseconds: number },
  ): number {
    const until = clock.monotonic() + milliseconds
    let next = at
    try {
      this.#commits.run(() => {
        for (const write of writes.slice(at)) {
          this.#apply(write)
          if (++next % WRITES_PER_LOOK === 0 && clock.monotonic() >= until) break
        }
        this.#counts.flush()
        if (next === writes.length) this.advance(checkpoint)
      })
      return next
    } finally {
      this.#counts.discard()
    }
  }

  /** Writes documents in the present transaction. */
  put(writes: Iterable<Write>): void {
    try {
      for (const write of writes) this.#apply(write)
      this.#counts.flush()
    } finally {
      this.#counts.discard()
    }
  }

  /** Forgets some removals up to a cursor. Returns their number. */
  forgetRemovals(upTo: string): number {
    let forgotten = 0
    this.#commits.run(() => {
      forgotten = Number(this.#forget?.run(upTo).changes ?? 0)
    })
    return forgotten
  }

  /** Writes the checkpoint in the present transaction. */
  advance(checkpoint: string): void {
    this.#advance.run(checkpoint, this.spec.name, this.spec.version)
  }

  /** Changes some fields of a row. SQLite rewrites each index that has one of the assigned columns, changed or not. */
  #amending(changed: readonly number[]): StatementSync {
    const key = changed.join()
    const known = this.#amendments.get(key)
    if (known) return known
    const assigned = changed.map((at) => `, ${columnName(this.#fields[at] ?? '')} = ?`).join('')
    const statement = this.db.prepare(
      `UPDATE ${this.#name} SET cursor = ?, doc = ?${assigned} WHERE rowid = ?`,
    )
    this.#amendments.set(key, statement)
    return statement
  }

  /** Most ids begin with their time, so a new document usually has the largest one: it need not be looked for. */
  #stored(id: string): Row | undefined {
    this.#largest ??= this.#largestStored()
    if (id <= this.#largest || !TIMED.test(id)) return this.#row.get(id)
    this.#largest = id
    return undefined
  }

  #largestStored(): string {
    const sql = `SELECT max(id) FROM ${this.#name} WHERE id < '${AFTER_TIMED}'`
    return rows<[id: string | null]>(this.db.prepare(sql)).get()?.[0] ?? ''
  }

  #apply({ id, doc, cursor }: Write): void {
    const [rowid, storedCursor, gone, ...old] = this.#stored(id) ?? ([] as const)
    if (storedCursor !== undefined && cursor <= storedCursor) return
    const columns = this.#fields.map((field) => (doc ? columnOf(fieldOf(doc, field)) : null))
    const text = doc ? JSON.stringify(doc) : null
    if (rowid === undefined) this.#insert.run(cursor, doc ? 0 : 1, text, ...columns, id)
    else if (doc && gone === 0) {
      const changed = columns.flatMap((column, i) => (sameColumn(column, old[i] ?? null) ? [] : [i]))
      this.#amending(changed).run(cursor, text, ...changed.map((i) => columns[i] ?? null), rowid)
      if (changed.length === 0) return
    } else if (gone === 0) {
      // SQLite frees pages of a table only when rows are deleted, not when they become smaller.
      this.#delete.run(rowid)
      this.#mark.run(rowid, id, cursor)
    } else this.#replace.run(cursor, doc ? 0 : 1, text, ...columns, rowid)
    if (gone === 0) this.#counts.count(old, -1)
    if (doc) this.#counts.count(columns, 1)
  }
}

const storedOf = (cursor: string, doc: string | null): Stored => ({
  cursor,
  doc: doc === null ? null : (JSON.parse(doc) as Doc),
})
