import { AUDITED, isAudited, isOfRuns } from '../events/audited.ts'
import type { Recorded } from '../events/event.ts'
import type { ActorType } from '../events/actor.ts'
import { redact, resourcesOf } from '../events/redact.ts'
import { NOTHING, orderOf, type Projection } from './projection.ts'

/** An audited fact, without secrets. Further documents with a `resource` point to it. */
export type AuditDoc = {
  /** Its cursor, which is also the id of the document. */
  readonly position: string
  /** An id or name in the fact; empty for the document of the fact itself. */
  readonly resource: string
  /** Empty for facts of the installation and of organizations. */
  readonly env_id: string
  readonly type: string
  readonly stream: string
  readonly at: string
  /** Empty if the fact does not name its actor. */
  readonly actor: string
  readonly actor_type: ActorType | null
  readonly ip: string | null
  readonly request_id: string | null
  /** The fact, redacted; null in a document with a resource. */
  readonly data: Readonly<Record<string, unknown>> | null
  readonly order: string
  /** `order`, if the document is removed with the runs of its time; else null. */
  readonly expiring: string | null
}

const filters = [[], ['actor'], ['type'], ['actor', 'type']]

/** The id of the document by which a resource finds the fact at a position. */
const idAt = (position: string, resource: string): string =>
  resource === '' ? position : `${position} ${resource}`

export const audit: Projection<AuditDoc> = {
  name: 'audit',
  version: 1,
  indexes: [
    ...filters.map((more) => ({ equal: ['resource', ...more], sort: 'position', counted: true })),
    ...filters.map((more) => ({ equal: ['env_id', 'resource', ...more], sort: 'position', counted: true })),
    { equal: ['resource'], sort: 'order' },
    { equal: ['env_id'], sort: 'expiring', sparse: true },
  ],
  handles: AUDITED,
  begins: () => true, // each document has one fact

  idsOf(recorded) {
    if (!isAudited(recorded)) return NOTHING
    const { cursor, event } = recorded
    return ['', ...resourcesOf(event)].map((resource) => idAt(cursor, resource))
  },

  clears: ({ event }) =>
    event.type === 'CallsExpired'
      ? [
          {
            equal: { env_id: event.env_id },
            sort: 'expiring',
            before: event.before,
            id: ({ position, resource }) => idAt(position, resource),
          },
        ]
      : NOTHING,

  evolve(_, recorded, id) {
    const { cursor, event, metadata, stream, at } = recorded
    const { type, ...data } = redact(event)
    const { actor = '', actor_type, ip = null, env_id = '' } = metadata
    const resource = id.slice(cursor.length + 1)
    const order = orderOf(recorded)
    return {
      position: cursor,
      resource,
      env_id,
      type,
      stream,
      at,
      actor,
      actor_type: actor_type ?? (actor === 'operator' ? 'operator' : null),
      ip,
      request_id: requestOf(recorded),
      data: resource === '' ? data : null,
      order,
      expiring: isOfRuns(recorded) ? order : null,
    }
  },
}

/** The request that stored the fact, or that began the chain of the run; null if the service acted on its own. */
const requestOf = ({ metadata: { actor, actor_type, correlation_id } }: Recorded): string | null =>
  actor_type === 'system' || (actor === undefined && actor_type === undefined) ? null : correlation_id
