import { envIdOf } from '../events/event.ts'
import type { Permissions } from '../events/org.ts'
import { NOTHING, orderOf, type Projection } from './projection.ts'

/** A session that was not revoked; it may have expired. */
export type SessionDoc = {
  readonly session_id: string
  readonly api_key_id: string
  readonly env_id: string
  readonly mac: string
  readonly permissions: Permissions
  readonly metadata?: unknown
  readonly expires_at: string
  readonly created_at: string
  readonly order: string
}

export const sessions: Projection<SessionDoc> = {
  name: 'sessions',
  version: 1,
  indexes: [{ equal: ['api_key_id'], sort: 'expires_at' }],
  decidesAccess: true,
  handles: ['SessionCreated', 'SessionsEnded', 'ApiKeyDeleted'],

  idsOf({ event }) {
    if (event.type === 'SessionCreated') return [event.session_id]
    return event.type === 'SessionsEnded' ? event.session_ids : []
  },
  /** Also those that had expired and were never ended. */
  clears: ({ event }) =>
    event.type === 'ApiKeyDeleted'
      ? [
          {
            equal: { api_key_id: event.api_key_id },
            sort: 'expires_at',
            id: ({ session_id }) => session_id,
          },
        ]
      : NOTHING,

  evolve(doc, recorded) {
    const { event, at } = recorded
    if (event.type === 'SessionsEnded') return null
    if (event.type !== 'SessionCreated') return doc
    const { type: _, ...session } = event
    return { ...session, env_id: envIdOf(recorded), created_at: at, order: orderOf(recorded) }
  },
}

/** A service key, including revoked and expired ones (SPEC.md, Authentication, rule 6). */
export type ServiceKeyDoc = {
  readonly service_key_id: string
  readonly api_key_id: string
  readonly env_id: string
  readonly name: string
  readonly description: string
  readonly mac: string
  readonly permissions: Permissions
  /** Ciphertext. */
  readonly metadata?: string
  readonly expires_at: string | null
  readonly revoked_at: string | null
  readonly last_used_at: string | null
  readonly created_at: string
  readonly order: string
}

export const serviceKeys: Projection<ServiceKeyDoc> = {
  name: 'service_keys',
  version: 2,
  indexes: [{ equal: ['api_key_id'], sort: 'order', counted: true }],
  decidesAccess: true,
  handles: ['ServiceKeyCreated', 'ServiceKeysRevoked', 'ServiceKeyUsed', 'ApiKeyDeleted'],

  idsOf({ event }) {
    if (event.type === 'ServiceKeysRevoked') return event.service_key_ids
    return 'service_key_id' in event ? [event.service_key_id] : []
  },
  /** Only their API key could list them. */
  clears: ({ event }) =>
    event.type === 'ApiKeyDeleted'
      ? [
          {
            equal: { api_key_id: event.api_key_id },
            sort: 'order',
            id: ({ service_key_id }) => service_key_id,
          },
        ]
      : NOTHING,

  evolve(doc, recorded) {
    const { event, at } = recorded
    switch (event.type) {
      case 'ServiceKeyCreated': {
        const { type: _, ...key } = event
        return {
          ...key,
          env_id: envIdOf(recorded),
          revoked_at: null,
          last_used_at: null,
          created_at: at,
          order: orderOf(recorded),
        }
      }
      case 'ServiceKeysRevoked':
        return doc && { ...doc, revoked_at: event.at }
      case 'ServiceKeyUsed':
        return doc && { ...doc, last_used_at: event.at }
      default:
        return doc
    }
  },
}
