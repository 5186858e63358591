import { AppError } from '../errors.ts'
import type { DomainStatus } from '../events/customDomain.ts'
import type { EventOf } from '../events/index.ts'
import { type Decider, type Folded, foreign } from './decider.ts'

interface Domain {
  readonly domain: string
  /** `abandoned`: it was not registered in time, and cannot be registered any more. */
  readonly status: DomainStatus | 'abandoned'
}

/** The domains of an organization by id. */
type Domains = Map<string, Domain>

export type DomainsCommand =
  | {
      readonly type: 'RegisterDomain'
      readonly fact: EventOf<'DomainRegistered'>
      /** The number of domains that the plan allows; null for any number. */
      readonly max: number | null
    }
  | { readonly type: 'AbandonRegistration'; readonly domain_id: string }
  | { readonly type: 'ValidateDomain'; readonly domain_id: string; readonly routing_domain: string }
  | { readonly type: 'RouteDomain'; readonly domain_id: string }
  | { readonly type: 'ActivateDomain'; readonly domain_id: string }
  | { readonly type: 'DeleteDomain'; readonly domain_id: string }
  | { readonly type: 'RemoveDomain'; readonly domain_id: string }
  /** Deletes the domain unless it is proved. */
  | { readonly type: 'ExpireDomain'; readonly domain_id: string }

type DomainEvent = EventOf<
  | 'DomainRegistered'
  | 'RegistrationAbandoned'
  | 'DomainValidated'
  | 'DomainRouted'
  | 'DomainActivated'
  | 'DomainDeleted'
  | 'DomainRemoved'
>

/** Throws unless the plan allows one more domain. */
export const admitDomain = (domains: ReadonlyMap<string, Domain>, max: number | null): void => {
  if (max === null) return
  if (max === 0) throw new AppError('plan_required', 'Custom domains need the plan Pro or Scale')
  const used = [...domains.values()].filter(
    ({ status }) => status !== 'deleting' && status !== 'abandoned',
  ).length
  if (used >= max) {
    throw new AppError(
      'domain_limit_reached',
      `The plan allows ${max} custom domains; the organization has ${used}`,
    )
  }
}

/**
 * The rules of an organization's domains. All of them are one stream, so concurrent registrations cannot exceed the
 * limit of the plan.
 */
export const domains: Decider<Domains, DomainsCommand, DomainEvent> = {
  initial: () => new Map(),

  decide(command, domains) {
    if (command.type === 'RegisterDomain') {
      const known = domains.get(command.fact.domain_id)
      if (known?.status === 'abandoned')
        throw new AppError('conflict', 'domain: its registration took too long; register it again')
      if (known) return [] // a repeated command registers one domain
      admitDomain(domains, command.max)
      return [command.fact]
    }
    const { domain_id } = command
    const known = domains.get(domain_id)
    if (command.type === 'AbandonRegistration')
      return known ? [] : [{ type: 'RegistrationAbandoned', domain_id }]
    const { status, domain } = known && known.status !== 'abandoned' ? known : {}
    switch (command.type) {
      case 'ValidateDomain':
        if (status !== 'pending_validation') return []
        return [{ type: 'DomainValidated', domain_id, routing_domain: command.routing_domain }]
      case 'RouteDomain':
        return status === 'validated' ? [{ type: 'DomainRouted', domain_id }] : []
      case 'ActivateDomain':
        if (status !== 'provisioning' || domain === undefined) return []
        return [{ type: 'DomainActivated', domain_id, domain }]
      case 'DeleteDomain':
        if (domain === undefined) throw new AppError('not_found', `No domain ${domain_id}`)
        return status === 'deleting' ? [] : [{ type: 'DomainDeleted', domain_id, domain }]
      case 'ExpireDomain':
        if (status !== 'pending_validation' || domain === undefined) return []
        return [{ type: 'DomainDeleted', domain_id, domain }]
      case 'RemoveDomain':
        return status === 'deleting' ? [{ type: 'DomainRemoved', domain_id }] : []
      default:
        return command satisfies never
    }
  },

  evolve(domains, { event }: Folded<DomainEvent>) {
    switch (event.type) {
      case 'DomainRegistered':
        return domains.set(event.domain_id, { domain: event.domain, status: 'pending_validation' })
      case 'RegistrationAbandoned':
        return domains.set(event.domain_id, { domain: '', status: 'abandoned' })
      case 'DomainValidated':
        return advanced(domains, event.domain_id, 'validated')
      case 'DomainRouted':
        return advanced(domains, event.domain_id, 'provisioning')
      case 'DomainActivated':
        return advanced(domains, event.domain_id, 'active')
      case 'DomainDeleted':
        return advanced(domains, event.domain_id, 'deleting')
      case 'DomainRemoved':
        domains.delete(event.domain_id)
        return domains
      default:
        return foreign(event)
    }
  },
}

const advanced = (domains: Domains, domain_id: string, status: DomainStatus): Domains => {
  const known = domains.get(domain_id)
  return known ? domains.set(domain_id, { ...known, status }) : domains
}
