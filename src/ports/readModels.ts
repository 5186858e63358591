import type { Cursor } from '../events/event.ts'

export type Scalar = string | number | boolean | null

/** A document of a read model: plain JSON. Its id is passed separately. */
export type Doc = { readonly [field: string]: unknown }

/** Declares the possible queries of a read model. Fields are names of top-level scalar fields of the document. */
export interface CollectionSpec {
  readonly name: string
  /** A new version is a new collection: it is filled beside the old one, which other nodes may still read (I8). */
  readonly version: number
  /**
   * Each index serves queries that fix its `equal` fields and sort by its `sort` field.
   * `counted`: the number of matching documents is stored, so that the total of a page needs no scan.
   * `steps`: the prefix lengths of the sort field, ascending, for which a counted index also stores the number. The
   * prefixes must be ASCII, and a text must not be empty. `from`, `before` and large offsets then need no scan either.
   * `sparse`: documents with a null sort field are not in the index and cost nothing. The index serves only queries with
   * bounds on the sort field.
   */
  readonly indexes: readonly {
    readonly equal: readonly string[]
    readonly sort: string
    readonly counted?: boolean
    readonly steps?: readonly number[]
    readonly sparse?: boolean
  }[]
}

export interface Query {
  /** Must name exactly the `equal` fields of one declared index. */
  readonly equal: { readonly [field: string]: Scalar }
  /** The `sort` field of that index. */
  readonly sort: string
  readonly descending?: boolean
  /** Bounds on the sort field: `from` inclusive, `before` exclusive. */
  readonly from?: string | number
  readonly before?: string | number
  /** Only documents whose sort field (a string) begins with this. */
  readonly prefix?: string
  readonly limit: number
  readonly offset: number
  /** False: `total` may be any number, because the caller does not use it. Counting may cost more than the page. */
  readonly totals?: boolean
}

export interface Found<D> {
  readonly items: readonly D[]
  /** The number of all matching documents, regardless of limit and offset. */
  readonly total: number
}

/** A document to store, or null to remove it, as of the event at `cursor`. */
export interface Write {
  readonly id: string
  readonly doc: Doc | null
  readonly cursor: Cursor
}

export interface Collection<D extends Doc = Doc> {
  get(id: string): Promise<D | null>
  getMany(ids: readonly string[]): Promise<Map<string, D>>
  find(query: Query): Promise<Found<D>>
  /** Every document, in no promised order. */
  scan(): AsyncIterable<D>
  /** Null when the version is new. */
  checkpoint(): Promise<Cursor | null>
  /** The number of documents. It may read every one of them. */
  count(): Promise<number>
}

/** A document with the cursor of its last write; a removed document is null and keeps its cursor. */
export interface Stored<D extends Doc = Doc> {
  readonly doc: D | null
  readonly cursor: Cursor
}

/** One event's change of a document: what it was before and after. */
export interface Change<D extends Doc = Doc> {
  readonly before: D | null
  readonly after: D | null
  readonly cursor: Cursor
}

export interface WriteOptions {
  /** Documents that are stored before the others. */
  readonly summaries?: readonly Write[]
  /**
   * The changes that lead to the writes, one for each event and document, in the order of the log. Required if the
   * collection `wantsChanges` and another projector may write it at the same time.
   */
  readonly changes?: readonly Change[]
  /** Called before each command that changes documents on a server. It throws if the writes are too old to be sent. */
  readonly refuseLate?: () => void
}

/** A collection as its projector sees it. */
export interface WritableCollection<D extends Doc = Doc> extends Collection<D> {
  /**
   * Returns the last writes of these ids, including removals; ids that were never written are missing. Another projector
   * of the collection may be ahead: a document already contains the events up to its stored cursor.
   */
  stored(ids: readonly string[]): Promise<Map<string, Stored<D>>>
  /** Every id with its last write, including removals, in no promised order. */
  entries(): AsyncIterable<readonly [id: string, stored: Stored<D>]>
  /**
   * Stores documents, then the checkpoint. A write with an older cursor than the stored document is skipped; of two writes
   * with the same cursor, either may win. A batch that is applied twice or interrupted therefore produces the same
   * documents. The checkpoint never decreases. The cursors of a collection with counted indexes are positions in one log.
   */
  write(writes: readonly Write[], checkpoint: Cursor, options?: WriteOptions): Promise<void>
  /**
   * Forgets some removals up to a cursor. Resolves with their number: 0 if there are none left. An older write of one of these
   * documents would restore it, so none may be on its way.
   */
  forgetRemovals(upTo: Cursor): Promise<number>
  /** True: without transactions, the adapter keeps the totals of counted indexes by the changes of documents. */
  readonly wantsChanges?: boolean
  /** True: `stored` returns the newest writes from memory, so a projector need not keep them. */
  readonly remembers?: boolean
  /** True: a write waits for a server, so this process can work meanwhile, and few large writes take less time. */
  readonly isRemote?: boolean
}

/** One version of a collection. */
export type Version = Pick<CollectionSpec, 'name' | 'version'>

/** The log that read models were folded from. */
export interface FoldedLog {
  /** Null if they are new, or were written by a version that did not note it. */
  readonly log_id: string | null
  /** The newest checkpoint of a collection; null if there is none. */
  readonly checkpoint: Cursor | null
}

/** New versions that a thread fills, while this process does not read or write them. */
export interface Apart {
  /**
   * Begins or continues a new version. Returns the folder that the thread fills; null if the version exists already. After
   * a crash, it is continued or dropped.
   */
  begin(spec: CollectionSpec): string | null
  /** The thread has filled it and has ended. Readers and writers of this process use it from now on. */
  end(version: Version): void
}

/**
 * Disposable views of the log (I8). Adapters: embedded (SQLite), MongoDB. No transactions are required.
 * Errors: `unavailable`.
 */
export interface ReadModels {
  /**
   * Reads the given version and no other. A version that was never written is empty. Fails for ever if the version was
   * dropped after the first read: its documents are gone, or incomplete. On a server, documents that were restored from a backup
   * are refused with `unavailable` until they contain again what this process has seen, so they are never served as current.
   */
  reader<D extends Doc>(spec: CollectionSpec): Collection<D>
  /** Rejects if the version was created with other indexes. */
  writer<D extends Doc>(spec: CollectionSpec): Promise<WritableCollection<D>>
  /** The stored versions of all collections. */
  versions(): Promise<readonly Version[]>
  /**
   * Removes a version, unless `isUnread` returns false. It is asked again after a time in which each node that reads the
   * version can stop the removal.
   */
  drop(version: Version, isUnread: () => Promise<boolean>): Promise<void>
  /**
   * Puts the documents, indexes and checkpoint of one version in the place of those of another one: readers of `version` see either all documents of before or all of `by`. Then `by` does not exist. A query for which its documents have no index
   * reads all of them. No writer of the two of this process may be in use. After a crash, a repetition completes it; if `by` does not exist, nothing changes. With
   * `isUnread`, nothing changes either while a node reads `by`: it is asked as in `drop`, and a crash may lose `by`. On a
   * server, nothing changes either if another node has gone on, so that documents would be lost: `version` contains later
   * events, or `by` was created again. Resolves with false if nothing changed for one of these two reasons.
   */
  replace(version: Version, by: Version, isUnread?: () => Promise<boolean>): Promise<boolean>
  /** Fills new versions apart from the others. Absent on a server, which does not share the processors of this process. */
  readonly apart?: Apart
  /** The free bytes of the disk that they share with the log. Absent if their disk is another one. */
  readonly freeBytes?: () => number
  source(): Promise<FoldedLog>
  /** Notes the log that the read models are folded from. */
  assign(log_id: string): Promise<void>
  /** The number of documents that contain events after a cursor. It may read every document. */
  countAfter(cursor: Cursor): Promise<number>
  /** Removes every collection, then notes the log. Called before this process has a reader or writer. */
  restart(log_id: string): Promise<void>
  close(): Promise<void>
}
