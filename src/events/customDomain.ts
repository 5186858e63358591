import Type, { type Static } from 'typebox'
import { fact, Id, Name, Text, Time } from './scalars.ts'

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
  domain: Name,
  validation_cname_name: Text,
  validation_cname_value: Text,
})

/** Another caller took over the name that was reserved for the domain. Its registration can no longer take effect. */
export const RegistrationAbandoned = fact('RegistrationAbandoned', { domain_id: Id })

/** The record was found. The domain is validated when its certificate is issued. */
export const DomainProved = fact('DomainProved', { domain_id: Id })

/** The values of the TXT record with which the certificate authority checks that the domain is delegated to this service. */
export const ChallengePublished = fact('ChallengePublished', {
  domain_id: Id,
  values: Type.Array(Type.String()),
})

/** `sealed` is the private key, encrypted under a data key of the domain (I6). `chain`: PEM, the certificate first. */
export const CertificateIssued = fact('CertificateIssued', {
  domain_id: Id,
  certificate_id: Id,
  chain: Type.String(),
  sealed: Type.String(),
  not_before: Time,
  not_after: Time,
})

/** No certificate was issued. `message` is shown to the owner of the domain; the next attempt is at `retry_at`. */
export const CertificateFailed = fact('CertificateFailed', {
  domain_id: Id,
  message: Text,
  retry_at: Time,
})

/** The record was found and the certificate issued. The owner must point the domain to `routing_domain`. */
export const DomainValidated = fact('DomainValidated', { domain_id: Id, routing_domain: Text })

/** Requests at the routing domain are served. */
export const DomainRouted = fact('DomainRouted', { domain_id: Id })

/** The domain points to its routing domain: from now on, it serves its environment. */
export const DomainActivated = fact('DomainActivated', { domain_id: Id, domain: Name })

/** The records of a proved domain no longer lead here. If they do not return in time, it is suspended. */
export const DomainDiverted = fact('DomainDiverted', { domain_id: Id, message: Text })

/** The records of a diverted domain lead here again. */
export const DomainReturned = fact('DomainReturned', { domain_id: Id })

/**
 * The records of a diverted domain did not return in time. It no longer serves its environment, and goes back to an earlier
 * status. With `pending_validation`, it is no longer proved.
 */
export const DomainSuspended = fact('DomainSuspended', {
  domain_id: Id,
  domain: Name,
  status: Type.Union([Type.Literal('pending_validation'), Type.Literal('provisioning')]),
})

/** The domain no longer serves its environment, and its setup is being removed. */
export const DomainDeleted = fact('DomainDeleted', { domain_id: Id, domain: Name })

/** The domain is removed completely. */
export const DomainRemoved = fact('DomainRemoved', { domain_id: Id })
