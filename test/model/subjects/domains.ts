import type { Cause } from '../../../src/events/event.ts'
import fc from 'fast-check'
import { advanceDomain } from '../../../src/commands/customDomains/advanceDomain.ts'
import { deleteDomain } from '../../../src/commands/customDomains/deleteDomain.ts'
import { domainFor } from '../../../src/commands/customDomains/domainFor.ts'
import { registerDomain } from '../../../src/commands/customDomains/registerDomain.ts'
import { removeDomain } from '../../../src/commands/customDomains/removeDomain.ts'
import { verifyDomain } from '../../../src/commands/customDomains/verifyDomain.ts'
import type { DomainStatus } from '../../../src/events/customDomain.ts'
import type { DomainDoc } from '../../../src/projections/customDomains.ts'
import { type Excuse, refuse, type Scenario, type Subject } from '../subject.ts'
import { Ids, type ModelNode, type World } from '../world.ts'

type Tenant = 'pro' | 'large'

type Command =
  | { readonly op: 'register'; readonly own: string; readonly tenant: Tenant; readonly domain: string }
  /** The owner creates a DNS record: one that claims, validates or routes a domain. */
  | { readonly op: 'claim'; readonly tenant: Tenant; readonly domain: string }
  | { readonly op: 'prove'; readonly id: string; readonly domain: string }
  | { readonly op: 'route'; readonly id: string; readonly domain: string }
  | { readonly op: 'verify' | 'advance' | 'delete'; readonly id: string }

interface State {
  domains: Record<string, { tenant: Tenant; domain: string; status: DomainStatus }>
  /** The registration that has a name. */
  names: Record<string, string>
  records: Record<'claim' | 'prove' | 'route', Record<string, string>>
}

const MOST_OF_PRO = 3
const tenant = fc.constantFrom<Tenant>('pro', 'large')
const domain = fc.constantFrom('a', 'b', 'c', 'd', 'e')
const pick = fc.nat(99).map(String)
const op = <const T extends string>(...values: T[]) => fc.constantFrom(...values)

/** Custom domains of two organizations that want the same names. */
export const domains: Subject<State, Command> = {
  name: 'domains',
  initial: { domains: {}, names: {}, records: { claim: {}, prove: {}, route: {} } },

  commands: fc.oneof(
    { weight: 5, arbitrary: fc.record({ op: op('register'), own: fc.constant(''), tenant, domain }) },
    { weight: 1, arbitrary: fc.record({ op: op('claim'), tenant, domain }) },
    { weight: 2, arbitrary: fc.record({ op: op('prove', 'route'), id: pick, domain: fc.constant('') }) },
    {
      weight: 6,
      arbitrary: fc.record({ op: op('verify', 'verify', 'advance', 'advance', 'delete'), id: pick }),
    },
  ),

  named(command, own, earlier) {
    if (command.op === 'register') return { ...command, own }
    if (command.op === 'claim') return command
    const known = earlier.filter((one) => one.op === 'register')
    const one = known[Number(command.id) % known.length]
    const id = one?.own ?? 'none'
    return command.op === 'prove' || command.op === 'route'
      ? { ...command, id, domain: one?.domain ?? 'none' }
      : { ...command, id }
  },

  step(state, command) {
    const { domains, names, records } = state
    if (command.op === 'claim') {
      records.claim[command.domain] = command.tenant
      return
    }
    if (command.op === 'register') return register(state, command)
    if (command.op === 'prove' || command.op === 'route') {
      records[command.op][command.domain] = command.id
      return
    }
    const known = domains[command.id]
    switch (command.op) {
      case 'verify':
        if (!known) return refuse('not_found')
        if (known.status === 'deleting') refuse('conflict')
        advance(state, command.id)
        return known.status === 'pending_validation' ? 'pending_validation' : 'validated'
      case 'advance':
        if (!known) return refuse('not_found')
        if (known.status !== 'deleting') return advance(state, command.id)
        if (names[known.domain] === command.id) delete names[known.domain]
        delete domains[command.id]
        return
      case 'delete':
        if (!known) return refuse('not_found')
        known.status = 'deleting'
        return
      default:
        return command satisfies never
    }
  },

  view: ({ domains }) => domains,
  repeats: ({ op }) => op === 'register' || op === 'delete' || op === 'advance',

  excuse(command, other): Excuse<State> {
    // A status advances from the one that was read: of two commands that read the same, one has no effect.
    if (command.op === 'verify' || command.op === 'advance') return { idle: true }
    if (command.op !== 'register' || other.op !== 'register') return {}
    // A name is reserved, and an unproved claim for it ends, before the registration, which may be refused.
    return {
      refused: ['domain_exists', 'domain_limit_reached'],
      leaves: [false, true].map((isReleased) => ({ domains, names, records }: State) => {
        const holder = domains[names[command.domain] ?? '']
        if (holder?.status !== 'pending_validation') return
        if (records.claim[command.domain] !== command.tenant) return
        holder.status = 'deleting'
        if (isReleased) delete names[command.domain]
      }),
    }
  },

  open: (world) => open(world),
}

const register = (
  { domains, names, records }: State,
  { own, tenant, domain }: Extract<Command, { op: 'register' }>,
): void => {
  if (domains[own]) return // a repeat
  const used = Object.values(domains).filter(
    (one) => one.tenant === tenant && one.status !== 'deleting',
  ).length
  if (tenant === 'pro' && used >= MOST_OF_PRO) refuse('domain_limit_reached')
  const holder = domains[names[domain] ?? '']
  if (holder) {
    if (holder.status !== 'pending_validation' || records.claim[domain] !== tenant) refuse('domain_exists')
    holder.status = 'deleting'
  }
  names[domain] = own
  domains[own] = { tenant, domain, status: 'pending_validation' }
}

const advance = ({ domains, records }: State, id: string): void => {
  const known = domains[id]
  if (!known) return
  const { status, domain } = known
  if (status === 'pending_validation' && records.prove[domain] === id) known.status = 'validated'
  if (status === 'validated') known.status = 'provisioning'
  if (status === 'provisioning' && records.route[domain] === id) known.status = 'active'
}

/** The step of the saga. */
const takeStep = async (node: ModelNode, doc: DomainDoc, cause: Cause): Promise<void> => {
  if (doc.status === 'deleting') await removeDomain(node, doc, cause)
  else await advanceDomain(node, doc, cause)
}

const open = async (world: World): Promise<Scenario<Command>> => {
  const envs = { pro: await world.openEnv('pro'), large: await world.openEnv('self_host') }
  const ids = new Ids()
  const fullName = (domain: string): string => `${domain}.${envs.pro.slug}.example.com`
  const idOf = (own: string): string => ids.of(`${own} domain`)
  /** The tenant of each registration. */
  const asked = new Map<string, Tenant>()
  const callerOf = (tenant: Tenant, request: string) => ids.caller(envs[tenant].env_id, request)

  const perform = async (node: ModelNode, command: Command): Promise<unknown> => {
    if (command.op === 'claim') {
      world.dns.set(`_svc-claim.${fullName(command.domain)}`, `${envs[command.tenant].env_id}.claim.svc.test`)
      return
    }
    if (command.op === 'register') {
      const { own, tenant, domain } = command
      asked.set(own, tenant)
      await registerDomain(node, { domain: fullName(domain) }, callerOf(tenant, own))
      return
    }
    const domain_id = idOf(command.id)
    if (command.op === 'prove' || command.op === 'route') {
      const isProof = command.op === 'prove'
      const name = `${isProof ? '_acme-challenge.' : ''}${fullName(command.domain)}`
      world.dns.set(name, `${domain_id}.${isProof ? 'acme' : 'edge'}.svc.test`)
      return
    }
    const tenant = asked.get(command.id) ?? 'pro'
    const caller = callerOf(tenant, 'other')
    switch (command.op) {
      case 'verify':
        return (await verifyDomain(node, { domain_id }, caller)).status
      case 'advance':
        await takeStep(node, await domainFor(node, envs[tenant].env_id, domain_id), caller.cause)
        return
      case 'delete':
        return deleteDomain(node, { domain_id }, caller)
      default:
        return command satisfies never
    }
  }

  const observe = async ({ views }: ModelNode): Promise<unknown> => {
    await views.settled()
    const seen: Record<string, unknown> = {}
    for (const tenant of ['pro', 'large'] as const) {
      const query = { equal: { env_id: envs[tenant].env_id }, sort: 'order', limit: 200, offset: 0 } as const
      for (const { domain_id, domain, status } of (await views.domains.find(query)).items)
        seen[ids.nameOf(domain_id).split(' ')[0] ?? ''] = { tenant, domain: domain.split('.')[0], status }
    }
    return seen
  }

  return { perform, observe }
}
