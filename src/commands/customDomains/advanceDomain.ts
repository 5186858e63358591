import { clock } from '../../clock.ts'
import type { DomainsCommand } from '../../domain/customDomains.ts'
import type { Cause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { DomainDoc } from '../../projections/customDomains.ts'
import type { CommandDeps } from '../deps.ts'
import { isCurrent } from './certificateTimes.ts'
import { followRecords } from './followRecords.ts'

/** A domain that leads elsewhere for this part of the time between two checks is suspended. */
const GRACE = 1 / 4

export type AdvanceDeps = Pick<CommandDeps, 'dns' | 'certificates' | 'domainsZone' | 'domainRecheckMs'> & {
  readonly aggregates: Pick<CommandDeps['aggregates'], 'domains'>
}

interface Advanced {
  readonly moved: boolean
  /** The target of the record that was found. */
  readonly seen: string | null
}

/**
 * Compares a domain with its DNS records, and moves it to the status that they allow (SPEC.md, Custom domain status). The
 * step happens once, even if several nodes try. Rejects with `unavailable` when DNS fails.
 */
export const advanceDomain = async (
  { aggregates, dns, certificates, domainsZone, domainRecheckMs }: AdvanceDeps,
  doc: DomainDoc,
  cause: Cause,
): Promise<Advanced> => {
  const { domain_id, domain, env_id, org_id } = doc
  const handle = async (command: DomainsCommand) => {
    await aggregates.domains.handle(streamOf.domains(org_id), command, { ...cause, env_id })
    return { moved: true, seen: null }
  }
  const proof = () => followRecords(dns, doc.validation_cname_name, doc.validation_cname_value)
  const route = () => followRecords(dns, domain, doc.routing_domain ?? '')
  const leads = (seen: string | null) =>
    doc.diverted ? handle({ type: 'ReturnDomain', domain_id }) : { moved: false, seen }
  const leadsElsewhere = async (
    name: string,
    seen: string | null,
    remaining: 'provisioning' | 'pending_validation',
  ) => {
    const graceMs = domainRecheckMs * GRACE
    const passedMs = doc.diverted && clock.now() - Date.parse(doc.diverted.since)
    // A clock that was ahead stored the time: it begins anew, because that of this node may be behind instead.
    const isAgain = passedMs !== null && passedMs < -graceMs
    if (passedMs === null || isAgain) {
      const found = seen === null ? 'has no CNAME record' : `is a CNAME of ${seen}`
      const message = `${name} no longer leads to this service: it ${found}`
      return handle({ type: 'DivertDomain', domain_id, message, isAgain })
    }
    if (passedMs < graceMs) return { moved: false, seen }
    return handle({ type: 'SuspendDomain', domain_id, to: remaining })
  }
  switch (doc.status) {
    case 'pending_validation': {
      const { leads: isProved, seen } = await proof()
      if (!isProved) {
        return doc.is_proved
          ? leadsElsewhere(doc.validation_cname_name, seen, 'pending_validation')
          : { moved: false, seen }
      }
      if (doc.is_proved && certificates) return leads(seen) // waits for its certificate
      if (certificates && !isCurrent(doc.certificate)) return handle({ type: 'ProveDomain', domain_id })
      return handle({ type: 'ValidateDomain', domain_id, routing_domain: routingDomainOf(doc, domainsZone) })
    }
    case 'validated': // DNS routes every name under the zone's `edge` to the service
      return handle({ type: 'RouteDomain', domain_id })
    case 'provisioning': {
      const routed = await route()
      if (routed.leads) return handle({ type: 'ActivateDomain', domain_id })
      const { leads: isProved } = await proof()
      return isProved ? leads(routed.seen) : leadsElsewhere(domain, routed.seen, 'pending_validation')
    }
    case 'active': {
      const routed = await route()
      if (routed.leads) return leads(routed.seen)
      const isLate = doc.diverted !== null // the proof decides only then
      return leadsElsewhere(
        domain,
        routed.seen,
        isLate && !(await proof()).leads ? 'pending_validation' : 'provisioning',
      )
    }
    case 'deleting':
      return { moved: false, seen: null }
    default:
      return doc.status satisfies never
  }
}

export const routingDomainOf = ({ domain_id }: Pick<DomainDoc, 'domain_id'>, domainsZone: string): string =>
  `${domain_id}.edge.${domainsZone}`
