import type { DatabaseSync } from 'node:sqlite'
import type { Cursor } from '../../../events/event.ts'
import type { CollectionSpec, FoldedLog, Version } from '../../../ports/readModels.ts'
import { sameIndexes } from '../../shared/declared.ts'
import { transaction } from '../sqlite.ts'
import { markSides } from './file.ts'
import { tableName } from './table.ts'

/** A row of `collections`. */
export interface Registered {
  /** With the indexes of its table. */
  readonly spec: CollectionSpec
  /** The indexes with which the version was created, which differ while it has the table of an earlier one. */
  readonly declared: CollectionSpec['indexes']
  /** The name of its table. */
  readonly stored_as: string
  /** The folder of its side file, which has its checkpoint too; null: the table is in this file. */
  readonly side: string | null
  /** A thread fills the side file: no reader uses it. */
  readonly is_filling: boolean
  readonly checkpoint: Cursor | null
}

const COLUMNS = 'spec, stored_as, side, is_filling, checkpoint'

/** Records which collections the file contains, in which tables they are, and the log that they were folded from. */
export class Registry {
  readonly #db: DatabaseSync

  constructor(db: DatabaseSync) {
    this.#db = db
  }

  find({ name, version }: Version): Registered | undefined {
    const row = this.#db
      .prepare(`SELECT ${COLUMNS} FROM collections WHERE name = ? AND version = ?`)
      .get(name, version)
    return row && registeredOf(row)
  }

  add({ name, version, indexes }: CollectionSpec): Registered {
    const spec = { name, version, indexes }
    const taken = this.#db.prepare(
      'SELECT 1 FROM collections WHERE stored_as = ?1 UNION SELECT 1 FROM replaced WHERE stored_as = ?1',
    )
    let stored_as = tableName(spec)
    for (let n = 2; taken.get(stored_as); n++) stored_as = `${tableName(spec)}_${n}` // a rebuild took the name
    this.#db
      .prepare('INSERT INTO collections (name, version, spec, stored_as) VALUES (?, ?, ?, ?)')
      .run(name, version, JSON.stringify(spec), stored_as)
    return { spec, declared: indexes, stored_as, side: null, is_filling: false, checkpoint: null }
  }

  /** Records a new version whose table a thread creates in a side file. */
  addFilling({ name, version, indexes }: CollectionSpec, side: string): void {
    const spec = { name, version, indexes }
    transaction(this.#db, () => {
      markSides(this.#db)
      this.#db
        .prepare(
          'INSERT INTO collections (name, version, spec, stored_as, side, is_filling) VALUES (?, ?, ?, ?, ?, 1)',
        )
        .run(name, version, JSON.stringify(spec), tableName(spec), side)
    })
  }

  /** The thread has filled the side file of a version. */
  filled({ name, version }: Version): void {
    this.#db
      .prepare('UPDATE collections SET is_filling = 0 WHERE name = ? AND version = ?')
      .run(name, version)
  }

  /** The versions with side files. */
  sides(): Registered[] {
    return this.#db
      .prepare(`SELECT ${COLUMNS} FROM collections WHERE side IS NOT NULL`)
      .all()
      .map(registeredOf)
  }

  /**
   * Removes a version; its table is one of those that no collection has. Returns its former row, or null if there is none. Durable
   * when it returns: the table or the side file may be removed afterwards.
   */
  remove(version: Version): Registered | null {
    const found = this.find(version)
    if (!found) return null
    this.#durably(() => {
      this.#remove(version)
      this.#leaveTable(found)
    })
    return found
  }

  #remove({ name, version }: Version): void {
    this.#db.prepare('DELETE FROM collections WHERE name = ? AND version = ?').run(name, version)
  }

  #leaveTable({ side, stored_as }: Registered): void {
    if (side === null) this.#db.prepare('INSERT INTO replaced VALUES (?)').run(stored_as)
  }

  #durably(work: () => void): void {
    this.#db.exec('PRAGMA synchronous=FULL')
    try {
      transaction(this.#db, work)
    } finally {
      this.#db.exec('PRAGMA synchronous=NORMAL')
    }
  }

  versions(): Version[] {
    return this.#db
      .prepare('SELECT name, version FROM collections')
      .all()
      .map(({ name, version }) => ({ name: String(name), version: Number(version) }))
  }

  /** The newest version of each collection. */
  newest(): CollectionSpec[] {
    return specsOf(
      this.#db.prepare('SELECT spec, max(version) FROM collections WHERE is_filling = 0 GROUP BY name').all(),
    )
  }

  /** The collections that contain events, and those with side files. */
  begun(): CollectionSpec[] {
    return specsOf(
      this.#db
        .prepare(
          `SELECT spec FROM collections WHERE is_filling = 0 AND (checkpoint > '' OR side IS NOT NULL)`,
        )
        .all(),
    )
  }

  /** Gives a version the table of another one, with its indexes. Returns its former row, or null if one of the two does not exist. */
  replace(version: Version, by: Version): Registered | null {
    const [current, next] = [this.find(version), this.find(by)]
    if (!current || !next) return null
    const { name, version: number } = current.spec
    const spec: StoredSpec = {
      ...current.spec,
      indexes: next.spec.indexes,
      ...(!sameIndexes(next.spec.indexes, current.declared) && { declared: current.declared }),
    }
    this.#durably(() => {
      this.#remove(by)
      this.#db
        .prepare(
          'UPDATE collections SET spec = ?, stored_as = ?, side = ?, checkpoint = ? WHERE name = ? AND version = ?',
        )
        .run(JSON.stringify(spec), next.stored_as, next.side, next.checkpoint, name, number)
      this.#leaveTable(current)
    })
    return current
  }

  /** The tables that no collection has any more, and that still exist. */
  replaced(): string[] {
    return this.#db
      .prepare('SELECT stored_as FROM replaced')
      .all()
      .map(({ stored_as }) => String(stored_as))
  }

  forgetReplaced(stored_as: string): void {
    this.#db.prepare('DELETE FROM replaced WHERE stored_as = ?').run(stored_as)
  }

  source(): FoldedLog {
    const { log_id } = this.#db.prepare('SELECT log_id FROM identity').get() ?? {}
    const { newest } = this.#db.prepare('SELECT max(checkpoint) AS newest FROM collections').get() ?? {}
    return {
      log_id: typeof log_id === 'string' ? log_id : null,
      checkpoint: typeof newest === 'string' ? newest : null,
    }
  }

  assign(log_id: string): void {
    transaction(this.#db, () => {
      this.#db.exec('DELETE FROM identity')
      this.#db.prepare('INSERT INTO identity VALUES (?)').run(log_id)
    })
  }
}

type Row = Record<string, unknown>

/** `declared` is absent if it equals `indexes`. */
type StoredSpec = CollectionSpec & Partial<Pick<Registered, 'declared'>>

const storedSpecOf = ({ spec }: Row): StoredSpec => JSON.parse(String(spec)) as StoredSpec

const specOf = (row: Row): CollectionSpec => {
  const { name, version, indexes } = storedSpecOf(row)
  return { name, version, indexes }
}

const specsOf = (rows: readonly Row[]): CollectionSpec[] => rows.map(specOf)

const registeredOf = (row: Row): Registered => ({
  spec: specOf(row),
  declared: storedSpecOf(row).declared ?? specOf(row).indexes,
  stored_as: String(row['stored_as']),
  side: row['side'] === null ? null : String(row['side']),
  is_filling: row['is_filling'] === 1,
  checkpoint: row['checkpoint'] === null ? null : String(row['checkpoint']),
})
