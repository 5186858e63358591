import { AppError } from '../errors.ts'
import type { DomainEvent, EventOf, EventType } from './index.ts'

/**
 * Where a reader stands in the log. Opaque and sortable as a string; it means something only to the
 * event store that issued it. Used unchanged as checkpoint, SSE `id` and JSON value.
 */
export type Cursor = string

/** Before the first event of any log: every cursor sorts after it. */
export const START: Cursor = ''

/** What every fact carries beside its data: whose it is and why it happened. */
export interface Metadata {
  /** The environment the fact belongs to; absent on facts of organizations and workers. */
  readonly env_id?: string
  /** Id of the request, tick or run that began the chain; the same on everything that follows from it. */
  readonly correlation_id: string
  /** Id of the fact that directly led to this one. */
  readonly causation_id?: string
  /** Id of the credential that asked for it. */
  readonly actor?: string
  /** Version of the event's schema when it was written; absent means 1. */
  readonly v?: number
}

/** What the facts of one command record beside their data. */
export type Cause = Omit<Metadata, 'v'>

/** The same, for facts that belong to an environment. */
export type EnvCause = Cause & { readonly env_id: string }

/** An event about to be appended. The id is derived from the command, so a repeated append meets itself. */
export interface NewEvent<E extends DomainEvent = DomainEvent> {
  readonly id: string
  readonly event: E
  readonly metadata: Metadata
}

/** An event as the log holds it. */
export interface Recorded<E extends DomainEvent = DomainEvent> extends NewEvent<E> {
  readonly stream: string
  /** Counts from 0 within its stream. */
  readonly revision: number
  readonly cursor: Cursor
  /** When it was stored, ISO 8601 UTC. */
  readonly at: string
  /** Why this build cannot read the fact; absent when it can. Event stores hand out no such fact, they throw. */
  readonly unreadable?: string
}

/** Whether a fact is of a type. */
export const isOf = <Type extends EventType>(
  recorded: Recorded,
  type: Type,
): recorded is Recorded<EventOf<Type>> => recorded.event.type === type

/** A fact as far as its reader knows it: a decider also folds facts that are on their way to the log. */
export type KnownFact = Pick<Recorded, 'event' | 'metadata'> & Partial<Recorded>

/** Names a fact for people: its type, version, id and place in the log. */
export const describeFact = ({ event, metadata, id, cursor, stream, revision }: KnownFact): string =>
  [
    `${event.type} v${metadata.v ?? 1}`,
    id !== undefined && `id ${id}`,
    stream !== undefined && `revision ${revision} of ${stream}`,
    cursor !== undefined && `cursor ${cursor}`,
  ]
    .filter((part) => part !== false)
    .join(', ')

/** The environment a fact belongs to. Throws for a fact without one: it must not become one of some other environment. */
export const envIdOf = (fact: KnownFact): string => {
  const { env_id } = fact.metadata
  if (env_id !== undefined) return env_id
  throw new AppError(
    'internal_server_error',
    `Expected an env_id on the fact ${describeFact(fact)}, got none`,
  )
}
