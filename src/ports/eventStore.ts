import type { Cursor, NewEvent, Recorded } from '../events/event.ts'
import type { EventType } from '../events/index.ts'
import type { Histogram } from './histogram.ts'
import type { StoredLog } from './storedLog.ts'

/** The revision a stream must have for an append to happen; `none`: the stream must be empty. */
export type Expected = number | 'none'

export interface Appended {
  /** Revision of the last event appended. */
  readonly revision: number
  /** Cursor of the last event appended, in the whole log. */
  readonly cursor: Cursor
}

/** Selects events of the whole log. The cursor also moves past events that do not match. */
export interface Filter {
  readonly types?: readonly EventType[]
  readonly env_id?: string
}

/** The events that a consumer of a group receives. */
export interface Consuming extends Filter {
  /** Where a new group begins. Default: the start. */
  readonly from?: Cursor
  /** The most deliveries that wait for their acknowledgement. Default: 64. */
  readonly inFlight?: number | undefined
  /** The most memory that they take beside the last of them. Default: no limit. */
  readonly inFlightBytes?: number | undefined
  readonly signal: AbortSignal
}

/** Consecutive events of the log, and the position of the reader after them. */
export interface Batch {
  /** In log order; may be empty when only the cursor moved or the reader caught up. */
  readonly events: readonly Recorded[]
  readonly cursor: Cursor
  /** True when no more events were stored at that moment. Several batches can have it. */
  readonly caughtUp: boolean
}

/** Consecutive events of one stream, without gaps. */
export interface StreamBatch {
  readonly events: readonly Recorded[]
  readonly caughtUp: boolean
}

/** An event for one consumer of a group, delivered again until it is acknowledged. Only the first `ack` or `retry` counts. */
export interface Delivery {
  readonly event: Recorded
  /** The group does not deliver this event again once the acknowledgement is stored. */
  ack(): void
  /** Delivers the event to a consumer of the group again. */
  retry(): void
}

/**
 * The event log, the only source of truth. Appends are durable when they resolve (I1). Adapters: embedded (SQLite),
 * EventStoreDB. Errors: `wrong_revision` with `data {stream, expected, actual}`, `bad_request` for facts that are not JSON,
 * `unavailable`.
 */
export interface EventStore {
  /** The time that commits take until their facts are durable, seconds. */
  readonly commits: Histogram

  /**
   * Appends all events or none. A repeat of the same ids at the same expected revision resolves with the first revision
   * and cursor, even if more was appended since.
   */
  append(stream: string, events: readonly NewEvent[], expected: Expected): Promise<Appended>

  /**
   * Reads forwards from a revision (inclusive, default 0). A missing stream is an empty one. A read that ends early is
   * complete: no further event was stored. Events that have expired are skipped, also at `from`.
   */
  read(stream: string, options?: { from?: number; limit?: number }): AsyncIterable<Recorded>

  /** Delivers the whole log after a cursor (default: from the start), then new events, until the signal aborts. */
  subscribe(options: Filter & { after?: Cursor; signal: AbortSignal }): AsyncIterable<Batch>

  /**
   * Delivers one stream after a revision (default -1: all of it), then new events, until the signal aborts. A follower whose
   * next events have expired receives a batch without events that is `caughtUp`.
   */
  follow(stream: string, options: { after?: number; signal: AbortSignal }): AsyncIterable<StreamBatch>

  /**
   * Competing consumers: each matching event goes to one consumer of the group, at least once, in no
   * promised order. The store keeps the group's position; a new group begins after `from`.
   */
  consume(group: string, options: Consuming): AsyncIterable<Delivery>

  /**
   * Forgets a group with its position; it is new at its next use. A missing group is not an error. Nothing may consume the
   * group meanwhile: its consumers could miss events or receive them again.
   */
  dropGroup(group: string): Promise<void>

  /**
   * From now on, events of the stream expire at the given age, in seconds; null: they do not. An expired event is absent from
   * reads of its stream. The whole log still contains it until the store is scavenged. Durable when it resolves.
   */
  expire(stream: string, maxAgeSeconds: number | null): Promise<void>

  /**
   * Whether a stream has had events, but all of them have expired: it then reads as an empty one and keeps its revision. The
   * same is true of a stream that the operator of the store has truncated or deleted.
   */
  isExpired(stream: string): Promise<boolean>

  /**
   * Removes the expired events, and gives their space back to the disk. Streams keep their revisions, and the log its cursors.
   * Resolves with the number of removed events. Absent on an event store that its operator scavenges.
   */
  scavenge?(): Promise<number>

  /**
   * The time on the clock of the store, milliseconds since 1970, or an earlier one: the time of its newest known event and the
   * time since then. 0 while none is known. An embedded store has the clock of this machine.
   */
  leastNow(): number

  /** The cursor of the newest event; `START` when the log is empty. */
  head(): Promise<Cursor>

  /**
   * False proves that this log has never had an event at a cursor up to `head()`: it has lost its end, and others have made it
   * longer since. True proves nothing.
   */
  canHaveHad(cursor: Cursor): Promise<boolean>

  /**
   * The newest position of the log that the store remembers apart from the log. It is beyond `head()` when the log has
   * lost its end. `START` if the store remembers nothing.
   */
  remembered(): Promise<Cursor>

  /** The loss was accepted: forgets what is beyond `head()`. */
  acceptLoss(): Promise<void>

  /** The number of events after one cursor up to another; null if the store cannot count them by their cursors. */
  countBetween(after: Cursor, upTo: Cursor): number | null

  /** The facts that were ever stored, and the size of the log on the disk of this node; null if it is elsewhere. */
  size(): { readonly facts: number; readonly bytes: number } | null

  /** The log up to now as it is stored, for a backup, which releases it at its end. Absent on an event store with backups of its own. */
  storedLog?(): StoredLog

  /** Returns whether a text from a client can be a cursor of this log, also one beyond its end. */
  isCursor(text: string): boolean

  close(): Promise<void>
}
