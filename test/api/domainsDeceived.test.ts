import * as assert from 'uvu/assert'
import type { Static } from 'typebox'
import type * as schemas from '../../src/api/schemas.ts'
import { type DnsServer, startDns } from '../support/dnsServer.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

type Domain = Static<typeof schemas.Domain>
type Verified = { readonly status: string; readonly message: string }

/** Checks of each domain in a wrong state after which it would have been moved. */
const CHECKS = 12

const deceived = suite<{ honest: DnsServer; other: DnsServer; server: TestServer }>(
  'custom domains whose resolvers do not agree',
)
deceived.before(async (context) => {
  const [honest, other] = await Promise.all([startDns(), startDns()])
  const env = {
    SVC_DNS_RESOLVERS: `${honest.address},${other.address}`,
    SVC_DOMAINS_ZONE: 'svc.test',
    SVC_DOMAIN_CHECK_MS: '20',
    SVC_DOMAIN_RECHECK_MS: '100',
  }
  Object.assign(context, { honest, other, server: await startServer({ env }) })
})
deceived.after(async ({ honest, other, server }) => {
  await server.stop()
  await Promise.all([honest.stop(), other.stop()])
})

/** Waits until a resolver was asked about a name often enough. */
const checked = async (dns: DnsServer, name: string): Promise<void> => {
  const count = () => dns.asked.filter((asked) => asked === name).length
  const before = count()
  await until(() => count() >= before + CHECKS)
}

deceived('are not proved by one of them', async ({ honest, other, server: { api } }) => {
  const domain = await api.post<Domain>('/domains', { domain: 'victim.example.com' })
  other.records.set(domain.validation_cname_name, domain.validation_cname_value)
  await checked(honest, domain.validation_cname_name)
  assert.is((await api.get<Domain>(`/domains/${domain.domain_id}`)).status, 'pending_validation')
  other.records.set(domain.validation_cname_name, 'elsewhere.example.org')
  await checked(honest, domain.validation_cname_name) // no check has the former answer any more
  honest.records.set(domain.validation_cname_name, domain.validation_cname_value)
  const { status, message } = await api.post<Verified>(`/domains/${domain.domain_id}/verify`)
  assert.is(status, 'pending_validation')
  assert.match(message, 'the DNS lookup failed or the resolvers disagree, try again')
})

deceived(
  'that are active keep serving while one of them lies, fails or is silent',
  async ({ honest, other, server: { api } }) => {
    const domain = await api.post<Domain>('/domains', { domain: 'active.example.com' })
    const routing = `${domain.domain_id}.edge.svc.test`
    for (const { records } of [honest, other]) {
      records.set(domain.validation_cname_name, domain.validation_cname_value)
      records.set(domain.domain, routing)
    }
    const get = () => api.get<Domain>(`/domains/${domain.domain_id}`)
    await until(async () => (await get()).status === 'active')
    for (const change of [
      () => other.records.set(domain.domain, 'attacker.example.org'),
      () => other.records.delete(domain.domain),
      () => (other.mood = 'fails'),
    ]) {
      change()
      await checked(honest, domain.domain)
      const { status, message } = await get()
      assert.equal([status, message], ['active', null])
    }
    honest.mood = 'fails'
    await checked(honest, domain.domain)
    assert.is((await get()).status, 'active')
    honest.mood = other.mood = 'answers'
  },
)

deceived(
  'that wait for a silent name server delay no other domain, and no request',
  async ({ honest, other, server: { api } }) => {
    for (const server of [honest, other]) server.mood = 'silent'
    const slow = await api.post<Domain>('/domains', { domain: 'slow.example.com' })
    await until(() => honest.asked.includes(slow.validation_cname_name))
    for (const server of [honest, other]) server.mood = 'answers'
    const quick = await api.post<Domain>('/domains', { domain: 'quick.example.com' })
    for (const { records } of [honest, other])
      records.set(quick.validation_cname_name, quick.validation_cname_value)
    await until(async () => (await api.get<Domain>(`/domains/${quick.domain_id}`)).status === 'provisioning')
    await api.remove(`/domains/${slow.domain_id}`)
    await until(async () => (await api.send('GET', `/domains/${slow.domain_id}`)).status === 404)
  },
)
deceived.run()
