import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { callBy } from '../support/callBy.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig } from '../../src/process/config.ts'
import {
  activate,
  call,
  certificateOf,
  dnsPort,
  type Domain,
  get,
  isRefused,
  type Place as Served,
  reached,
  webhookPath,
  ZONE,
} from '../support/customDomains.ts'
import { type Api, openApi } from '../support/http.ts'
import { installation } from '../support/installation.ts'
import { parseExposition } from '../support/exposition.ts'
import { hasPebble, startPebble } from '../support/pebble.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const TIMEOUT_MS = 60_000

interface Place extends Served {
  readonly dataDir: string
  readonly env: Readonly<Record<string, string>>
}

const open = async (options: Partial<Parameters<typeof startPebble>[0]> = {}, more = {}): Promise<Place> => {
  const started: TestServer[] = []
  const nameserver = () => `127.0.0.1:${started[0] ? dnsPort(started[0]) : 1}`
  const pebble = await startPebble({ zone: `acme.${ZONE}`, nameserver, ...options })
  const dataDir = tempDir()
  const env = {
    SVC_DOMAINS_ZONE: ZONE,
    SVC_DOMAIN_CHECK_MS: '50',
    SVC_DOMAIN_RECHECK_MS: '400',
    SVC_DNS_RESOLVERS: pebble.resolver,
    SVC_ACME_URL: pebble.directoryUrl,
    SVC_ACME_CA: pebble.caFile,
    SVC_ACME_EMAIL: 'ops@example.com',
    SVC_ACME_ACCEPT_TERMS: '1',
    SVC_ACME_DNS_PORT: '0',
    SVC_TLS_PORT: '0',
    ...more,
  }
  const server = await startServer({ dataDir, env })
  started.push(server)
  return { pebble, server, dataDir, env }
}
const close = async ({ server, pebble }: Place) => {
  await server.stop()
  await pebble.stop()
}

const otherEnvironment = async ({ server: { url }, dataDir, env }: Place, slug: string): Promise<Api> => {
  const operator = openApi(url, openSecrets(readConfig(installation(dataDir, env))).operatorToken)
  await operator.post(`${url}/operator/orgs`, { slug, plan: 'scale' })
  const { env_id } = await operator.post<{ env_id: string }>(`${url}/operator/orgs/${slug}/envs`, {
    name: 'dev',
  })
  const { token } = await operator.post<{ token: string }>(`${url}/operator/envs/${env_id}/api-keys`, {
    name: 'test',
  })
  return openApi(url, token)
}

const tls = suite<Place>('custom domains over TLS', { timeoutMs: TIMEOUT_MS * 2 })
const isHere = hasPebble()
const test = (name: string, work: (place: Place) => Promise<void>) =>
  isHere ? tls(name, work) : tls.skip(name)

tls.before(async (context) => {
  if (isHere) Object.assign(context, await open({ refused: ['refused.example'] }))
})

test('serve webhooks with a certificate of their own, which a client verifies', async (place) => {
  const path = await webhookPath(place.server.api)
  const name = 'hooks.customer.example'
  const { certificate_expires_at, message } = await activate(place, name)
  assert.ok(Date.parse(certificate_expires_at ?? '') > 0)
  assert.is(message, null)
  assert.equal(await call(place, name, path), { status: 200, text: JSON.stringify(`https://${name}${path}`) })
  const { subjectaltname } = await certificateOf(place, name)
  assert.is(subjectaltname, `DNS:${name}`)
  assert.is((await call(place, name, '/v1/env')).status, 404)
})

test('are metrics: their number by status, and the time at which the first certificate expires', async (place) => {
  const { certificate_expires_at } = await activate(place, 'measured.customer.example')
  const { operatorToken } = openSecrets(readConfig(installation(place.dataDir, place.env)))
  const { text } = await openApi(place.server.url, operatorToken).send('GET', `${place.server.url}/metrics`)
  const { sum } = parseExposition(text)
  assert.ok(sum('svc_domains', { status: 'active' }) >= 1)
  const first = sum('svc_certificate_expiry_timestamp_seconds')
  assert.ok(first > 0 && first <= Date.parse(certificate_expires_at ?? '') / 1000)
  assert.is(sum('svc_domain_orders_failed'), 0)
})

test('refuse handshakes for other names, and requests for another host', async (place) => {
  const [one, other] = ['one.customer.example', 'other.customer.example']
  await activate(place, one)
  await activate(place, other)
  assert.ok(await isRefused(place, 'unknown.example'))
  assert.ok(await isRefused(place, ''))
  for (const host of [other, 'unknown.example', '127.0.0.1']) {
    const { status, text } = await call(place, one, '/webhook/s/a/x', host)
    assert.equal([status, /misdirected_request/.test(text)], [421, true], host)
  }
  assert.is((await call(place, one, '/webhook/s/a/x', `${one.toUpperCase()}:443`)).status, 404)
})

test('have a certificate before they point here', async (place) => {
  const { api } = place.server
  const name = 'early.customer.example'
  const domain = await api.post<Domain>('/domains', { domain: name })
  assert.equal([domain.certificate_expires_at, domain.routing_domain], [null, null])
  assert.match(domain.message ?? '', domain.validation_cname_value)
  await place.pebble.setCname(domain.validation_cname_name, domain.validation_cname_value)
  const { routing_domain, message } = await reached(api, domain, 'provisioning')
  assert.is(message, `Create the DNS record ${name} CNAME ${routing_domain}`)
  assert.is((await certificateOf(place, name)).subjectaltname, `DNS:${name}`)
  assert.is((await call(place, name, '/webhook/s/a/x')).status, 404)
  const theirs = (await webhookPath(api)).replace('/webhook/', '/webhook/local/dev/') // its address at the service
  assert.is((await call(place, name, theirs)).status, 404)
})

test('keep their certificate over a restart', async (place) => {
  const before = await open()
  const name = 'restarted.example'
  await activate(before, name)
  const { serialNumber } = await certificateOf(before, name)
  await before.server.stop()
  const server = await startServer({ dataDir: before.dataDir, env: before.env })
  const after = { ...before, server }
  assert.is((await certificateOf(after, name)).serialNumber, serialNumber)
  await close(after)
  assert.ok(place.pebble)
})

test('that are deleted lose their certificate, which is revoked', async (place) => {
  const { api } = place.server
  const name = 'deleted.customer.example'
  const domain = await activate(place, name)
  const { serialNumber } = await certificateOf(place, name)
  assert.is(await place.pebble.statusOf(serialNumber), 'Valid')
  await api.remove(`/domains/${domain.domain_id}`)
  await until(() => isRefused(place, name))
  await until(async () => (await api.send('GET', `/domains/${domain.domain_id}`)).status === 404)
  assert.is(await place.pebble.statusOf(serialNumber), 'Revoked')
})

test('that lead elsewhere stop serving, and their new owner can claim them', async (place) => {
  const { server, pebble } = place
  const name = 'moved.customer.example'
  const domain = await activate(place, name)
  await pebble.clearCname(name)
  const suspended = await reached(server.api, domain, 'provisioning')
  assert.is(suspended.routing_domain, domain.routing_domain)
  const other = await otherEnvironment(place, 'second')
  assert.is((await other.refused('POST', '/domains', { domain: name })).code, 'domain_exists')
  await pebble.clearCname(domain.validation_cname_name)
  await reached(server.api, domain, 'pending_validation')
  assert.ok(await isRefused(place, name))
  assert.is((await callBy(server, name, '/status', 'GET')).status, 404) // a proxy may still forward it
  const { message } = await other.refused('POST', '/domains', { domain: name })
  const [, claim = '', target = ''] = /record (\S+) CNAME (\S+)/.exec(message) ?? []
  await pebble.setCname(claim, target)
  const claimed = await other.post<Domain>('/domains', { domain: name })
  assert.is.not(claimed.validation_cname_value, domain.validation_cname_value)
  await until(async () => (await server.api.send('GET', `/domains/${domain.domain_id}`)).status === 404)
})

test('that return in time keep serving', async (place) => {
  const name = 'returned.customer.example'
  const domain = await activate(place, name)
  await place.pebble.clearCname(name)
  await reached(place.server.api, domain, 'provisioning')
  await place.pebble.setCname(name, domain.routing_domain ?? '')
  assert.is((await reached(place.server.api, domain, 'active')).message, null)
})

test('explain a refusal of the authority, and remain as long as they are proved', async (place) => {
  const { api } = place.server
  const { pebble } = place
  const domain = await api.post<Domain>('/domains', { domain: 'refused.example' })
  await pebble.setCname(domain.validation_cname_name, domain.validation_cname_value)
  const refused = await until(async () => {
    const now = await get(api, domain)
    return /authority refused/.test(now.message ?? '') ? now : undefined
  })
  assert.equal([refused.status, refused.expires_at], ['pending_validation', null])
  assert.match(
    refused.message ?? '',
    /The certificate authority refused the certificate .*The next attempt is at \d{4}-/,
  )
  const other = await otherEnvironment(place, 'third')
  const { env_id } = await other.get<{ env_id: string }>('/env')
  await pebble.setCname(`_svc-claim.${domain.domain}`, `${env_id}.claim.${ZONE}`)
  const { code, message } = await other.refused('POST', '/domains', { domain: domain.domain })
  assert.is(code, 'domain_exists')
  assert.not.match(message, 'not proved')
  await pebble.clearCname(domain.validation_cname_name)
  const claimed = await until(async () => {
    const { status } = await other.send('POST', '/domains', { body: { domain: domain.domain } })
    return status === 201
  })
  assert.ok(claimed)
})

test('store no private key in clear, and log none', async ({ dataDir, server }) => {
  const clear = 'PRIVATE KEY'
  const files = readdirSync(dataDir, { recursive: true, withFileTypes: true }).filter((file) => file.isFile())
  assert.ok(files.length > 0)
  for (const { parentPath, name } of files)
    assert.not.ok(readFileSync(join(parentPath, name)).includes(clear), name)
  assert.not.match(server.output.join('\n'), clear)
})

tls.after((place) => (isHere ? close(place) : undefined))
tls.run()

const renewal = suite('the renewal of certificates', { timeoutMs: TIMEOUT_MS * 2 })
const renewed = (name: string, work: () => Promise<void>) =>
  isHere ? renewal(name, work) : renewal.skip(name)

renewed('happens before they expire, and is served without a restart', async () => {
  const place = await open({ certificateSeconds: 9 }, { SVC_DOMAIN_RECHECK_MS: '60000' })
  const name = 'renewed.example'
  const domain = await activate(place, name)
  const { serialNumber } = await until(() => certificateOf(place, name)) // on a slow machine, the first one may have expired
  const next = await until(
    async () => {
      const now = await certificateOf(place, name)
      return now.serialNumber === serialNumber ? undefined : now
    },
    { timeoutMs: TIMEOUT_MS },
  )
  assert.is(next.subjectaltname, `DNS:${name}`)
  assert.is((await get(place.server.api, domain)).status, 'active')
  await close(place)
})

renewed('is shown when it fails', async () => {
  const place = await open({ certificateSeconds: 9 }, { SVC_DOMAIN_RECHECK_MS: '60000' })
  const { api } = place.server
  const domain = await activate(place, 'failing.example')
  await place.pebble.stop()
  const failing = await until(
    async () => {
      const now = await get(api, domain)
      return now.message === null ? undefined : now
    },
    { timeoutMs: TIMEOUT_MS },
  )
  assert.match(
    failing.message ?? '',
    /^The certificate could not be renewed and expires at .*could not be reached/,
  )
  assert.is(failing.status, 'active')
  await place.server.stop()
})

renewal.run()
