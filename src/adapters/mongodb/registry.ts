import type { Collection as Documents } from 'mongodb'
import { type Cursor, START } from '../../events/event.ts'
import { AppError } from '../../errors.ts'
import { newId } from '../../ids.ts'
import type { CollectionSpec, FoldedLog, Version } from '../../ports/readModels.ts'
import { collectionName, COUNTS, dropCollection } from './collections.ts'
import { ask, isDuplicate } from './failures.ts'
import type { Database } from './server.ts'

export interface Exchange {
  /** The collection with the new documents. */
  readonly by: string
  /** False: it is announced, and nothing was renamed. */
  readonly isMoving: boolean
}

/** One row for each created version: `runs__v1`. */
export interface VersionRow {
  readonly _id: string
  /** JSON text: the indexes of its collection. */
  readonly indexes: string
  /** JSON text: the indexes with which it was created, while it has the documents of a version with others. */
  readonly declared?: string
  readonly checkpoint: Cursor | null
  /** Differs each time the version is created. svc 0.1.0 does not write it. */
  readonly made?: string
  /** The removal in progress. */
  readonly dropping?: string
  /** The exchange of the documents in progress, on a server that needs several steps. */
  readonly exchange?: Exchange
  /** Differs after each such exchange. */
  readonly exchanged?: string
  /** Differs after each exchange on any server. Writers that were opened before it are refused. */
  readonly claimed?: string
}

/** A created version. */
interface Registered {
  readonly spec: CollectionSpec
  readonly declared: CollectionSpec['indexes']
  /** A crash has interrupted an exchange of its documents. */
  readonly isExchanging: boolean
  readonly made?: string
  readonly claimed?: string
}

/** What a writer expects of a version. */
interface Expected {
  /** A checkpoint that it has stored; null if none. */
  readonly known: Cursor | null
  /** `claimed` of the row when it was opened. */
  readonly claimed: string | undefined
}

/** The indexes with which a version was created. */
export const declaredOf = ({ indexes, declared = indexes }: VersionRow): string => declared

/** Why a writer is refused. */
const lossOf = (row: VersionRow | null, claimed: string | undefined): string => {
  if (!row) return 'was dropped'
  return row.claimed === claimed
    ? 'has lost writes, as by a restore or a rollback'
    : 'has other documents now'
}

const parsed = (indexes: string): CollectionSpec['indexes'] =>
  JSON.parse(indexes) as CollectionSpec['indexes']

/** The only row of its collection. */
interface IdentityRow {
  readonly _id: 'log'
  readonly log_id: string
}

/** The stored facts about the log, and about each version: its indexes, its checkpoint and whether it is being dropped. */
export class Registry {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  get #versions(): Documents<VersionRow> {
    return this.#database.db.collection('versions')
  }

  /** Written and read by svc 0.1.0: the newest version of its nodes. It stays theirs, so that they can work beside this build. */
  get #pointers(): Documents<{ readonly _id: string }> {
    return this.#database.db.collection('pointers')
  }

  get #identity(): Documents<IdentityRow> {
    return this.#database.db.collection('identity')
  }

  /** Rejects if the server does not answer or does not permit writes. */
  async probe(): Promise<void> {
    await this.#versions.deleteOne({ _id: '' })
  }

  /**
   * Registers the version, and stops its removal. Resolves with the indexes of its collection, with those that it was
   * first created with, and with `made` and `claimed` of its row.
   */
  async register(spec: CollectionSpec): Promise<Registered> {
    const _id = collectionName(spec)
    const row = { indexes: JSON.stringify(spec.indexes), checkpoint: null, made: newId() }
    const stored = await ask(async () => {
      await this.#versions
        .updateOne({ _id }, { $setOnInsert: row, $unset: { dropping: '' } }, { upsert: true })
        .catch((error: unknown) => {
          if (!isDuplicate(error)) throw error // another node registered it first
        })
      return this.#versions.findOne({ _id })
    })
    if (!stored) return { spec, declared: spec.indexes, isExchanging: false }
    return {
      spec: { ...spec, indexes: parsed(stored.indexes) },
      declared: parsed(declaredOf(stored)),
      isExchanging: stored.exchange !== undefined,
      ...(stored.made !== undefined && { made: stored.made }),
      ...(stored.claimed !== undefined && { claimed: stored.claimed }),
    }
  }

  /** Records the indexes that the collection of a version is about to get, or has got. */
  async setIndexes(version: Version, indexes: string): Promise<void> {
    const row = await this.row(version)
    if (!row || row.indexes === indexes) return
    const declared = declaredOf(row)
    const change =
      declared === indexes
        ? { $set: { indexes }, $unset: { declared: '' as const } }
        : { $set: { indexes, declared } }
    await ask(() => this.#versions.updateOne({ _id: row._id }, change))
  }

  /** Null if the version does not exist. */
  async row(version: Version): Promise<VersionRow | null> {
    return ask(() => this.#versions.findOne({ _id: collectionName(version) }))
  }

  rows(): Promise<VersionRow[]> {
    return ask(() => this.#versions.find().toArray())
  }

  async checkpoint(version: Version): Promise<Cursor | null> {
    return (await this.row(version))?.checkpoint ?? null
  }

  /**
   * Moves the checkpoint forward, never back. Throws `unavailable` if the version was dropped, if its documents were
   * exchanged, or if the server has lost the known checkpoint: its projector restarts.
   */
  async advance(version: Version, checkpoint: Cursor, { known, claimed }: Expected): Promise<void> {
    const _id = collectionName(version)
    const filter = {
      _id,
      claimed: claimed ?? { $exists: false },
      ...(known !== null && { checkpoint: { $gte: known } }),
    }
    const { matchedCount } = await ask(() => this.#versions.updateOne(filter, { $max: { checkpoint } }))
    if (matchedCount > 0) return
    throw new AppError('unavailable', `The read model ${_id} ${lossOf(await this.row(version), claimed)}`)
  }

  /** Sets the checkpoint to that of the documents that took the place of others, also back. */
  async setCheckpoint(version: Version, checkpoint: Cursor): Promise<void> {
    await ask(() => this.#versions.updateOne({ _id: collectionName(version) }, { $set: { checkpoint } }))
  }

  /**
   * Permits that documents with this checkpoint take the place of those of a version, unless these contain later events.
   * An exchange that was announced begins to move, unless it was cancelled. From then on, no writer that was opened before
   * stores a later checkpoint. Resolves with whether it is permitted.
   */
  async claim(version: Version, checkpoint: Cursor | null, announced?: Exchange): Promise<boolean> {
    const filter = {
      _id: collectionName(version),
      checkpoint: { $not: { $gt: checkpoint ?? START } },
      ...(announced && { 'exchange.by': announced.by }),
    }
    const exchange = announced && { exchange: { ...announced, isMoving: true } }
    const change = { $set: { claimed: newId(), ...exchange } }
    const { matchedCount } = await ask(() => this.#versions.updateOne(filter, change))
    return matchedCount > 0
  }

  /** Records how far an exchange of the documents is; null: it is complete. */
  async setExchange(version: Version, exchange: Exchange | null): Promise<void> {
    const _id = collectionName(version)
    const change =
      exchange === null
        ? { $set: { exchanged: newId() }, $unset: { exchange: '' as const } }
        : { $set: { exchange } }
    await ask(() => this.#versions.updateOne({ _id }, change))
  }

  /** Begins the removal of a version. */
  async mark(version: Version): Promise<string> {
    const dropping = newId()
    await ask(() => this.#versions.updateOne({ _id: collectionName(version) }, { $set: { dropping } }))
    return dropping
  }

  /** Stops the removal of a version. */
  async keep(version: Version): Promise<void> {
    await ask(() => this.#versions.updateOne({ _id: collectionName(version) }, { $unset: { dropping: '' } }))
  }

  /** Forgets a version that still has this mark. Resolves with whether it has no row now. */
  async forget(version: Version, dropping: string): Promise<boolean> {
    const { deletedCount } = await ask(() =>
      this.#versions.deleteOne({ _id: collectionName(version), dropping }),
    )
    return deletedCount > 0 || (await this.row(version)) === null
  }

  /** Removes a row, unless its version was created again meanwhile. */
  async remove({ _id, made }: VersionRow): Promise<void> {
    await ask(() => this.#versions.deleteOne({ _id, ...(made !== undefined && { made }) }))
  }

  async source(): Promise<FoldedLog> {
    const identity = await ask(() => this.#identity.findOne({ _id: 'log' }))
    let newest: Cursor | null = null
    for (const { checkpoint } of await this.#folded())
      if (checkpoint !== null && (newest === null || checkpoint > newest)) newest = checkpoint
    return { log_id: identity?.log_id ?? null, checkpoint: newest }
  }

  async assign(log_id: string): Promise<void> {
    const set = () => this.#identity.updateOne({ _id: 'log' }, { $set: { log_id } }, { upsert: true })
    await ask(() =>
      set().catch((error: unknown) => (isDuplicate(error) ? set() : Promise.reject(error as Error))),
    )
  }

  /** Drops the collections of all versions. */
  async dropAll(): Promise<void> {
    await ask(() => this.#pointers.deleteMany({}))
    for (const { _id } of await this.rows()) {
      await dropCollection(this.#database.db, `${_id}${COUNTS}`)
      await dropCollection(this.#database.db, _id)
      await ask(() => this.#versions.deleteOne({ _id }))
    }
  }

  async countAfter(cursor: Cursor): Promise<number> {
    let count = 0
    for (const { _id } of await this.#folded()) {
      const query = { 'last.cursor': { $gt: cursor }, 'last.gone': false }
      count += Number((await ask(() => this.#database.db.command({ count: _id, query })))['n'])
    }
    return count
  }

  /** The versions that were folded from the log; the others have no checkpoint. */
  async #folded(): Promise<VersionRow[]> {
    return ask(() => this.#versions.find({ checkpoint: { $gt: START } }).toArray())
  }
}
