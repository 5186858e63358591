import { admitDomain } from '../../domain/customDomains.ts'
import { clock } from '../../clock.ts'
import type { NameHolder } from '../../domain/name.ts'
import { AppError, isAppError } from '../../errors.ts'
import { bySystem } from '../../events/actor.ts'
import type { EnvCause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import { termsOf } from '../../plans/plans.ts'
import { domainNameOf, isIn, isPublicName } from '../../ports/domainName.ts'
import type { DomainDoc } from '../../projections/customDomains.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { domainFor } from './domainFor.ts'
import { expireClaim } from './expireClaim.ts'
import { isStale, reserveName, type ReservationState } from '../projects/reserveName.ts'

type Deps = Pick<CommandDeps, 'aggregates' | 'views' | 'domainsZone' | 'publicUrl' | 'dns'>

/**
 * Registers a custom domain for an environment (SPEC.md, Custom domains). A domain is unique in the service. A caller that
 * proves the domain by its claim record takes precedence over an unproved claim. Rejects with `bad_request` for an invalid name, with `plan_required`, `domain_limit_reached` or `domain_exists`.
 */
export const registerDomain = async (
  deps: Deps,
  { domain: text }: { domain: string },
  { cause, newId }: Caller,
): Promise<DomainDoc> => {
  const { aggregates, views, domainsZone } = deps
  const domain = validName(text, deps)
  await views.settled('domains')
  const env = views.directory.env(cause.env_id)
  if (!env) throw new AppError('not_found', 'No such environment')
  const { org_id, plan } = env
  const { maxDomains: max } = termsOf[plan]
  const domain_id = newId('domain')
  const stream = streamOf.domains(org_id)
  await aggregates.domains.read(stream, (known) => {
    if (!known.has(domain_id)) admitDomain(known, max) // a reached limit is reported before a taken name
  })
  const claim = { name: `_svc-claim.${domain}`, target: `${cause.env_id}.claim.${domainsZone}` }
  const stateOf = async (other: NameHolder): Promise<ReservationState> => {
    await views.settled('domains')
    const held = await views.domains.get(other.holder)
    if (!held) return isStale(other) && (await abandon(deps, other, cause)) ? 'void' : 'in use'
    const isOwn = held.env_id === cause.env_id && held.status !== 'deleting'
    if (held.status !== 'pending_validation' || held.is_proved) {
      if (isOwn) throw own(domain, held.domain_id)
      return 'in use'
    }
    if (!(await isClaimed(deps, claim))) throw isOwn ? own(domain, held.domain_id) : unproved(domain, claim)
    return (await expireClaim(deps, held, cause.correlation_id)) ? 'void' : 'in use'
  }
  const by = { holder: domain_id, org_id, reserved_at: clock.iso() }
  const name = { stream: streamOf.domainName(domain), name: domain, by }
  await reserveName(deps, { ...name, taken: 'domain_exists', stateOf }, cause)
  const fact = {
    type: 'DomainRegistered',
    domain_id,
    org_id,
    domain,
    validation_cname_name: `_acme-challenge.${domain}`,
    validation_cname_value: `${domain_id}.acme.${domainsZone}`,
  } as const
  try {
    await aggregates.domains.handle(stream, { type: 'RegisterDomain', fact, max }, cause)
  } catch (error) {
    const isRefused = isAppError(error) && error.status < 500 // after any other error the fact may have been stored
    if (isRefused)
      await aggregates.names.handle(
        name.stream,
        { type: 'ReleaseName', name: domain, holder: domain_id },
        cause,
      )
    throw error
  }
  return domainFor(deps, cause.env_id, domain_id)
}

/**
 * Prevents the registration of a domain whose node died or was too slow. Resolves with false if it was registered
 * meanwhile. Reservations of version 0.1.0 do not name the organization: they are void by their age alone.
 */
const abandon = async (
  { aggregates }: Deps,
  { holder: domain_id, org_id }: NameHolder,
  { env_id, correlation_id }: EnvCause,
): Promise<boolean> => {
  if (org_id === undefined) return true
  const stream = streamOf.domains(org_id)
  const cause = { env_id, correlation_id, ...bySystem('domains') } // the log of one tenant does not name another
  await aggregates.domains.handle(stream, { type: 'AbandonRegistration', domain_id }, cause)
  return aggregates.domains.read(stream, (known) => known.get(domain_id)?.status === 'abandoned')
}

interface ClaimRecord {
  readonly name: string
  readonly target: string
}

const isClaimed = async ({ dns }: Pick<Deps, 'dns'>, { name, target }: ClaimRecord): Promise<boolean> => {
  try {
    return (await dns.cname(name)).includes(target)
  } catch (error) {
    if (isAppError(error, 'unavailable')) return false
    throw error
  }
}

const own = (domain: string, domain_id: string): AppError =>
  new AppError(
    'domain_exists',
    `domain: ${domain} is registered in this environment already, with the domain_id ${domain_id}`,
  )

const unproved = (domain: string, { name, target }: ClaimRecord): AppError =>
  new AppError(
    'domain_exists',
    `domain: ${domain} is registered, but not proved. If it is yours, create the DNS record ${name} CNAME ${target} and register it again`,
  )

const validName = (text: string, { domainsZone, publicUrl }: Deps): string => {
  const name = domainNameOf(text)
  if (name === null) {
    throw new AppError(
      'bad_request',
      `domain: expected a domain name such as hooks.example.com, got "${text.slice(0, 60)}"`,
    )
  }
  if (!isPublicName(name))
    throw new AppError('bad_request', `domain: expected a public domain name, got ${name}`)
  if (isIn(domainsZone, name) || name === new URL(publicUrl()).hostname)
    throw new AppError('bad_request', `domain: ${name} belongs to this service`)
  return name
}
