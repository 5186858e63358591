import type { DomainsCommand } from '../../domain/customDomains.ts'
import { streamOf } from '../../events/streams.ts'
import type { Dns } from '../../ports/dns.ts'
import { isPublicName } from '../../ports/domainName.ts'
import type { DomainDoc } from '../../projections/customDomains.ts'
import type { CommandDeps } from '../deps.ts'

/** CNAME records that a lookup follows; a longer chain could be a loop. */
const MAX_HOPS = 8

/**
 * Moves a domain to its next status if its DNS records allow it (SPEC.md, Custom domain status). The step happens once,
 * even if several nodes try. `seen` is the target of the record that was found instead; what it leads to is not reported,
 * because the resolver may know private names. Rejects with `unavailable` when DNS fails.
 */
export const advanceDomain = async (
  {
    aggregates,
    dns,
    certificates,
    domainsZone,
  }: Pick<CommandDeps, 'dns' | 'certificates' | 'domainsZone'> & {
    readonly aggregates: Pick<CommandDeps['aggregates'], 'domains' | 'names'>
  },
  doc: DomainDoc,
  correlation_id: string,
): Promise<{ readonly moved: boolean; readonly seen: string | null }> => {
  const { domain_id, domain, env_id, org_id } = doc
  const cause = { env_id, correlation_id }
  const stream = streamOf.domains(org_id)
  const handle = async (command: DomainsCommand) => {
    await aggregates.domains.handle(stream, command, cause)
    return { moved: true, seen: null }
  }
  switch (doc.status) {
    case 'pending_validation': {
      const { leads, seen } = await follow(dns, doc.validation_cname_name, doc.validation_cname_value)
      if (!leads) return { moved: false, seen }
      await certificates.issue(domain)
      return handle({ type: 'ValidateDomain', domain_id, routing_domain: `${domain_id}.edge.${domainsZone}` })
    }
    case 'validated': // DNS routes every name under the zone's `edge` to the service
      return handle({ type: 'RouteDomain', domain_id })
    case 'provisioning': {
      const { leads, seen } = await follow(dns, domain, doc.routing_domain ?? '')
      return leads ? handle({ type: 'ActivateDomain', domain_id }) : { moved: false, seen }
    }
    case 'active':
      return { moved: false, seen: doc.routing_domain }
    case 'deleting':
      // An unproved claim may have lost its name to another holder already, which keeps its certificate.
      if (await aggregates.names.read(streamOf.domainName(domain), ({ held }) => held?.holder === domain_id))
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

/** Follows the CNAME records of `name`: whether they lead to `target`, and the first target; null without a record. */
const follow = async (
  dns: Dns,
  name: string,
  target: string,
): Promise<{ readonly leads: boolean; readonly seen: string | null }> => {
  let seen: string | null = null
  let next = name
  for (let hop = 0; hop < MAX_HOPS && isPublicName(next); hop++) {
    const targets = await dns.cname(next)
    if (targets.includes(target)) return { leads: true, seen: target }
    const [first] = targets
    if (first === undefined) break
    seen ??= first
    next = first
  }
  return { leads: false, seen }
}
