import { AppError } from '../errors.ts'
import type { Actor } from './actor.ts'
import type { DomainEvent, EventOf, EventType } from './index.ts'

/**
 * A position in the log: an opaque, sortable string, valid only for the event store that issued it. It is used unchanged
 * as checkpoint, SSE `id` and JSON value.
 */
export type Cursor = string

/** Before the first event of any log: every cursor sorts after it. */
export const START: Cursor = ''

/** The metadata of every fact: its environment, its cause and its actor. */
export interface Metadata extends Actor {
  /** The environment the fact belongs to; absent on facts of organizations and workers. */
  readonly env_id?: string
  /** Id of the request, tick or run that began the chain; the same on every fact that follows from it. */
  readonly correlation_id: string
  /** Id of the fact that directly led to this one. */
  readonly causation_id?: string
  /** The trace context of the work that stored it (W3C `traceparent`); absent if it is not traced. */
  readonly traceparent?: string
  /** Version of the event's schema when it was written; absent means 1. */
  readonly v?: number
  /** On an imported or restored fact: the time at which the other event store stored it. */
  readonly first_at?: string
  /** On a restored event or requested run that no worker had taken. */
  readonly unhandled?: true
  /** On an imported fact: the time at which this installation stored it. */
  readonly imported_at?: string
}

/** The metadata that a command gives to its facts. */
export type Cause = Omit<Metadata, 'v' | 'first_at' | 'imported_at' | 'unhandled'>

/** The same, for facts that belong to an environment. */
export type EnvCause = Cause & { readonly env_id: string }

/**
 * An event to append. A store recognizes a repeated append by its ids: those of `StreamCreated` and `EventPublished`
 * follow from the command (`Decider.idOf`), all others are random.
 */
export interface NewEvent<E extends DomainEvent = DomainEvent> {
  readonly id: string
  readonly event: E
  readonly metadata: Metadata
}

/** An event as it is stored in the log. */
export interface Recorded<E extends DomainEvent = DomainEvent> extends NewEvent<E> {
  readonly stream: string
  /** Counts from 0 within its stream. */
  readonly revision: number
  readonly cursor: Cursor
  /** The time at which it was stored, ISO 8601 UTC; on an imported fact, `first_at`. */
  readonly at: string
  /** The reason for which this build cannot read the fact; absent when it can. Event stores throw instead of returning such a fact. */
  readonly unreadable?: string
}

/** The time that follows the order of the log: for an imported fact, whose `at` is older, that of the import. */
export const loggedAt = ({ at, metadata }: Pick<Recorded, 'at' | 'metadata'>): string =>
  metadata.imported_at ?? at

/** Imported and restored facts were handled where they were stored first. */
export const isHandledElsewhere = ({ first_at, unhandled }: Metadata): boolean =>
  first_at !== undefined && unhandled !== true

/** Returns whether a fact is of a type. */
export const isOf = <Type extends EventType>(
  recorded: Recorded,
  type: Type,
): recorded is Recorded<EventOf<Type>> => recorded.event.type === type

/** A fact with its known fields: a decider also folds facts that are not stored yet. */
export type KnownFact = Pick<Recorded, 'event' | 'metadata'> & Partial<Recorded>

/** Describes a fact for people: its type, version, id and position in the log. */
export const describeFact = ({ event, metadata, id, cursor, stream, revision }: KnownFact): string =>
  [
    `${event.type} v${metadata.v ?? 1}`,
    id !== undefined && `id ${id}`,
    stream !== undefined && `revision ${revision} of ${stream}`,
    cursor !== undefined && `cursor ${cursor}`,
  ]
    .filter((part) => part !== false)
    .join(', ')

/** Returns the environment of a fact. Throws for a fact without one, which must not be assigned to another environment. */
export const envIdOf = (fact: KnownFact): string => {
  const { env_id } = fact.metadata
  if (env_id !== undefined) return env_id
  throw new AppError(
    'internal_server_error',
    `Expected an env_id on the fact ${describeFact(fact)}, got none`,
  )
}
