import Type, { type Static } from 'typebox'
import { fact, Id } from './scalars.ts'

/** SPEC.md, Custom domain status. */
export const DomainStatus = Type.Union([
  Type.Literal('pending_validation'),
  Type.Literal('validated'),
  Type.Literal('provisioning'),
  Type.Literal('active'),
  Type.Literal('deleting'),
])
export type DomainStatus = Static<typeof DomainStatus>

/** The owner is to prove the domain by a CNAME record of this name with this value. */
export const DomainRegistered = fact('DomainRegistered', {
  domain_id: Id,
  org_id: Id,
  domain: Type.String(),
  validation_cname_name: Type.String(),
  validation_cname_value: Type.String(),
})

/** The record was there, and the certificate is issued. The owner is to point the domain to `routing_domain`. */
export const DomainValidated = fact('DomainValidated', { domain_id: Id, routing_domain: Type.String() })

/** What arrives at the routing domain is served. */
export const DomainRouted = fact('DomainRouted', { domain_id: Id })

/** The domain points to its routing domain: from now on it stands for its environment. */
export const DomainActivated = fact('DomainActivated', { domain_id: Id, domain: Type.String() })

/** It no longer stands for its environment; what was set up for it is being taken down. */
export const DomainDeleted = fact('DomainDeleted', { domain_id: Id, domain: Type.String() })

/** Nothing is left of it. */
export const DomainRemoved = fact('DomainRemoved', { domain_id: Id })
