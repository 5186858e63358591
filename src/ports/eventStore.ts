import type { Cursor, NewEvent, Recorded } from '../events/event.ts'
import type { EventType } from '../events/index.ts'

/** The revision a stream must have for an append to happen; `none`: the stream must be empty. */
export type Expected = number | 'none'

export interface Appended {
  /** Revision of the last event appended. */
  readonly revision: number
  /** Cursor of the last event appended, in the whole log. */
  readonly cursor: Cursor
}

/** What a reader of the whole log wants of it; the cursor still moves past what does not match. */
export interface Filter {
  readonly types?: readonly EventType[]
  readonly env_id?: string
}

/** Some consecutive events of the log, and where the reader stands once it has processed them. */
export interface Batch {
  /** In log order; may be empty when only the cursor moved or the reader caught up. */
  readonly events: readonly Recorded[]
  readonly cursor: Cursor
  /** True when nothing more was stored as the batch was handed out. Comes again and again: no one-time event. */
  readonly caughtUp: boolean
}

/** Some consecutive events of one stream, all of them. */
export interface StreamBatch {
  readonly events: readonly Recorded[]
  readonly caughtUp: boolean
}

/** One event handed to one consumer of a group; handed out again unless it is acknowledged. Settled once: what comes after is ignored. */
export interface Delivery {
  readonly event: Recorded
  /** The group will not hand this event out again, once the acknowledgement is stored. */
  ack(): void
  /** Hand it to a consumer of the group again. */
  retry(): void
}

/**
 * The log that is the truth. Appends are durable when they resolve (I1). Adapters: embedded (SQLite),
 * EventStoreDB. Errors: `wrong_revision` with `data {stream, expected, actual}`, `bad_request` for facts that JSON
 * cannot hold, `unavailable`.
 */
export interface EventStore {
  /**
   * All events or none. A repeat of the same ids at the same expected revision resolves as the first
   * time, with the first revision and cursor, however much was appended since.
   */
  append(stream: string, events: readonly NewEvent[], expected: Expected): Promise<Appended>

  /** Forwards from a revision (inclusive, default 0). A missing stream is an empty one. */
  read(stream: string, options?: { from?: number; limit?: number }): AsyncIterable<Recorded>

  /** The whole log after a cursor (default: from the start), then what comes, until the signal aborts. */
  subscribe(options: Filter & { after?: Cursor; signal: AbortSignal }): AsyncIterable<Batch>

  /** One stream after a revision (default -1: all of it), then what comes, until the signal aborts. */
  follow(stream: string, options: { after?: number; signal: AbortSignal }): AsyncIterable<StreamBatch>

  /**
   * Competing consumers: each matching event goes to one consumer of the group, at least once, in no
   * promised order. The store keeps the group's position; a new group begins after `from` (default: the
   * start). At most `inFlight` (default 64) deliveries wait for their acknowledgement at a time.
   */
  consume(
    group: string,
    options: Filter & { from?: Cursor; inFlight?: number; signal: AbortSignal },
  ): AsyncIterable<Delivery>

  /**
   * From now on events of the stream need not be kept for longer than so many seconds. A store may hide and remove
   * older ones when it likes; the embedded one keeps them.
   */
  expire(stream: string, maxAgeSeconds: number): Promise<void>

  /** The cursor of the newest event; `START` when the log is empty. */
  head(): Promise<Cursor>

  /** Whether a text that a client gave can be a cursor of this log; it may still lie beyond its end. */
  isCursor(text: string): boolean

  close(): Promise<void>
}
