import type { Permissions, Plan } from '../events/org.ts'
import { orderOf, type Projection } from './projection.ts'

export type OrgDoc = {
  readonly org_id: string
  readonly slug: string
  readonly name: string
  readonly plan: Plan
  readonly created_at: string
  readonly order: string
}

export const orgs: Projection<OrgDoc> = {
  name: 'orgs',
  version: 1,
  indexes: [{ equal: [], sort: 'order', counted: true }],
  handles: ['OrgCreated'],
  idsOf: ({ event }) => (event.type === 'OrgCreated' ? [event.org_id] : []),
  evolve(doc, recorded) {
    const { event, at } = recorded
    if (event.type !== 'OrgCreated') return doc
    const { org_id, slug, name, plan } = event
    return { org_id, slug, name, plan, created_at: at, order: orderOf(recorded) }
  },
}

/** SPEC.md, Environment. */
export type EnvDoc = {
  readonly env_id: string
  readonly org_id: string
  readonly name: string
  readonly active: boolean
  readonly created_at: string
  readonly order: string
}

export const envs: Projection<EnvDoc> = {
  name: 'envs',
  version: 1,
  indexes: [{ equal: ['org_id'], sort: 'order', counted: true }],
  handles: ['EnvCreated'],
  idsOf: ({ event }) => (event.type === 'EnvCreated' ? [event.env_id] : []),
  evolve(doc, recorded) {
    const { event, at } = recorded
    if (event.type !== 'EnvCreated') return doc
    const { env_id, org_id, name } = event
    return { env_id, org_id, name, active: true, created_at: at, order: orderOf(recorded) }
  },
}

/** An API key without its secret: `mac` proves a secret, it does not tell it (I6). */
export type ApiKeyDoc = {
  readonly api_key_id: string
  readonly env_id: string
  readonly name: string
  readonly mac: string
  readonly permissions: Permissions
  readonly enabled: boolean
  readonly created_at: string
  readonly order: string
}

export const apiKeys: Projection<ApiKeyDoc> = {
  name: 'api_keys',
  version: 1,
  indexes: [{ equal: ['env_id'], sort: 'order', counted: true }],
  handles: ['ApiKeyCreated'],
  idsOf: ({ event }) => (event.type === 'ApiKeyCreated' ? [event.api_key_id] : []),
  evolve(doc, recorded) {
    const { event, at } = recorded
    if (event.type !== 'ApiKeyCreated') return doc
    const { api_key_id, env_id, name, mac, permissions } = event
    return {
      api_key_id,
      env_id,
      name,
      mac,
      permissions,
      enabled: true,
      created_at: at,
      order: orderOf(recorded),
    }
  },
}
