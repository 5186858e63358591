import type { Recorded } from '../events/event.ts'
import type { DomainEvent, EventOf, EventType } from '../events/index.ts'
import type { CollectionSpec, Doc, Query, Version } from '../ports/readModels.ts'
import type { Summarizer } from './summaries.ts'

/**
 * A read model as a pure fold of the log: the same events give the same documents, on every adapter and
 * after every rebuild (I8). Raise `version` when `evolve` or an index changes: the new documents are then built beside the
 * old ones, which nodes of the earlier version read and write until they are gone.
 */
export interface Projection<D extends Doc = Doc> extends CollectionSpec {
  readonly handles: readonly EventType[]
  /**
   * The first version whose documents this build can read and continue until its own are built. Default: the version before
   * this one. Set it to `version` if this build would misread earlier documents. Queries for which they have no index read all of them.
   */
  readonly servesFrom?: number
  /** Whether an event begins a document. The projector does not read what was stored before. */
  begins?(recorded: Recorded): boolean
  /**
   * Documents usually end soon after they began. One that begins and ends in one batch is not stored, so it leaves no
   * removal behind. After a crash, a document may remain that should have ended: readers must expect it.
   */
  readonly isBrief?: true
  /**
   * A server also forgets the removals of its documents, of which there are as many as runs. A machine that was suspended for
   * more than an hour while it sent a document may restore it: readers must expect it, or a later fact removes it again.
   */
  readonly forgetsRemovals?: true
  /**
   * Access is decided by these documents. A missing revocation would permit what is forbidden, so a fact that cannot be
   * folded stops the read model instead of being skipped.
   */
  readonly decidesAccess?: true
  /** Returns the ids of the documents that an event of `handles` may change. */
  idsOf(recorded: Recorded): readonly string[]
  /** Returns the document after the event; null removes it. */
  evolve(doc: D | null, recorded: Recorded, id: string): D | null
  /** The documents that an event removes besides those of `idsOf`. They may be many. */
  clears?(recorded: Recorded): readonly Cleared<D>[]
  /** Begins the summaries, by id, that the changes of one batch concern. They are documents of the same collection. */
  summarize?(): Summarizer<D>
}

/** The usual value of `clears`, which is asked for each event. */
export const NOTHING: readonly never[] = []

/** All documents that a query of one index finds. */
export interface Cleared<D extends Doc = Doc> extends Pick<Query, 'equal' | 'before'> {
  readonly sort: string
  /** The id of a document. */
  id(this: void, doc: D): string
  /** Whether a document remains. */
  keeps?(this: void, doc: D): boolean
}

/** Sorts documents by their creation; unique, because the log has one event at a cursor. */
export const orderOf = ({ at, cursor }: Pick<Recorded, 'at' | 'cursor'>): string => `${at}/${cursor}`

/** The bounds of a field `id/order` for one id: "0" is the character after "/". */
export const withId = (id: string): { readonly from: string; readonly before: string } => ({
  from: `${id}/`,
  before: `${id}0`,
})

/** The days, hours and minutes of an `order`, as steps of an index that is sorted by it. */
export const BY_TIME = [10, 13, 16] as const

/**
 * The runs or events of an environment that are removed with its content, or when its plan keeps them no longer. The
 * projection sorts them by `order`. `keeps`: whether a document remains, although it began before that day.
 */
export const expiredCalls = <D extends Doc & { readonly order: string }>(
  event: DomainEvent,
  id: (doc: D) => string,
  keeps?: (doc: D, before: string) => boolean,
): readonly Cleared<D>[] => {
  if (event.type === 'EnvPurged') return [{ equal: { env_id: event.env_id }, sort: 'order', id }]
  if (event.type !== 'CallsExpired') return NOTHING
  const { env_id, before } = event
  const range = { equal: { env_id }, sort: 'order', before: removedBefore(event) }
  return [{ ...range, id, ...(keeps && { keeps: (doc) => keeps(doc, before) }) }]
}

/** The `order` before which documents are removed: the day that the plan keeps, or a part of the days before it. */
export const removedBefore = ({ before, up_to }: EventOf<'CallsExpired'>): string =>
  up_to !== undefined && up_to < before ? up_to : before

/** A read model and its version, as readers on other nodes know it. */
export const nameOf = ({ name, version }: Version): string => `${name}@${version}`
