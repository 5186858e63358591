import * as assert from 'uvu/assert'
import { clock, isoOf } from '../../../src/clock.ts'
import { advanceDomain } from '../../../src/commands/customDomains/advanceDomain.ts'
import { createEnv } from '../../../src/commands/orgs/createEnv.ts'
import { createOrg } from '../../../src/commands/orgs/createOrg.ts'
import { deleteDomain } from '../../../src/commands/customDomains/deleteDomain.ts'
import { domainFor } from '../../../src/commands/customDomains/domainFor.ts'
import { removeDomain } from '../../../src/commands/customDomains/removeDomain.ts'
import { registerDomain } from '../../../src/commands/customDomains/registerDomain.ts'
import { STALE_MS } from '../../../src/commands/projects/reserveName.ts'
import { verifyDomain } from '../../../src/commands/customDomains/verifyDomain.ts'
import { openAggregates } from '../../../src/domain/aggregates.ts'
import { AppError, messageOf } from '../../../src/errors.ts'
import type { Plan } from '../../../src/events/org.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { newId } from '../../../src/ids.ts'
import type { DomainDoc } from '../../../src/projections/customDomains.ts'
import { forwarding } from '../../support/forwarding.ts'
import { suite } from '../../support/suite.ts'
import { callerOf, openCommands } from '../openCommands.ts'
import { refusedWith } from '../refusedWith.ts'

const node = await openCommands()
/** CNAME records by name. */
const records = new Map<string, string>()
const deps = {
  ...node.deps,
  dns: {
    txt: () => Promise.resolve([]),
    cname: (name: string) => {
      const target = records.get(name)
      if (target === 'fails') return Promise.reject(new AppError('unavailable', 'DNS does not answer'))
      return Promise.resolve(target === undefined ? [] : [target])
    },
  },
}

let count = 0
const newName = () => `d${++count}.example.com`
/** A caller of a new environment of a new organization. */
const tenant = async (plan: Plan) => {
  const slug = `org-${++count}`
  const cause = { correlation_id: newId() }
  await createOrg(deps, { slug, name: slug, plan }, cause)
  return callerOf((await createEnv(deps, { org: slug, name: 'dev' }, cause)).env_id)
}
const caller = await tenant('self_host')
const { env_id } = caller.cause
const register = (domain = newName(), as = caller) => registerDomain(deps, { domain }, as)
const verify = ({ domain_id }: DomainDoc, as = caller) => verifyDomain(deps, { domain_id }, as)
const statusOf = async ({ domain_id }: DomainDoc) => (await domainFor(deps, env_id, domain_id)).status
const advance = async (domain: DomainDoc): Promise<void> => {
  const doc = await domainFor(deps, env_id, domain.domain_id)
  if (doc.status === 'deleting') await removeDomain(deps, doc, { correlation_id: newId() })
  else await advanceDomain(deps, doc, { correlation_id: newId() })
}
/** Takes a new domain to the status `active`. */
const activated = async (): Promise<DomainDoc> => {
  const domain = await register()
  records.set(domain.validation_cname_name, domain.validation_cname_value)
  await advance(domain)
  await advance(domain)
  records.set(domain.domain, (await domainFor(deps, env_id, domain.domain_id)).routing_domain ?? '')
  await advance(domain)
  return domain
}
/** A name reserved by a node that went no further, `ms` ago. */
const reservedAgo = async (name: string, ms: number): Promise<void> => {
  const time = (clock.now() - ms).toString(16).padStart(12, '0')
  const holder = `${time.slice(0, 8)}-${time.slice(8)}${newId().slice(13)}`
  const command = { type: 'ReserveName', name, by: { holder }, taken: 'domain_exists' } as const
  await node.aggregates.names.handle(streamOf.domainName(name), command, caller.cause)
}

const registering = suite('registering a domain')

registering(
  'does not name the caller in the log of another organization whose registration it ends',
  async () => {
    const [name, org_id] = [newName(), newId()]
    const by = { holder: newId(), org_id, reserved_at: isoOf(clock.now() - STALE_MS) }
    const reserve = { type: 'ReserveName', name, by, taken: 'domain_exists' } as const
    await node.aggregates.names.handle(streamOf.domainName(name), reserve, caller.cause)
    await register(name)
    const [ended] = await Array.fromAsync(node.store.read(streamOf.domains(org_id)))
    assert.ok(ended)
    assert.is(ended?.event.type, 'RegistrationAbandoned')
    assert.equal([ended.metadata.actor, ended.metadata.actor_type], ['domains', 'system'])
  },
)

registering('stores it in lower case, with the record that proves it', async () => {
  const { domain, status, domain_id, validation_cname_value } = await register('Hooks.Example.COM')
  assert.equal([domain, status], ['hooks.example.com', 'pending_validation'])
  assert.is(validation_cname_value, `${domain_id}.acme.svc.test`)
})

registering('refuses what is no domain name, and names of this service', async () => {
  for (const name of ['', 'localhost', '127.0.0.1', 'a.com:80', '*.a.com', 'svc.test', 'x.edge.svc.test'])
    await refusedWith('bad_request', () => register(name))
})

registering('refuses a name that any environment has', async () => {
  const { domain } = await register()
  const other = await tenant('scale')
  for (const as of [caller, other]) await refusedWith('domain_exists', () => register(domain, as))
})

registering('gives a name to the environment that proves it, unless its holder has proved it', async () => {
  const holder = await register()
  const owner = await tenant('scale')
  const claim = `_svc-claim.${holder.domain}`
  const message = await register(holder.domain, owner).then(() => '', messageOf)
  const target = `${owner.cause.env_id}.claim.svc.test`
  assert.ok(message.includes(`${claim} CNAME ${target}`), message)
  for (const wrong of [`${env_id}.claim.svc.test`, 'fails']) {
    records.set(claim, wrong)
    await refusedWith('domain_exists', () => register(holder.domain, owner))
  }
  records.set(claim, target)
  const owned = await register(holder.domain, owner)
  assert.is(await statusOf(holder), 'deleting')
  await advance(holder)
  await refusedWith('domain_exists', () => register(holder.domain))

  const proved = await activated()
  records.set(`_svc-claim.${proved.domain}`, target)
  await refusedWith('domain_exists', () => register(proved.domain, owner))
  assert.is(await statusOf(proved), 'active')
  assert.is.not(owned.domain_id, holder.domain_id)
})

registering('gives a name to one of the environments that ask at once', async () => {
  const callers = await Promise.all([1, 2, 3].map(() => tenant('scale')))
  const name = newName()
  const results = await Promise.allSettled(callers.map((as) => register(name, as)))
  assert.is(results.filter(({ status }) => status === 'fulfilled').length, 1)
})

registering(
  'takes over a name whose node died before it registered the domain, not a recent one',
  async () => {
    await reservedAgo('left.example.com', STALE_MS + 1000)
    assert.is((await register('left.example.com')).domain, 'left.example.com')
    await reservedAgo('recent.example.com', 0)
    await refusedWith('domain_exists', () => register('recent.example.com'))
  },
)

registering('keeps its name when the reply of the log is lost', async () => {
  const domain = newName()
  const store = forwarding(node.store, {
    async append(...args) {
      const appended = await node.store.append(...args)
      if (args[1].some(({ event }) => event.type === 'DomainRegistered'))
        throw new AppError('unavailable', 'The reply is lost')
      return appended
    },
  })
  const losing = { ...deps, store, aggregates: openAggregates(store) }
  await refusedWith('unavailable', () => registerDomain(losing, { domain }, caller))
  const other = await tenant('scale')
  await refusedWith('domain_exists', () => register(domain, other))
})

registering('has no effect after another caller took the name over from its slow node', async () => {
  const [domain, domain_id] = [newName(), newId()]
  const org_id = node.views.directory.env(env_id)?.org_id ?? 'none'
  const by = { holder: domain_id, org_id, reserved_at: isoOf(clock.now() - STALE_MS - 1000) }
  const reserve = { type: 'ReserveName', name: domain, by, taken: 'domain_exists' } as const
  await node.aggregates.names.handle(streamOf.domainName(domain), reserve, caller.cause)
  const taker = await tenant('scale')
  await register(domain, taker)
  const fact = {
    type: 'DomainRegistered',
    domain_id,
    org_id,
    domain,
    validation_cname_name: 'n',
    validation_cname_value: 'v',
  } as const
  await refusedWith('conflict', () =>
    openAggregates(node.store).domains.handle(
      streamOf.domains(org_id),
      { type: 'RegisterDomain', fact, max: null },
      caller.cause,
    ),
  )
  await refusedWith('domain_exists', () => register(domain))
})

registering('needs a plan with domains, and says so before it says that a name is taken', async () => {
  const { domain } = await register()
  const as = await tenant('free')
  for (const name of [newName(), domain]) await refusedWith('plan_required', () => register(name, as))
})

registering('admits as many as the plan allows, and releases the names of the others', async () => {
  const as = await tenant('pro')
  const names = Array.from({ length: 6 }, newName)
  const results = await Promise.allSettled(names.map((name) => register(name, as)))
  assert.is(results.filter(({ status }) => status === 'fulfilled').length, 3)
  for (const [i, { status }] of results.entries())
    if (status === 'rejected') assert.is((await register(names[i])).domain, names[i])
})

registering.run()

const verifying = suite('verifying a domain')

verifying('without its record changes nothing, and names the record', async () => {
  const domain = await register()
  const { status, message } = await verify(domain)
  assert.is(status, 'pending_validation')
  assert.match(message, `${domain.validation_cname_name} CNAME ${domain.validation_cname_value}`)
  assert.is(await statusOf(domain), 'pending_validation')
})

verifying('while DNS does not answer changes nothing', async () => {
  const domain = await register()
  records.set(domain.validation_cname_name, 'fails')
  assert.is((await verify(domain)).status, 'pending_validation')
})

verifying('accepts the record, also by way of others, but not in circles', async () => {
  const domain = await register()
  const { validation_cname_name: name, validation_cname_value: value } = domain
  records.set(name, 'x.example.net')
  records.set('x.example.net', 'y.example.net')
  records.set('y.example.net', 'x.example.net')
  assert.is((await verify(domain)).status, 'pending_validation')
  records.set('y.example.net', value)
  assert.is((await verify(domain)).status, 'validated')
  assert.is(await statusOf(domain), 'validated')
})

verifying('reports an active domain as validated', async () => {
  const domain = await activated()
  assert.is(await statusOf(domain), 'active')
  assert.is((await verify(domain)).status, 'validated')
})

verifying('is refused while the domain is deleted', async () => {
  const domain = await register()
  await deleteDomain(deps, domain, caller)
  await refusedWith('conflict', () => verify(domain))
})

verifying('and deleting refuse a domain of another environment as if it did not exist (I7)', async () => {
  const domain = await register()
  const as = await tenant('scale')
  await refusedWith('not_found', () => verify(domain, as))
  await refusedWith('not_found', () => deleteDomain(deps, domain, as))
  assert.is(await statusOf(domain), 'pending_validation')
})

verifying.run()

const deleting = suite('deleting a domain')

deleting('ends its service at once', async () => {
  const domain = await activated()
  assert.is(node.views.directory.envOfDomain(domain.domain)?.env_id, env_id)
  await deleteDomain(deps, domain, caller)
  assert.is(await statusOf(domain), 'deleting')
  assert.is(node.views.directory.envOfDomain(domain.domain), undefined)
})

deleting('makes its name available when the last step is done, and not before', async () => {
  const domain = await register()
  await deleteDomain(deps, domain, caller)
  await refusedWith('domain_exists', () => register(domain.domain))
  await advance(domain)
  assert.is.not((await register(domain.domain)).domain_id, domain.domain_id)
  await refusedWith('not_found', () => statusOf(domain))
})

deleting('twice is deleting once', async () => {
  const domain = await register()
  await deleteDomain(deps, domain, caller)
  const before = await node.store.head()
  await deleteDomain(deps, domain, caller)
  assert.is(await node.store.head(), before)
})

deleting.after(() => node.close())
deleting.run()
