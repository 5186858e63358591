import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { syncFolderNow } from '../../../disk/sync.ts'
import { newId } from '../../../ids.ts'
import type { Checkpointer } from '../checkpointer.ts'
import type { CollectionSpec } from '../../../ports/readModels.ts'
import { closedOnFailure, openDatabase, rows } from '../sqlite.ts'
import { WalKeeper } from '../walKeeper.ts'
import { fileIn } from './file.ts'
import { Table } from './table.ts'

const WAL_FULL_BYTES = 8 << 20
/** There may be one for each read model. */
const CACHE_KB = 4000

/** The file that names the start of the machine since which a thread fills the folder. */
const BOOT = 'boot'

const textIn = (file: string): string | null => (existsSync(file) ? readFileSync(file, 'utf8').trim() : null)
const bootIn = (folder: string): string | null => textIn(join(folder, BOOT))

/** Differs after each start of the machine. A system that does not report it counts as started again with each process. */
const BOOT_ID = textIn('/proc/sys/kernel/random/boot_id') ?? newId()

interface SideFile {
  readonly db: DatabaseSync
  readonly wal: WalKeeper
}

/**
 * Databases in folders of `<dir>/read-models/`, each with one collection. A thread fills one without delaying the commits of
 * the process, and its removal takes no time.
 */
export class SideFiles {
  readonly #folder: string
  readonly #checkpointer: Checkpointer
  readonly #opened = new Map<string, SideFile>()

  constructor(dir: string, checkpointer: Checkpointer) {
    this.#folder = join(dir, 'read-models')
    this.#checkpointer = checkpointer
  }

  folderOf(name: string): string {
    return join(this.#folder, name)
  }

  /** Creates an empty folder. Returns its name. */
  create(): string {
    const name = newId()
    this.#make(name)
    return name
  }

  /** Returns the folder of one that a thread has begun to fill. It is emptied if the machine was started since. */
  continued(name: string): string {
    const folder = this.folderOf(name)
    if (bootIn(folder) !== BOOT_ID) {
      rmSync(folder, { recursive: true, force: true })
      this.#make(name)
    }
    return folder
  }

  #make(name: string): void {
    const folder = this.folderOf(name)
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, BOOT), BOOT_ID)
  }

  /** Makes the names of a filled one durable. */
  settle(name: string): void {
    for (const folder of [this.folderOf(name), this.#folder, join(this.#folder, '..')]) syncFolderNow(folder)
  }

  /** The table of its collection, which may have had another name when it was filled. */
  tableOf(
    name: string,
    { indexes, stored_as }: { readonly indexes: CollectionSpec['indexes']; readonly stored_as: string },
  ): Table {
    const { db } = this.#open(name)
    const row = rows<[name: string, version: number]>(
      db.prepare('SELECT name, version FROM collections WHERE stored_as = ?'),
    ).get(stored_as)
    if (!row) throw new Error(`Expected a table ${stored_as} in ${this.folderOf(name)}`)
    return new Table(db, { name: row[0], version: row[1], indexes }, stored_as)
  }

  #open(name: string): SideFile {
    const known = this.#opened.get(name)
    if (known) return known
    const file = fileIn(this.folderOf(name))
    if (!existsSync(file)) throw new Error(`${file} is missing`)
    const db = openDatabase(file, 'normal')
    const opened = closedOnFailure(db, () => {
      db.exec(`PRAGMA cache_size=-${CACHE_KB}`)
      const wal = new WalKeeper(db, file, this.#checkpointer, { fullBytes: WAL_FULL_BYTES, syncs: true })
      return { db, wal }
    })
    this.#opened.set(name, opened)
    return opened
  }

  walOf(db: DatabaseSync): WalKeeper | undefined {
    for (const each of this.#opened.values()) if (each.db === db) return each.wal
    return undefined
  }

  async remove(name: string): Promise<void> {
    this.#close(name)
    await rm(this.folderOf(name), { recursive: true, force: true })
  }

  /** Removes those that a crash has left. */
  removeOthers(kept: ReadonlySet<string>): void {
    if (!existsSync(this.#folder)) return
    for (const name of readdirSync(this.#folder))
      if (!kept.has(name)) rmSync(this.folderOf(name), { recursive: true, force: true })
  }

  close(): void {
    for (const name of this.#opened.keys()) this.#close(name)
  }

  #close(name: string): void {
    const opened = this.#opened.get(name)
    this.#opened.delete(name)
    opened?.wal.close()
    opened?.db.close()
  }
}
