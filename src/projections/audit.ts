import { AUDITED, isAudited, isOfRuns } from '../events/audited.ts'
import { loggedAt, type Recorded } from '../events/event.ts'
import type { ActorType } from '../events/actor.ts'
import { redact, resourcesOf } from '../events/redact.ts'
import type { DomainEvent } from '../events/index.ts'
import type { Doc } from '../ports/readModels.ts'
import { type Cleared, NOTHING, orderOf, type Projection, removedBefore } from './projection.ts'

/** An audited fact, without secrets. */
export type AuditDoc = {
  /** Its cursor, which is also the id of the document. */
  readonly position: string
  /** Empty for facts of the installation and of organizations. */
  readonly env_id: string
  readonly type: string
  readonly stream: string
  /** The time at which this installation stored the fact. */
  readonly at: string
  /** On an imported fact, the time at which the other installation stored it; else null. */
  readonly first_at: string | null
  /** Empty if the fact does not name its actor. */
  readonly actor: string
  readonly actor_type: ActorType | null
  readonly ip: string | null
  readonly request_id: string | null
  /** The fact, redacted. */
  readonly data: Readonly<Record<string, unknown>>
  readonly order: string
  /** `order`, if the document is removed with the runs of its time; else null. */
  readonly expiring: string | null
}

const filters: readonly string[][] = [[], ['actor'], ['type'], ['actor', 'type']]

export const audit: Projection<AuditDoc> = {
  name: 'audit',
  version: 5,
  forgetsRemovals: true,
  indexes: [
    ...filters.map((equal) => ({ equal, sort: 'position', counted: true })),
    ...filters.map((more) => ({ equal: ['env_id', ...more], sort: 'position', counted: true })),
    { equal: [], sort: 'order' },
    { equal: ['env_id'], sort: 'expiring', sparse: true },
  ],
  handles: AUDITED,
  begins: () => true, // each document has one fact
  idsOf: (recorded) => (isAudited(recorded) ? [recorded.cursor] : NOTHING),
  clears: ({ event }) => expiredWith(event, ({ position }) => position),

  evolve(_, recorded) {
    const { cursor, event, metadata, stream } = recorded
    const { type, ...data } = redact(event)
    const { actor = '', actor_type, ip = null, env_id = '' } = metadata
    const { imported_at, first_at = null } = metadata
    const at = loggedAt(recorded)
    return {
      position: cursor,
      env_id,
      type,
      stream,
      at,
      first_at: imported_at === undefined ? null : first_at, // a restored fact has the time of the original
      actor,
      actor_type: actor_type ?? (actor === 'operator' ? 'operator' : null),
      ip,
      request_id: requestOf(recorded),
      data,
      order: orderOf({ at, cursor }),
      expiring: isOfRuns(recorded) ? orderOf(recorded) : null, // by the time of the run
    }
  },
}

/** An id or name in an audited fact. A fact can have a thousand, so these documents are small and have few indexes. */
export type AuditLinkDoc = Pick<
  AuditDoc,
  'position' | 'env_id' | 'type' | 'stream' | 'actor' | 'expiring'
> & { readonly resource: string }

export const auditLinks: Projection<AuditLinkDoc> = {
  name: 'audit_links',
  version: 4,
  forgetsRemovals: true,
  indexes: [
    { equal: ['resource'], sort: 'position' },
    { equal: ['env_id', 'resource'], sort: 'position' },
    { equal: ['env_id'], sort: 'expiring', sparse: true },
  ],
  handles: AUDITED,
  begins: () => true,
  idsOf: (recorded) =>
    isAudited(recorded)
      ? resourcesOf(recorded.event).map((resource) => linkId(recorded.cursor, resource))
      : NOTHING,
  clears: ({ event }) => expiredWith(event, ({ position, resource }) => linkId(position, resource)),

  evolve(_, recorded, id) {
    const { cursor, event, metadata, stream } = recorded
    const { actor = '', env_id = '' } = metadata
    const expiring = isOfRuns(recorded) ? orderOf(recorded) : null
    const resource = id.slice(linkId(cursor, '').length)
    return { resource, position: cursor, env_id, type: event.type, stream, actor, expiring }
  },
}

const linkId = (position: string, resource: string): string => `${position} ${resource}`

/** The documents that are removed with the runs of their time. */
const expiredWith = <D extends Doc>(event: DomainEvent, id: (doc: D) => string): readonly Cleared<D>[] =>
  event.type === 'CallsExpired'
    ? [{ equal: { env_id: event.env_id }, sort: 'expiring', before: removedBefore(event), id }]
    : NOTHING

/** The request that stored the fact, or that began the chain of the run; null if the service acted on its own. */
const requestOf = ({ metadata: { actor, actor_type, correlation_id } }: Recorded): string | null =>
  actor_type === 'system' || (actor === undefined && actor_type === undefined) ? null : correlation_id
