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

/** The owner must prove the domain by a CNAME record with this name and value. */
export const DomainRegistered = fact('DomainRegistered', {
  domain_id: Id,
  org_id: Id,
  domain: Type.String(),
  validation_cname_name: Type.String(),
  validation_cname_value: Type.String(),
})

/** Another caller took over the name that was reserved for the domain. Its registration can no longer take effect. */
export const RegistrationAbandoned = fact('RegistrationAbandoned', { domain_id: Id })

/** The record was found and the certificate issued. The owner must point the domain to `routing_domain`. */
export const DomainValidated = fact('DomainValidated', { domain_id: Id, routing_domain: Type.String() })

/** Requests at the routing domain are served. */
export const DomainRouted = fact('DomainRouted', { domain_id: Id })

/** The domain points to its routing domain: from now on, it serves its environment. */
export const DomainActivated = fact('DomainActivated', { domain_id: Id, domain: Type.String() })

/** The domain no longer serves its environment, and its setup is being removed. */
export const DomainDeleted = fact('DomainDeleted', { domain_id: Id, domain: Type.String() })

/** The domain is removed completely. */
export const DomainRemoved = fact('DomainRemoved', { domain_id: Id })
