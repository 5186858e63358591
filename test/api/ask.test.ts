import * as assert from 'uvu/assert'
import { startDns } from '../support/dnsServer.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const dns = await startDns()
const server = await startServer({
  env: { SVC_DNS_RESOLVERS: dns.address, SVC_DOMAINS_ZONE: 'svc.test', SVC_DOMAIN_CHECK_MS: '60000' },
})
const { api } = server

const asked = async (query: string): Promise<number> => (await fetch(`${server.url}/ask${query}`)).status

const ask = suite('a TLS proxy that asks about a domain', { timeoutMs: 60_000 })

ask('gets 200 for a proved domain, before it points here, and 404 for every other name', async () => {
  const domain = 'hooks.example.com'
  const registered = await api.post<{ domain_id: string; [name: string]: string }>('/domains', { domain })
  const { domain_id, validation_cname_name = '', validation_cname_value = '' } = registered
  assert.is(await asked(`?domain=${domain}`), 404)
  dns.records.set(validation_cname_name, validation_cname_value)
  await api.post(`/domains/${domain_id}/verify`)
  await until(async () => (await asked(`?domain=${domain}`)) === 200)
  for (const name of [domain.toUpperCase(), `${domain}.`]) assert.is(await asked(`?domain=${name}`), 200)
  for (const name of ['other.example.com', `x.${domain}`, 'example.com', 'svc.test', '', '127.0.0.1', '*'])
    assert.is(await asked(`?domain=${name}`), 404, name)
  await api.remove(`/domains/${domain_id}`)
  await until(async () => (await asked(`?domain=${domain}`)) === 404)
})

ask('gets 400 for a wrong question', async () => {
  for (const query of ['', '?name=a.example.com', '?domain=a&domain=b'])
    assert.is(await asked(query), 400, query)
})

ask('is limited when it asks about invented names, and still served for known ones', async () => {
  const domain = 'known.example.com'
  const registered = await api.post<{ domain_id: string; [name: string]: string }>('/domains', { domain })
  const { domain_id, validation_cname_name = '', validation_cname_value = '' } = registered
  dns.records.set(validation_cname_name, validation_cname_value)
  await api.post(`/domains/${domain_id}/verify`)
  await until(async () => (await asked(`?domain=${domain}`)) === 200)
  const statuses = new Set<number>()
  const manyAsked = async () => {
    const some = await Promise.all(Array.from({ length: 200 }, (_, i) => asked(`?domain=x${i}.example.com`)))
    for (const status of some) statuses.add(status)
    return statuses.has(429)
  }
  await until(manyAsked, { timeoutMs: 40_000 }) // the limit is a thousand
  assert.equal([...statuses].sort(), [404, 429])
  assert.is(await asked(`?domain=${domain}`), 200)
})

ask.after(async () => {
  await server.stop()
  await dns.stop()
})
ask.run()
