import { setTimeout as delay } from 'node:timers/promises'
import { clock, isoOf } from '../../clock.ts'
import type { DomainsCommand } from '../../domain/customDomains.ts'
import { AppError, isAppError } from '../../errors.ts'
import { bySystem } from '../../events/actor.ts'
import { streamOf } from '../../events/streams.ts'
import { newId } from '../../ids.ts'
import { pauseAfter } from '../../loops/backoff.ts'
import type { Certificate, Certificates } from '../../ports/certificates.ts'
import type { DomainDoc } from '../../projections/customDomains.ts'
import { sealCertificateKey } from '../../secrets/certificateKeys.ts'
import type { CommandDeps } from '../deps.ts'
import { routingDomainOf } from './advanceDomain.ts'

/** The first pause after a failed order, as a multiple of the time between two DNS checks; each further one is double. */
export const FIRST_PAUSE_CHECKS = 30
/** Authorities allow few failed orders of a name in an hour. */
const LONGEST_PAUSE_MS = 6 * 60 * 60 * 1000
/** The longest wait that an authority can ask for, so that a mistake of it does not end the renewals. */
export const LONGEST_ASKED_MS = 24 * 60 * 60 * 1000
/** The TXT record must be visible within the time of three DNS checks; otherwise the authority is not asked to look. */
const VISIBLE_CHECKS = 3
const LEAST_VISIBLE_MS = 3000
const LOOKS = { firstMs: 50, longestMs: 2000 }

export type IssueDeps = Pick<CommandDeps, 'dns' | 'keyring' | 'domainsZone'> & {
  readonly aggregates: Pick<CommandDeps['aggregates'], 'domains'>
  readonly certificates: Certificates
  readonly checkMs: number
}

/**
 * Orders the first or the next certificate of a proved domain, and stores it with its sealed private key. A failure is
 * stored with a message for the owner and the time of the next attempt. Only the holder of a lease calls it.
 */
export const issueCertificate = async (deps: IssueDeps, doc: DomainDoc): Promise<void> => {
  const { aggregates, dns, certificates, keyring, domainsZone, checkMs } = deps
  const { domain_id, domain, env_id, org_id, validation_cname_name } = doc
  const cause = { env_id, correlation_id: domain_id, ...bySystem('domains') }
  const handle = (command: DomainsCommand) =>
    aggregates.domains.handle(streamOf.domains(org_id), command, cause)
  let unstored: unknown // of this service, not of the authority: its message is not for the owner
  const publish = async (values: readonly string[]): Promise<void> => {
    await handle({ type: 'PublishChallenge', domain_id, values }).catch((error: unknown) => {
      unstored = error
      throw error
    })
    await becomesVisible({ dns, domainsZone, checkMs }, validation_cname_name, values)
  }
  let issued: Certificate
  try {
    issued = await certificates.issue(domain, publish)
  } catch (error) {
    if (!isAppError(error) || error === unstored) throw error
    const pauses = { firstMs: checkMs * FIRST_PAUSE_CHECKS, longestMs: LONGEST_PAUSE_MS }
    const asked = Math.min(Number(error.data['retryAfter'] ?? 0) * 1000, LONGEST_ASKED_MS)
    const retry_at = isoOf(clock.now() + Math.max(pauseAfter(doc.failure?.count ?? 0, pauses), asked))
    await handle({ type: 'FailCertificate', domain_id, message: error.message, retry_at })
    return
  }
  const { privateKey, ...certificate } = issued
  const store = async (): Promise<boolean> => {
    const sealed = await sealCertificateKey(keyring, doc, privateKey)
    const fact = {
      type: 'CertificateIssued',
      domain_id,
      certificate_id: newId(),
      sealed,
      ...certificate,
    } as const
    const routing_domain = routingDomainOf(doc, domainsZone)
    const { events } = await handle({ type: 'AddCertificate', domain_id, fact, routing_domain })
    return events.length > 0
  }
  const isStored = await store().catch((error: unknown) => {
    if (isAppError(error, 'not_found')) return false // its data key is destroyed
    throw error
  })
  if (!isStored) await certificates.revoke(certificate.chain) // the domain was deleted meanwhile
}

/** Waits until the resolvers see the TXT record, so that no order fails because the zone is not delegated. */
const becomesVisible = async (
  { dns, domainsZone: zone, checkMs }: Pick<IssueDeps, 'dns' | 'domainsZone' | 'checkMs'>,
  name: string,
  values: readonly string[],
): Promise<void> => {
  const deadline = clock.monotonic() + Math.max(checkMs * VISIBLE_CHECKS, LEAST_VISIBLE_MS)
  for (let looks = 0; ; looks++) {
    const seen = await dns.txt(name).catch((error: unknown): readonly string[] => {
      if (isAppError(error, 'unavailable')) return []
      throw error
    })
    if (values.every((value) => seen.includes(value))) return
    if (clock.monotonic() > deadline) break
    await delay(pauseAfter(looks, LOOKS), undefined, { ref: false })
  }
  throw new AppError(
    'unavailable',
    `The certificate waits for DNS: ${name} must be a CNAME into acme.${zone}, and the operator must delegate acme.${zone} to this service`,
  )
}
