import * as assert from 'uvu/assert'
import {
  activate,
  certificateOf,
  type Domain,
  dnsPort,
  reached,
  webhookPath,
  call,
  ZONE,
} from '../support/customDomains.ts'
import { isNamed } from '../support/engines.ts'
import { realEngines } from '../support/installation.ts'
import { hasPebble, startPebble } from '../support/pebble.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { startStandIn } from '../support/eventstoredb/index.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const TIMEOUT_MS = 180_000

const nodes = suite('certificates on several nodes', { timeoutMs: TIMEOUT_MS })
const isHere = hasPebble() && isNamed('mongodb') && isNamed('s3')
const test = (name: string, work: () => Promise<void>) => (isHere ? nodes(name, work) : nodes.skip(name))

test('are ordered by one node, and served by all', async () => {
  const standIn = isNamed('eventStore') ? null : await startStandIn()
  const servers: TestServer[] = []
  const nameserver = () => `127.0.0.1:${servers[0] ? dnsPort(servers[0]) : 1}`
  const pebble = await startPebble({ zone: `acme.${ZONE}`, nameserver })
  const name = tempDir()
  const env = {
    ...realEngines(name),
    ...(standIn && { SVC_EVENT_STORE: standIn.url }),
    SVC_DOMAINS_ZONE: ZONE,
    SVC_DOMAIN_CHECK_MS: '50',
    SVC_DNS_RESOLVERS: pebble.resolver,
    SVC_ACME_URL: pebble.directoryUrl,
    SVC_ACME_CA: pebble.caFile,
    SVC_ACME_ACCEPT_TERMS: '1',
    SVC_ACME_DNS_PORT: '0',
    SVC_TLS_PORT: '0',
  }
  for (let i = 0; i < 2; i++) servers.push(await startServer({ env }))
  const [first, second] = servers as [TestServer, TestServer]
  const places = [
    { pebble, server: first },
    { pebble, server: second },
  ] as const
  const path = await webhookPath(first.api)
  const domain = 'everywhere.example'
  await activate(places[0], domain)
  const text = JSON.stringify(`https://${domain}${path}`)
  for (const place of places)
    await until(async () => (await call(place, domain, path).catch(() => null))?.text === text)
  const serials = await Promise.all(
    places.map(async (place) => (await certificateOf(place, domain)).serialNumber),
  )
  assert.is(serials[0], serials[1])
  const orders = pebble.output.join('').match(/Issued certificate serial/g) ?? []
  assert.is(orders.length, 1, pebble.output.join(''))

  await first.stop()
  const other = await second.api.post<Domain>('/domains', { domain: 'later.example' })
  servers.shift()
  await pebble.setCname(other.validation_cname_name, other.validation_cname_value)
  await reached(second.api, other, 'provisioning')
  await second.stop()
  await pebble.stop()
  await standIn?.stop()
})

nodes.run()
