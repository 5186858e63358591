import type { DatabaseSync } from 'node:sqlite'
import type { Cursor } from '../../../events/event.ts'
import type { CollectionSpec, FoldedLog, Version } from '../../../ports/readModels.ts'
import { transaction } from '../sqlite.ts'
import { tableName } from './table.ts'

/** A row of `collections`. */
export interface Registered {
  readonly spec: CollectionSpec
  /** The name of its table. */
  readonly stored_as: string
  readonly checkpoint: Cursor | null
}

/** Records which collections the file contains, in which tables they are, and the log that they were folded from. */
export class Registry {
  readonly #db: DatabaseSync

  constructor(db: DatabaseSync) {
    this.#db = db
  }

  find({ name, version }: Version): Registered | undefined {
    const row = this.#db
      .prepare('SELECT spec, stored_as, checkpoint FROM collections WHERE name = ? AND version = ?')
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
    return { spec, stored_as, checkpoint: null }
  }

  remove({ name, version }: Version): void {
    this.#db.prepare('DELETE FROM collections WHERE name = ? AND version = ?').run(name, version)
  }

  versions(): Version[] {
    return this.#db
      .prepare('SELECT name, version FROM collections')
      .all()
      .map(({ name, version }) => ({ name: String(name), version: Number(version) }))
  }

  /** The newest version of each collection. */
  newest(): CollectionSpec[] {
    return specsOf(this.#db.prepare('SELECT spec, max(version) FROM collections GROUP BY name').all())
  }

  /** The collections that contain events. */
  begun(): CollectionSpec[] {
    return specsOf(this.#db.prepare(`SELECT spec FROM collections WHERE checkpoint > ''`).all())
  }

  /** Gives a version the table of another one. Returns its former table, or null if one of the two does not exist. */
  replace(version: Version, by: Version): string | null {
    const [current, next] = [this.find(version), this.find(by)]
    if (!current || !next) return null
    transaction(this.#db, () => {
      this.remove(by)
      this.#db
        .prepare('UPDATE collections SET stored_as = ?, checkpoint = ? WHERE name = ? AND version = ?')
        .run(next.stored_as, next.checkpoint, version.name, version.version)
      this.#db.prepare('INSERT INTO replaced VALUES (?)').run(current.stored_as)
    })
    return current.stored_as
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

const specOf = ({ spec }: Row): CollectionSpec => JSON.parse(String(spec)) as CollectionSpec

const specsOf = (rows: readonly Row[]): CollectionSpec[] => rows.map(specOf)

const registeredOf = (row: Row): Registered => ({
  spec: specOf(row),
  stored_as: String(row['stored_as']),
  checkpoint: row['checkpoint'] === null ? null : String(row['checkpoint']),
})
