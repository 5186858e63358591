import type { DatabaseSync } from 'node:sqlite'
import { BoundedMap } from '../../../boundedMap.ts'
import { AppError } from '../../../errors.ts'
import type { Recorded } from '../../../events/event.ts'
import { AlienFile, Damage, type OnDamaged, type OnDiscarded, openDisposable } from '../disposableFile.ts'
import { closedOnFailure, isLoss, openDatabase, rows, unavailable } from '../sqlite.ts'
import { checkOf, withEntry, withoutEntry } from './indexDigest.ts'
import { Tails } from './tails.ts'

/** Entries in one commit, so that the pages that they share are written once. */
const ENTRIES_PER_COMMIT = 16_384

/** Commits after which the WAL is moved into the database even under load. */
const COMMITS_PER_CHECKPOINT = 16

/** Streams whose last revision is kept in memory. */
const HEADS = 50_000

/** A larger index is not read whole when it is opened: for so many entries, this takes about a quarter of a second. */
const CHECKED_ENTRIES = 200_000

/** The sum over all entries, and the number that checks it. */
const SUM = 'sum'
const CHECK = 'check'

/** The position of the last event that an index had before the log lost its end. */
const REMEMBERED = 'remembered'

/** The place of an event of a stream. */
interface Entry {
  readonly revision: number
  readonly position: number
}

/** Positions of consecutive events of a stream. */
interface Positions {
  /** Revision of the first one. */
  readonly first: number
  readonly positions: readonly number[]
}

/** Opens `index.db`. A damaged file is moved aside, and the index is built again. */
export const openStreamIndex = (file: string, onDiscarded: OnDiscarded, onDamaged: OnDamaged): StreamIndex =>
  openDisposable(
    file,
    () => {
      const db = openDatabase(file, 'normal')
      return closedOnFailure(db, () => {
        const index = new StreamIndex(db, new Damage(file, onDamaged))
        if (!index.isIntact()) throw new AlienFile('its entries are not those that were written')
        return index
      })
    },
    onDiscarded,
  )

/**
 * The position of each event of each stream in the log: `index.db`. It is written after the log in long
 * transactions and needs no sync: entries that a crash destroys are rebuilt from the log at open.
 */
export class StreamIndex {
  readonly #db: DatabaseSync
  readonly #damage: Damage
  readonly #insert
  readonly #remove
  readonly #positions
  readonly #oldest
  readonly #head
  readonly #position
  readonly #setPosition
  readonly #logId
  readonly #heads = new BoundedMap<string, number>(HEADS)
  readonly #tails = new Tails()
  #last: number
  #sum: number
  #uncommitted = 0
  #commits = 0
  #whole = true

  constructor(db: DatabaseSync, damage: Damage) {
    this.#db = db
    this.#damage = damage
    this.#db.exec(`PRAGMA wal_autocheckpoint=0;
      CREATE TABLE IF NOT EXISTS entries (stream TEXT, revision INTEGER, position INTEGER,
        PRIMARY KEY (stream, revision)) WITHOUT ROWID;
      CREATE TABLE IF NOT EXISTS positions (name TEXT PRIMARY KEY, position INTEGER NOT NULL) WITHOUT ROWID;
      CREATE TABLE IF NOT EXISTS identity (log_id TEXT NOT NULL)`)
    this.#insert = this.#db.prepare('INSERT OR REPLACE INTO entries VALUES (?, ?, ?)')
    this.#remove = this.#db.prepare('DELETE FROM entries WHERE stream = ? AND revision = ?')
    this.#positions = rows<[position: number, revision: number]>(
      this.#db.prepare(
        'SELECT position, revision FROM entries WHERE stream = ? AND revision >= ? ORDER BY revision LIMIT ?',
      ),
    )
    this.#oldest = rows<[revision: number, position: number]>(
      this.#db.prepare('SELECT revision, position FROM entries WHERE stream = ? ORDER BY revision LIMIT 1'),
    )
    this.#head = rows<[revision: number | null]>(
      this.#db.prepare('SELECT max(revision) FROM entries WHERE stream = ?'),
    )
    this.#position = this.#db.prepare('SELECT position FROM positions WHERE name = ?')
    this.#setPosition = this.#db.prepare('INSERT OR REPLACE INTO positions VALUES (?, ?)')
    this.#logId = rows<[log_id: string]>(this.#db.prepare('SELECT log_id FROM identity'))
    this.#last = this.#positionOf('indexed') ?? 0
    this.#sum = this.#positionOf(SUM) ?? 0
    this.#db.exec('BEGIN')
  }

  /** Whether the file is as it was written. An index of an earlier version has no check, and gets one. */
  isIntact(): boolean {
    if (!['undefined', 'string'].includes(typeof this.logId)) return false
    const check = this.#positionOf(CHECK)
    if (check === undefined) this.#sum = this.#sumOfAll()
    else if (this.#last <= CHECKED_ENTRIES) return check === checkOf(this.#sumOfAll(), this.#last)
    return check === undefined || check === checkOf(this.#sum, this.#last)
  }

  #sumOfAll(): number {
    let sum = 0
    const all = rows<[stream: string, revision: number, position: number]>(
      this.#db.prepare('SELECT stream, revision, position FROM entries'),
    )
    for (const [stream, revision, position] of all.iterate())
      sum = withEntry(sum, String(stream), Number(revision), Number(position))
    return sum
  }

  /** Position of the newest event that was added. */
  get last(): number {
    return this.#last
  }

  /** The position of the newest event that this index has ever had, also of one that the log has lost. */
  get remembered(): number {
    return Math.max(this.positionNamed(REMEMBERED) ?? 0, this.#last)
  }

  /** Remembers that the log had an event at this position. Durable when it returns. Throws `unavailable`. */
  remember(position: number): void {
    if (position > this.remembered) this.setPosition(REMEMBERED, position)
    this.commit()
    this.#moveWal()
    this.demandWhole()
  }

  /** Forgets the events that the log has lost. */
  forgetLost(): void {
    this.setPosition(REMEMBERED, 0)
    this.commit()
  }

  /** The id of the log from which the index was built; undefined in a new one, and in one of an earlier version. */
  get logId(): string | undefined {
    return this.#logId.get()?.[0]
  }

  assign(log_id: string): void {
    this.#write(() => {
      this.#db.exec('DELETE FROM identity')
      this.#db.prepare('INSERT INTO identity VALUES (?)').run(log_id)
      this.#uncommitted++
    })
    this.commit()
  }

  /**
   * False after a failed write: the index is incomplete until `restore` has added the missing entries. Writing does not throw, because the events are already in the log.
   */
  get whole(): boolean {
    return this.#whole
  }

  add(event: Pick<Recorded, 'stream' | 'revision'>, position: number): void {
    this.#write(() => {
      this.#insert.run(event.stream, event.revision, position)
      this.#tails.add(event.stream, event.revision, position)
      this.#sum = withEntry(this.#sum, event.stream, event.revision, position)
      this.#last = position
      if (++this.#uncommitted >= ENTRIES_PER_COMMIT) this.commit()
    })
  }

  /** Records that the events up to a position were added; some of them may have been removed from the log. */
  reach(position: number): void {
    if (position <= this.#last) return
    this.#write(() => {
      this.#last = position
      this.#uncommitted++
    })
  }

  /** Removes the entry of an event that was removed from the log. */
  remove(stream: string, { revision, position }: Entry): void {
    this.#write(() => {
      if (this.#remove.run(stream, revision).changes === 0) return
      this.#sum = withoutEntry(this.#sum, stream, revision, position)
      if (++this.#uncommitted >= ENTRIES_PER_COMMIT) this.commit()
    })
  }

  /** The first entry of a stream; undefined if it has none. */
  oldestOf(stream: string): Entry | undefined {
    const [revision, position] = this.#read(() => this.#oldest.get(stream)) ?? []
    return revision === undefined || position === undefined ? undefined : { revision, position }
  }

  /** Revision of the last event of a stream; -1 when it has none. */
  headOf(stream: string): number {
    const known = this.#heads.get(stream)
    if (known !== undefined) return known
    return this.#read(() => this.#head.get(stream)?.[0] ?? -1)
  }

  /** Records the revision of a pending append; `forgetHead` reverts it. */
  setHead(stream: string, revision: number): void {
    this.#heads.set(stream, revision)
  }

  forgetHead(stream: string): void {
    this.#heads.delete(stream)
  }

  /** Returns the positions of up to `limit` consecutive events of a stream from a revision or, if it was removed, a later one. */
  positionsOf(stream: string, from: number, limit: number): Positions {
    const recent = this.#tails.from(stream, from, limit)
    if (recent) return { first: from, positions: recent }
    return this.#read(() => {
      const found = this.#positions.all(stream, from, limit)
      return { first: found[0]?.[1] ?? from, positions: found.map(([position]) => position) }
    })
  }

  /** Throws `unavailable` unless everything that was added is in the index. */
  demandWhole(): void {
    if (!this.#whole) throw new AppError('unavailable', 'The index of the event store cannot be written')
  }

  /** Whether damage was found since the start. */
  get isDamaged(): boolean {
    return this.#damage.isFound
  }

  /** Refuses work that needs entries which are lost or wrong. */
  refuse(cause?: unknown): never {
    this.#damage.refuse(cause)
  }

  /** A position kept by name beside the index, such as a consumer group's. */
  positionNamed(name: string): number | undefined {
    return this.#read(() => this.#positionOf(name))
  }

  #positionOf(name: string): number | undefined {
    const row = this.#position.get(name)
    return row && Number(row['position'])
  }

  setPosition(name: string, position: number): void {
    this.#write(() => {
      this.#setPosition.run(name, position)
      this.#uncommitted++
    })
  }

  removePosition(name: string): void {
    this.#write(() => {
      this.#db.prepare('DELETE FROM positions WHERE name = ?').run(name)
      this.#uncommitted++
    })
    this.commit()
  }

  commit(): void {
    if (this.#uncommitted === 0) return
    this.setPosition('indexed', this.#last)
    this.setPosition(SUM, this.#sum)
    this.setPosition(CHECK, checkOf(this.#sum, this.#last))
    this.#write(() => {
      this.#db.exec('COMMIT')
      this.#uncommitted = 0
      if (++this.#commits >= COMMITS_PER_CHECKPOINT) this.#checkpoint()
      this.#db.exec('BEGIN')
    })
  }

  /** Commits and moves the WAL into the database file, at a time when no caller waits. */
  settle(): void {
    this.commit()
    if (this.#commits > 0) this.#moveWal()
  }

  /**
   * Removes all entries, because the log ends at `end` or is another one. The caller adds the entries again. The index
   * remembers where it ended, until `forgetLost`.
   */
  reset(end: number, { isAnotherLog }: { readonly isAnotherLog: boolean }): void {
    const { remembered } = this
    this.#db.exec('DELETE FROM entries')
    if (isAnotherLog) this.#db.exec('DELETE FROM positions')
    this.#db.prepare('UPDATE positions SET position = ? WHERE position > ?').run(end, end)
    if (remembered > end) this.#setPosition.run(REMEMBERED, remembered)
    this.#uncommitted++
    this.#last = 0
    this.#sum = 0
    this.#heads.clear()
    this.#tails.clear()
  }

  /**
   * Returns to the last commit. `addLater` adds the later entries; if it throws, the index is still incomplete. The heads stay,
   * because those of pending appends are nowhere else.
   */
  restore(addLater: () => void): void {
    if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
    this.#db.exec('BEGIN')
    this.#tails.clear()
    this.#uncommitted = 0
    this.#last = this.positionNamed('indexed') ?? 0
    this.#sum = this.positionNamed(SUM) ?? 0
    this.#whole = true
    try {
      addLater()
    } catch (error) {
      this.#whole = false
      throw error
    }
  }

  close(): void {
    this.commit()
    this.#write(() => this.#db.exec('COMMIT'))
    this.#db.close()
  }

  #write(work: () => void): void {
    if (!this.#whole) return
    try {
      work()
    } catch (error) {
      this.#whole = false
      if (isLoss(error)) this.#damage.found()
    }
  }

  #read<T>(work: () => T): T {
    try {
      return work()
    } catch (error) {
      if (isLoss(error)) this.refuse(error)
      throw unavailable(error)
    }
  }

  /** Moves what was committed into the database file, and syncs it. */
  #moveWal(): void {
    this.#write(() => {
      this.#db.exec('COMMIT')
      this.#checkpoint()
      this.#db.exec('BEGIN')
    })
  }

  #checkpoint(): void {
    this.#db.exec('PRAGMA wal_checkpoint(RESTART)')
    this.#commits = 0
  }
}
