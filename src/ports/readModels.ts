import type { Cursor } from '../events/event.ts'

export type Scalar = string | number | boolean | null

/** A document of a read model: plain JSON. Its id is given beside it. */
export type Doc = { readonly [field: string]: unknown }

/** Declares what a read model can be asked. Fields are names of top-level scalar fields of the document. */
export interface CollectionSpec {
  readonly name: string
  /** A new version is a new collection: the projector fills it beside the old one, then switches (I8). */
  readonly version: number
  /**
   * Each index serves queries that fix its `equal` fields and sort by its `sort` field.
   * `counted`: the number of matching documents is kept, so a page's total costs no scan.
   * `steps`, of a counted one whose sort field begins with that much ASCII: the number is also kept for each beginning
   * of these lengths (shortest first), so that `from` and a large offset cost no scan either.
   * `sparse`: documents whose sort field is null are not in it, and cost nothing; it serves only queries that
   * bound the sort field.
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
}

export interface Found<D> {
  readonly items: readonly D[]
  /** All that match, beyond limit and offset. */
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
  /** How far the version read here has come; null when it is new. */
  checkpoint(): Promise<Cursor | null>
}

/** A document with the cursor of the write that left it; null: removed, and still knowing as of when. */
export interface Stored<D extends Doc = Doc> {
  readonly doc: D | null
  readonly cursor: Cursor
}

/** A collection as its projector sees it. */
export interface WritableCollection<D extends Doc = Doc> extends Collection<D> {
  /**
   * What was last written of these ids, removals included; ids never written are missing. Another projector of
   * the collection may be ahead: an event whose cursor is not after the stored one is in the document already.
   */
  stored(ids: readonly string[]): Promise<Map<string, Stored<D>>>
  /**
   * Stores documents, then the checkpoint. A write whose cursor is before the stored document's is left out (of two
   * with one cursor either may stay), so a batch applied twice, or cut in the middle, gives the same documents; the
   * checkpoint never goes back.
   */
  write(writes: readonly Write[], checkpoint: Cursor): Promise<void>
}

/**
 * Disposable views of the log (I8). Adapters: embedded (SQLite), MongoDB. Needs no transactions.
 * Errors: `unavailable`.
 */
export interface ReadModels {
  /** The version that readers see: the newest one that went live, or the given one while none has. */
  reader<D extends Doc>(spec: CollectionSpec): Collection<D>
  writer<D extends Doc>(spec: CollectionSpec): Promise<WritableCollection<D>>
  /** From now on readers see this version; older ones are dropped. With a newer one live, nothing changes. */
  goLive(spec: CollectionSpec): Promise<void>
  close(): Promise<void>
}
