import type { Projection } from './projection.ts'

/**
 * A custom domain that waits for its proof or was proved once. It remains after the removal of the domain, because the records
 * of its name may still lead here.
 */
export type ProvedDomainDoc = {
  readonly domain_id: string
  readonly org_id: string
  readonly domain: string
  readonly was_proved: boolean
}

export const provedDomains: Projection<ProvedDomainDoc> = {
  name: 'proved_domains',
  version: 1,
  indexes: [],
  decidesAccess: true,
  handles: ['DomainRegistered', 'DomainValidated', 'DomainDeleted'],
  idsOf: ({ event }) => ('domain_id' in event ? [event.domain_id] : []),

  evolve(doc, { event }) {
    switch (event.type) {
      case 'DomainRegistered': {
        const { domain_id, org_id, domain } = event
        return { domain_id, org_id, domain, was_proved: false }
      }
      case 'DomainValidated':
        return doc && { ...doc, was_proved: true }
      case 'DomainDeleted':
        return doc?.was_proved ? doc : null
      default:
        return doc
    }
  },
}
