import type { Static } from 'typebox'
import * as assert from 'uvu/assert'
import type * as schemas from '../../src/api/schemas.ts'
import { callBy } from '../support/callBy.ts'
import { startDns } from '../support/dnsServer.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

type Domain = Static<typeof schemas.Domain>

const saga = suite('custom domains, without requests')

saga('are validated, activated and removed by the saga, also after a restart', async () => {
  const dns = await startDns()
  const dataDir = tempDir()
  const env = { SVC_DNS_SERVERS: dns.address, SVC_DOMAINS_ZONE: 'svc.test', SVC_DOMAIN_CHECK_MS: '50' }
  const first = await startServer({ dataDir, env })
  const domain = await first.api.post<Domain>('/domains', { domain: 'by.itself.example' })
  await until(() => dns.asked.includes(domain.validation_cname_name))
  await first.stop()
  dns.mood = 'fails'
  const server = await startServer({ dataDir, env })
  const path = `/domains/${domain.domain_id}`
  const asked = dns.asked.length
  await until(() => dns.asked.length > asked)
  dns.mood = 'answers'
  dns.records.set(domain.validation_cname_name, domain.validation_cname_value)
  dns.records.set(domain.domain, `${domain.domain_id}.edge.svc.test`)
  await until(async () => (await server.api.get<Domain>(path)).status === 'active')
  await server.api.remove(path)
  await until(async () => (await server.api.send('GET', path)).status === 404)
  await server.stop()
  await dns.stop()
})

saga(
  'are remembered after their removal, also by a restart, unless the name is that of the service',
  async () => {
    const dns = await startDns()
    const dataDir = tempDir()
    const env = { SVC_DNS_SERVERS: dns.address, SVC_DOMAINS_ZONE: 'svc.test', SVC_DOMAIN_CHECK_MS: '50' }
    const first = await startServer({ dataDir, env })
    for (const name of ['one.example', 'two.example']) {
      const domain = await first.api.post<Domain>('/domains', { domain: name })
      dns.records.set(domain.validation_cname_name, domain.validation_cname_value)
      const path = `/domains/${domain.domain_id}`
      await until(async () => (await first.api.get<Domain>(path)).status === 'provisioning')
      await first.api.remove(path)
      await until(async () => (await first.api.send('GET', path)).status === 404)
    }
    await first.stop()
    const server = await startServer({ dataDir, env: { ...env, SVC_PUBLIC_URL: 'https://two.example' } })
    await until(async () => (await callBy(server, 'one.example', '/status', 'GET')).status === 404)
    assert.is((await callBy(server, 'two.example', '/status', 'GET')).status, 200)
    await server.stop()
    await dns.stop()
  },
)

saga.run()
