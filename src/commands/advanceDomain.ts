import type { Aggregates } from '../domain/aggregates.ts'
import { streamOf } from '../events/streams.ts'
import type { Certificates } from '../ports/certificates.ts'
import type { Dns } from '../ports/dns.ts'
import type { DomainDoc } from '../projections/domains.ts'

/** What a domain needs to get on. */
export interface DomainDeps {
  readonly aggregates: Pick<Aggregates, 'domains' | 'names'>
  readonly dns: Dns
  readonly certificates: Certificates
  /** The DNS zone that this service answers for: names in it are given to domains to point to. */
  readonly zone: string
}

/** CNAME records that are followed one after the other. */
const MAX_HOPS = 8

/**
 * Takes a domain one status further if it can; done twice, by whatever node, is done once. Resolves with whether it got
 * on, and with what its DNS record points to instead. Rejects with `unavailable` when nothing could be learned.
 */
export const advanceDomain = async (
  { aggregates, dns, certificates, zone }: DomainDeps,
  doc: DomainDoc,
  correlation_id: string,
): Promise<{ readonly moved: boolean; readonly seen: string | null }> => {
  const { domain_id, domain, env_id, org_id } = doc
  const cause = { env_id, correlation_id }
  const stream = streamOf.domains(org_id)
  const handle = async (command: Parameters<Aggregates['domains']['handle']>[1]) => {
    await aggregates.domains.handle(stream, command, cause)
    return { moved: true, seen: null }
  }
  switch (doc.status) {
    case 'pending_validation': {
      const seen = await lastOf(dns, doc.validation_cname_name, doc.validation_cname_value)
      if (seen !== doc.validation_cname_value) return { moved: false, seen }
      await certificates.issue(domain)
      return handle({ type: 'ValidateDomain', domain_id, routing_domain: `${domain_id}.edge.${zone}` })
    }
    case 'validated': // every name in the zone's `edge` leads here: there is nothing to set up for one of them
      return handle({ type: 'RouteDomain', domain_id })
    case 'provisioning': {
      const seen = await lastOf(dns, domain, doc.routing_domain ?? '')
      return seen === doc.routing_domain
        ? handle({ type: 'ActivateDomain', domain_id })
        : { moved: false, seen }
    }
    case 'active':
      return { moved: false, seen: doc.routing_domain }
    case 'deleting':
      await certificates.discard(domain)
      await aggregates.names.handle(
        streamOf.domainName(domain),
        { type: 'ReleaseName', name: domain, holder: domain_id },
        cause,
      )
      return handle({ type: 'RemoveDomain', domain_id })
    default:
      return doc.status satisfies never
  }
}

/** Where the CNAME records from `name` on lead: to `target` if they come by it; null when there are none. */
const lastOf = async (dns: Dns, name: string, target: string): Promise<string | null> => {
  let last: string | null = null
  for (let hop = 0; hop < MAX_HOPS && last !== target; hop++) {
    const targets = await dns.cname(last ?? name)
    if (targets.length === 0) break
    last = targets.includes(target) ? target : (targets[0] ?? null)
  }
  return last
}
