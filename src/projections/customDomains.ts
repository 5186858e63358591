import { envIdOf } from '../events/event.ts'
import type { DomainStatus } from '../events/customDomain.ts'
import { orderOf, type Projection } from './projection.ts'

/** A custom domain (SPEC.md). */
export type DomainDoc = {
  readonly domain_id: string
  readonly env_id: string
  readonly org_id: string
  readonly domain: string
  readonly status: DomainStatus
  readonly validation_cname_name: string
  readonly validation_cname_value: string
  readonly routing_domain: string | null
  readonly created_at: string
  /** The time at which the domain got its status. */
  readonly since: string
  readonly order: string
}

export const domains: Projection<DomainDoc> = {
  name: 'domains',
  version: 2,
  indexes: [{ equal: ['env_id'], sort: 'order', counted: true }],
  decidesAccess: true,
  handles: [
    'DomainRegistered',
    'DomainValidated',
    'DomainRouted',
    'DomainActivated',
    'DomainDeleted',
    'DomainRemoved',
  ],
  idsOf: ({ event }) => ('domain_id' in event ? [event.domain_id] : []),

  evolve(doc, recorded) {
    const { event, at } = recorded
    switch (event.type) {
      case 'DomainRegistered': {
        const { type: _, ...registered } = event
        return {
          ...registered,
          env_id: envIdOf(recorded),
          status: 'pending_validation',
          routing_domain: null,
          created_at: at,
          since: at,
          order: orderOf(recorded),
        }
      }
      case 'DomainValidated':
        return doc && { ...doc, status: 'validated', routing_domain: event.routing_domain, since: at }
      case 'DomainRouted':
        return doc && { ...doc, status: 'provisioning', since: at }
      case 'DomainActivated':
        return doc && { ...doc, status: 'active', since: at }
      case 'DomainDeleted':
        return doc && { ...doc, status: 'deleting', since: at }
      case 'DomainRemoved':
        return null
      default:
        return doc
    }
  },
}
