import type { Permissions, Plan } from '../events/org.ts'
import { orderOf, type Projection } from './projection.ts'

export type OrgDoc = {
  readonly org_id: string
  readonly slug: string
  readonly name: string
  readonly plan: Plan
  readonly team_members: number
  readonly created_at: string
  readonly order: string
}

export const orgs: Projection<OrgDoc> = {
  name: 'orgs',
  version: 3,
  indexes: [
    { equal: [], sort: 'order', counted: true },
    { equal: ['slug'], sort: 'order' },
  ],
  handles: ['OrgCreated', 'OrgChanged', 'OrgDeleted'],
  idsOf: ({ event }) => ('org_id' in event ? [event.org_id] : []),
  evolve(doc, recorded) {
    const { event, at } = recorded
    if (event.type === 'OrgCreated') {
      const { org_id, slug, name, plan } = event
      return { org_id, slug, name, plan, team_members: 1, created_at: at, order: orderOf(recorded) }
    }
    if (event.type === 'OrgDeleted') return null
    if (event.type !== 'OrgChanged' || !doc) return doc
    const { type: _, ...changed } = event
    return { ...doc, ...changed }
  },
}

/** An environment (SPEC.md). */
export type EnvDoc = {
  readonly env_id: string
  readonly org_id: string
  readonly name: string
  /** False after its deletion: the document remains, because the usage of the organization contains its runs. */
  readonly active: boolean
  /** Its deletion, in the form of `order`, while something of it may be left; else null. */
  readonly deleting: string | null
  /** An import into it is not complete, so nobody uses it. */
  readonly importing?: true
  /** The end of the latest import into it. */
  readonly imported_at?: string
  /** Its organization was deleted while something of it was left. */
  readonly org_deleted?: true
  readonly created_at: string
  readonly order: string
}

export const envs: Projection<EnvDoc> = {
  name: 'envs',
  version: 4,
  indexes: [
    { equal: ['org_id'], sort: 'order', counted: true },
    { equal: ['org_id', 'active'], sort: 'order', counted: true },
    { equal: [], sort: 'deleting', sparse: true },
  ],
  decidesAccess: true,
  handles: [
    'EnvCreated',
    'ImportBegun',
    'ImportAbandoned',
    'EnvImported',
    'EnvDeleted',
    'EnvPurged',
    'OrgDeleted',
  ],
  idsOf({ event }) {
    if (event.type === 'OrgDeleted') return event.env_ids
    return 'env_id' in event ? [event.env_id] : []
  },
  evolve(doc, recorded) {
    const { event, at } = recorded
    if (event.type === 'EnvCreated') {
      const { env_id, org_id, name } = event
      return { env_id, org_id, name, active: true, deleting: null, created_at: at, order: orderOf(recorded) }
    }
    if (!doc) return null
    switch (event.type) {
      case 'ImportBegun':
        return { ...doc, importing: true }
      case 'ImportAbandoned':
      case 'EnvImported': {
        const { importing: _, ...rest } = doc
        return { ...rest, imported_at: at }
      }
      case 'EnvDeleted': {
        const { importing: _, ...rest } = doc
        return { ...rest, active: false, deleting: orderOf(recorded) }
      }
      case 'EnvPurged':
        if (!event.final) return doc
        return doc.org_deleted ? null : { ...doc, deleting: null }
      case 'OrgDeleted':
        return doc.deleting === null ? null : { ...doc, org_deleted: true }
      default:
        return doc
    }
  },
}

/** An API key without its secret: `mac` verifies a secret but does not reveal it (I6). */
export type ApiKeyDoc = {
  readonly api_key_id: string
  readonly env_id: string
  readonly name: string
  readonly mac: string
  readonly permissions: Permissions
  readonly enabled: boolean
  /** Absent if it was never set; null if it was set and taken back. */
  readonly expires_at?: string | null
  readonly created_at: string
  readonly updated_at: string
  readonly order: string
}

export const apiKeys: Projection<ApiKeyDoc> = {
  name: 'api_keys',
  version: 3,
  indexes: [{ equal: ['env_id'], sort: 'order', counted: true }],
  decidesAccess: true,
  handles: ['ApiKeyCreated', 'ApiKeyChanged', 'ApiKeyDeleted'],
  idsOf: ({ event }) => ('api_key_id' in event ? [event.api_key_id] : []),
  evolve(doc, recorded) {
    const { event, at } = recorded
    switch (event.type) {
      case 'ApiKeyCreated': {
        const { type: _, ...key } = event
        return { ...key, enabled: true, created_at: at, updated_at: at, order: orderOf(recorded) }
      }
      case 'ApiKeyChanged': {
        const { type: _, ...changed } = event
        return doc && { ...doc, ...changed, updated_at: at }
      }
      case 'ApiKeyDeleted':
        return null
      default:
        return doc
    }
  },
}
