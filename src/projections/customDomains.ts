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
  /** The record that proves it was found; the domain may wait for its certificate. */
  readonly is_proved: boolean
  /** Null where a proxy does TLS, and before the first certificate. */
  readonly certificate: StoredCertificate | null
  /** The values of the TXT record that the certificate authority expects. */
  readonly challenge: readonly string[]
  /** The attempts to get a certificate that failed since the last success. */
  readonly failure: { readonly count: number; readonly message: string; readonly retry_at: string } | null
  /** The time since which its records no longer lead here. */
  readonly diverted: { readonly since: string; readonly message: string } | null
  readonly order: string
}

/** The certificate of a domain, with its sealed private key. */
export type StoredCertificate = {
  readonly certificate_id: string
  readonly chain: string
  readonly sealed: string
  readonly not_before: string
  readonly not_after: string
}

export const domains: Projection<DomainDoc> = {
  name: 'domains',
  version: 2,
  servesFrom: 2, // domains of version 1 lack fields
  indexes: [{ equal: ['env_id'], sort: 'order', counted: true }],
  decidesAccess: true,
  handles: [
    'DomainRegistered',
    'DomainProved',
    'ChallengePublished',
    'CertificateIssued',
    'CertificateFailed',
    'DomainValidated',
    'DomainRouted',
    'DomainActivated',
    'DomainDiverted',
    'DomainReturned',
    'DomainSuspended',
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
          is_proved: false,
          certificate: null,
          challenge: [],
          failure: null,
          diverted: null,
          order: orderOf(recorded),
        }
      }
      case 'DomainProved':
        return doc && { ...doc, is_proved: true }
      case 'ChallengePublished':
        return doc && { ...doc, challenge: event.values }
      case 'CertificateIssued': {
        const { type: _, domain_id: __, ...certificate } = event
        return doc && { ...doc, certificate, challenge: [], failure: null }
      }
      case 'CertificateFailed': {
        const { message, retry_at } = event
        const failure = { count: (doc?.failure?.count ?? 0) + 1, message, retry_at }
        return doc && { ...doc, challenge: [], failure }
      }
      case 'DomainValidated': {
        const { routing_domain } = event
        return doc && { ...doc, status: 'validated', routing_domain, is_proved: true, since: at }
      }
      case 'DomainRouted':
        return doc && { ...doc, status: 'provisioning', since: at }
      case 'DomainActivated':
        return doc && { ...doc, status: 'active', diverted: null, since: at }
      case 'DomainDiverted':
        return doc && { ...doc, diverted: { since: at, message: event.message } }
      case 'DomainReturned':
        return doc && { ...doc, diverted: null }
      case 'DomainSuspended': {
        const { status } = event
        const isProved = status !== 'pending_validation'
        const routing_domain = isProved ? (doc?.routing_domain ?? null) : null
        return doc && { ...doc, status, routing_domain, is_proved: isProved, diverted: null, since: at }
      }
      case 'DomainDeleted':
        return doc && { ...doc, status: 'deleting', since: at }
      case 'DomainRemoved':
        return null
      default:
        return doc
    }
  },
}
