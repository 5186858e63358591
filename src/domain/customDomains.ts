import { AppError } from '../errors.ts'
import type { DomainStatus } from '../events/customDomain.ts'
import type { EventOf } from '../events/index.ts'
import { type Decider, type Folded, foreign } from './decider.ts'

interface Domain {
  readonly domain: string
  /** `abandoned`: it was not registered in time, and cannot be registered any more. */
  readonly status: DomainStatus | 'abandoned'
  /** The record that proves it was found. The status follows when the certificate is issued. */
  readonly isProved: boolean
  /** Its records no longer lead here. */
  readonly isDiverted: boolean
  /** The values of its TXT record. */
  readonly challenge: readonly string[]
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
  | { readonly type: 'ProveDomain'; readonly domain_id: string }
  | { readonly type: 'PublishChallenge'; readonly domain_id: string; readonly values: readonly string[] }
  /** Stores a certificate. A proved domain becomes valid with its first one. */
  | {
      readonly type: 'AddCertificate'
      readonly domain_id: string
      readonly fact: EventOf<'CertificateIssued'>
      readonly routing_domain: string
    }
  | {
      readonly type: 'FailCertificate'
      readonly domain_id: string
      readonly message: string
      readonly retry_at: string
    }
  | { readonly type: 'RouteDomain'; readonly domain_id: string }
  | { readonly type: 'ActivateDomain'; readonly domain_id: string }
  | {
      readonly type: 'DivertDomain'
      readonly domain_id: string
      readonly message: string
      /** Stores a new time for a diverted domain, and has no effect on another one. */
      readonly isAgain?: boolean
    }
  | { readonly type: 'ReturnDomain'; readonly domain_id: string }
  /** Has an effect on a diverted domain only. `to`: the status that its remaining records prove. */
  | {
      readonly type: 'SuspendDomain'
      readonly domain_id: string
      readonly to: EventOf<'DomainSuspended'>['status']
    }
  | { readonly type: 'DeleteDomain'; readonly domain_id: string }
  | { readonly type: 'RemoveDomain'; readonly domain_id: string }
  /** Deletes the domain unless it is proved. */
  | { readonly type: 'ExpireDomain'; readonly domain_id: string }

type DomainEvent = EventOf<
  | 'DomainRegistered'
  | 'RegistrationAbandoned'
  | 'DomainProved'
  | 'ChallengePublished'
  | 'CertificateIssued'
  | 'CertificateFailed'
  | 'DomainValidated'
  | 'DomainRouted'
  | 'DomainActivated'
  | 'DomainDiverted'
  | 'DomainReturned'
  | 'DomainSuspended'
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
    return known && known.status !== 'abandoned' ? advance(command, known, known.status) : missing(command)
  },

  evolve(domains, { event }: Folded<DomainEvent>) {
    switch (event.type) {
      case 'DomainRegistered':
        return domains.set(event.domain_id, {
          ...unproved,
          domain: event.domain,
          status: 'pending_validation',
        })
      case 'RegistrationAbandoned':
        return domains.set(event.domain_id, { ...unproved, domain: '', status: 'abandoned' })
      case 'DomainProved':
        return changed(domains, event.domain_id, { isProved: true })
      case 'ChallengePublished':
        return changed(domains, event.domain_id, { challenge: event.values })
      case 'CertificateIssued':
      case 'CertificateFailed':
        return changed(domains, event.domain_id, { challenge: [] })
      case 'DomainValidated':
        return changed(domains, event.domain_id, { status: 'validated', isProved: true })
      case 'DomainRouted':
        return changed(domains, event.domain_id, { status: 'provisioning' })
      case 'DomainActivated':
        return changed(domains, event.domain_id, { status: 'active', isDiverted: false })
      case 'DomainDiverted':
        return changed(domains, event.domain_id, { isDiverted: true })
      case 'DomainReturned':
        return changed(domains, event.domain_id, { isDiverted: false })
      case 'DomainSuspended': {
        const isProved = event.status !== 'pending_validation'
        return changed(domains, event.domain_id, { status: event.status, isProved, isDiverted: false })
      }
      case 'DomainDeleted':
        return changed(domains, event.domain_id, { status: 'deleting' })
      case 'DomainRemoved':
        domains.delete(event.domain_id)
        return domains
      default:
        return foreign(event)
    }
  },
}

const unproved = { isProved: false, isDiverted: false, challenge: [] } as const

const changed = (domains: Domains, domain_id: string, change: Partial<Domain>): Domains => {
  const known = domains.get(domain_id)
  return known ? domains.set(domain_id, { ...known, ...change }) : domains
}

type Advance = Exclude<DomainsCommand, { type: 'RegisterDomain' | 'AbandonRegistration' }>

const missing = ({ type, domain_id }: Advance): [] => {
  if (type === 'DeleteDomain') throw new AppError('not_found', `No domain ${domain_id}`)
  return []
}

/** The facts by which a domain leaves its status. A command for another status has no effect: its time is over. */
const advance = (
  command: Advance,
  { domain, isProved, isDiverted, challenge }: Domain,
  status: DomainStatus,
): DomainEvent[] => {
  const { domain_id } = command
  const hasProof = isProved && status !== 'deleting'
  const isValid = hasProof && status !== 'pending_validation' // a proved domain may wait for its certificate
  switch (command.type) {
    case 'ProveDomain':
      return status === 'pending_validation' && !isProved ? [{ type: 'DomainProved', domain_id }] : []
    case 'PublishChallenge':
      if (!hasProof) return []
      if (command.values.join() === challenge.join()) return []
      return [{ type: 'ChallengePublished', domain_id, values: [...command.values] }]
    case 'AddCertificate': {
      if (isValid) return [command.fact]
      if (!hasProof) return []
      return [command.fact, { type: 'DomainValidated', domain_id, routing_domain: command.routing_domain }]
    }
    case 'FailCertificate': {
      const { message, retry_at } = command
      return status === 'deleting' ? [] : [{ type: 'CertificateFailed', domain_id, message, retry_at }]
    }
    case 'ValidateDomain':
      if (status !== 'pending_validation') return []
      return [{ type: 'DomainValidated', domain_id, routing_domain: command.routing_domain }]
    case 'RouteDomain':
      return status === 'validated' ? [{ type: 'DomainRouted', domain_id }] : []
    case 'ActivateDomain':
      return status === 'provisioning' ? [{ type: 'DomainActivated', domain_id, domain }] : []
    case 'DivertDomain': {
      const { message, isAgain = false } = command
      return hasProof && isDiverted === isAgain ? [{ type: 'DomainDiverted', domain_id, message }] : []
    }
    case 'ReturnDomain':
      return isDiverted && hasProof ? [{ type: 'DomainReturned', domain_id }] : []
    case 'SuspendDomain': {
      const isBack = command.to === 'pending_validation' || (isValid && status !== command.to)
      if (!isDiverted || !hasProof || !isBack) return []
      return [{ type: 'DomainSuspended', domain_id, domain, status: command.to }]
    }
    case 'DeleteDomain':
      return status === 'deleting' ? [] : [{ type: 'DomainDeleted', domain_id, domain }]
    case 'ExpireDomain':
      if (status !== 'pending_validation' || isProved) return []
      return [{ type: 'DomainDeleted', domain_id, domain }]
    case 'RemoveDomain':
      return status === 'deleting' ? [{ type: 'DomainRemoved', domain_id }] : []
    default:
      return command satisfies never
  }
}
