import { clock } from '../../clock.ts'
import { isRetryable } from '../../errors.ts'
import type { Cause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { DomainDoc } from '../../projections/customDomains.ts'
import { certificateScope } from '../../secrets/certificateKeys.ts'
import type { CommandDeps } from '../deps.ts'

/** A certificate that cannot be revoked for this time is forgotten: its private key is destroyed anyway. */
const REVOCATION_MS = 60 * 60 * 1000

export type RemoveDeps = Pick<CommandDeps, 'certificates' | 'dataKeys'> & {
  readonly aggregates: Pick<CommandDeps['aggregates'], 'domains' | 'names'>
}

/**
 * Completes a deletion: releases the name, revokes the certificate, destroys its private key, and removes the domain. It
 * may be repeated. Rejects with `unavailable` while the certificate authority cannot be reached.
 */
export const removeDomain = async (
  { aggregates, certificates, dataKeys }: RemoveDeps,
  doc: DomainDoc,
  by: Cause,
): Promise<void> => {
  const { domain_id, domain, env_id, org_id, certificate } = doc
  const cause = { ...by, env_id }
  await aggregates.names.handle(
    streamOf.domainName(domain),
    { type: 'ReleaseName', name: domain, holder: domain_id },
    cause,
  )
  if (certificates && certificate && Date.parse(certificate.not_after) > clock.now()) {
    try {
      await certificates.revoke(certificate.chain)
    } catch (error) {
      if (!isRetryable(error) || clock.now() < Date.parse(doc.since) + REVOCATION_MS) throw error
    }
  }
  if (certificates || certificate) await dataKeys.destroy(certificateScope(doc), { final: true }, cause)
  await aggregates.domains.handle(streamOf.domains(org_id), { type: 'RemoveDomain', domain_id }, cause)
}
