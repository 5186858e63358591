import type { IncomingHttpHeaders } from 'node:http'
import * as assert from 'uvu/assert'
import type { Static } from 'typebox'
import type * as schemas from '../../src/api/schemas.ts'
import { clock } from '../../src/clock.ts'
import { isId, newId } from '../../src/ids.ts'
import { openStore } from '../../src/process/engines.ts'
import { streamOf } from '../../src/events/streams.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig } from '../../src/process/config.ts'
import { deploy, type Webhook } from '../support/build.ts'
import { callBy as callHost } from '../support/callBy.ts'
import { startDns } from '../support/dnsServer.ts'
import { type Api, openApi } from '../support/http.ts'
import { installation } from '../support/installation.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import { refusal } from './refusal.ts'

type Domain = Static<typeof schemas.Domain>
type Verified = { domain_id: string; domain: string; status: string; message: string }

const dns = await startDns()
const dataDir = tempDir()
const env = {
  SVC_DNS_SERVERS: dns.address,
  SVC_DOMAINS_ZONE: 'svc.test',
  SVC_DOMAIN_CHECK_MS: '60000', // `verify` checks the records
}

/** An id of this time, milliseconds. */
const idAt = (time: number): string => {
  const digits = time.toString(16).padStart(12, '0')
  return `${digits.slice(0, 8)}-${digits.slice(8)}-7000-8000-000000000000`
}

/** Reserves a name as a node does that dies before it registers the domain. */
const reserved = async (domain: string, holder: string): Promise<void> => {
  openSecrets(readConfig(installation(dataDir, env))) // a log without secrets.json is refused
  const store = await openStore(readConfig(installation(dataDir, env)))
  const metadata = { env_id: 'other', correlation_id: 'c' }
  const event = { type: 'NameReserved', name: domain, holder } as const
  await store.append(streamOf.domainName(domain), [{ id: newId(), event, metadata }], 'none')
  await store.close()
}
await reserved('left.example.com', '01a10000-0000-7000-8000-000000000000')
await reserved('now.example.com', idAt(clock.now() + 600_000)) // so that it stays recent while other tests run

const server = await startServer({ dataDir, env })
const { api } = server
const operator = openApi(server.url, openSecrets(readConfig(installation(dataDir, env))).operatorToken)

/** An environment of a new organization. */
const tenant = async (plan: string, slug = `org-${newId().slice(-8)}`): Promise<Api> => {
  await operator.post(`${server.url}/operator/orgs`, { slug, plan })
  return environment(slug, 'dev')
}
const environment = async (slug: string, name: string): Promise<Api> => {
  const { env_id } = await operator.post<{ env_id: string }>(`${server.url}/operator/orgs/${slug}/envs`, {
    name,
  })
  const { token } = await operator.post<{ token: string }>(`${server.url}/operator/envs/${env_id}/api-keys`, {
    name: 'test',
  })
  return openApi(server.url, token)
}

let count = 0
const newName = () => `d${++count}.example.com`
const register = (domain = newName(), as = api) => as.post<Domain>('/domains', { domain })
const verify = ({ domain_id }: Domain, as = api) => as.post<Verified>(`/domains/${domain_id}/verify`)
const get = ({ domain_id }: Domain, as = api) => as.get<Domain>(`/domains/${domain_id}`)
const reached = (domain: Domain, status: string, as = api) =>
  until(async () => {
    const now = await get(domain, as)
    return now.status === status ? now : undefined
  })
/** Registers a domain and proves it. */
const prove = async (as = api, name = newName()): Promise<Domain> => {
  const domain = await register(name, as)
  dns.records.set(domain.validation_cname_name, domain.validation_cname_value)
  await verify(domain, as)
  return reached(domain, 'provisioning', as)
}
/** Registers a domain and creates the records that its owner would create. */
const activate = async (as = api): Promise<Domain> => {
  const domain = await prove(as)
  dns.records.set(domain.domain, domain.routing_domain ?? '')
  await verify(domain, as)
  return reached(domain, 'active', as)
}

const domains = suite('custom domains')

domains('are registered with 201, all fields of SPEC.md, pending_validation', async () => {
  const { status, json } = await api.send('POST', '/domains', { body: { domain: 'Hooks.Example.COM' } })
  const { domain_id, env_id, created_at, expires_at, ...rest } = (json as { data: Domain }).data
  assert.is(Date.parse(expires_at ?? '') - Date.parse(created_at), 7 * 24 * 3_600_000)
  assert.is(status, 201)
  assert.ok(isId(domain_id) && isId(env_id))
  assert.is(new Date(created_at).toISOString(), created_at)
  assert.equal(rest, {
    domain: 'hooks.example.com',
    status: 'pending_validation',
    validation_cname_name: '_acme-challenge.hooks.example.com',
    validation_cname_value: `${domain_id}.acme.svc.test`,
    routing_domain: null,
    certificate_expires_at: null,
    message: `Create the DNS record _acme-challenge.hooks.example.com CNAME ${domain_id}.acme.svc.test`,
  })
  assert.equal(await get({ domain_id } as Domain), (json as { data: Domain }).data)
})

domains('are listed newest first, without those of other environments', async () => {
  const made = [await register(), await register()].toReversed()
  const { data, pagination } = await api.page<Domain>('/domains?limit=2')
  assert.equal(data, made)
  assert.ok(pagination.total >= 3 && pagination.has_more)
  assert.equal((await (await tenant('scale')).page('/domains')).data, [])
})

for (const domain of [
  '',
  'localhost',
  '127.0.0.1',
  '[::1]',
  'a.com:80',
  'https://a.com',
  '*.a.com',
  'a_b.com',
  7,
]) {
  domains(`cannot be called ${JSON.stringify(domain)}`, async () => {
    const { status, code, message } = await api.refused('POST', '/domains', { domain })
    assert.equal([status, code], [400, 'bad_request'])
    assert.match(message, /^domain: /)
  })
}

domains('cannot be names of this service', async () => {
  for (const domain of ['svc.test', 'x.edge.svc.test'])
    assert.is((await api.refused('POST', '/domains', { domain })).code, 'bad_request')
})

domains('of the own environment are named by a refusal to register them again', async () => {
  const { domain_id } = await api.post<{ domain_id: string }>('/domains', { domain: 'again.example.com' })
  const { code, message } = await api.refused('POST', '/domains', { domain: 'again.example.com' })
  assert.equal(
    [code, message],
    [
      'domain_exists',
      `domain: again.example.com is registered in this environment already, with the domain_id ${domain_id}`,
    ],
  )
})

domains('of one name are registered once in all environments: 409 domain_exists', async () => {
  const { domain } = await register()
  for (const as of [api, await tenant('scale')]) {
    const { status, code } = await as.refused('POST', '/domains', { domain: domain.toUpperCase() })
    assert.equal([status, code], [409, 'domain_exists'])
  }
  const others = await Promise.all([tenant('scale'), tenant('scale'), tenant('scale')])
  const name = newName()
  const answers = await Promise.all(
    others.map((as) => as.send('POST', '/domains', { body: { domain: name } })),
  )
  assert.equal(answers.map(({ status }) => status).toSorted(), [201, 409, 409])
})

domains(
  'are registered under a name that a dead node reserved, but not while the node may be alive',
  async () => {
    assert.is((await register('left.example.com')).domain, 'left.example.com')
    assert.is((await api.refused('POST', '/domains', { domain: 'left.example.com' })).code, 'domain_exists')
    assert.is((await api.refused('POST', '/domains', { domain: 'now.example.com' })).code, 'domain_exists')
  },
)

for (const plan of ['free', 'starter']) {
  domains(`need a higher plan than ${plan}: 403 plan_required`, async () => {
    const as = await tenant(plan)
    const { domain } = await register()
    for (const name of [newName(), domain]) {
      const { status, code } = await as.refused('POST', '/domains', { domain: name })
      assert.equal([status, code], [403, 'plan_required'])
    }
  })
}

domains(
  'are limited to three on Pro over all environments, also at once: 403 domain_limit_reached',
  async () => {
    const slug = `pro-${newId().slice(-8)}`
    const envs = [await tenant('pro', slug), await environment(slug, 'prod')]
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, i) =>
        (envs[i % 2] as Api).send('POST', '/domains', { body: { domain: newName() } }),
      ),
    )
    assert.equal(answers.map(({ status }) => status).toSorted(), [201, 201, 201, 403, 403, 403, 403, 403])
    const refused = await (envs[0] as Api).refused('POST', '/domains', { domain: 'fourth.example.com' })
    assert.is(refused.code, 'domain_limit_reached')
    const [first] = (await (envs[0] as Api).page<Domain>('/domains')).data
    await (envs[0] as Api).remove(`/domains/${first?.domain_id}`)
    assert.is((await register('fourth.example.com', envs[0])).status, 'pending_validation')
  },
)

const keyed = (as: Api, domain: string, key: string) =>
  as.send('POST', '/domains', { body: { domain }, headers: { 'Idempotency-Key': key } })

domains('can be registered under the same Idempotency-Key when the plan is higher', async () => {
  const slug = `up-${newId().slice(-8)}`
  const as = await tenant('free', slug)
  const name = newName()
  assert.is(refusal(await keyed(as, name, 'up')).code, 'plan_required')
  await operator.patch(`${server.url}/operator/orgs/${slug}`, { plan: 'pro' })
  assert.is((await keyed(as, name, 'up')).status, 201)
})

domains('can be registered under the same Idempotency-Key when another is deleted', async () => {
  const as = await tenant('pro')
  const first = await register(newName(), as)
  for (let others = 0; others < 2; others++) await register(newName(), as)
  const name = newName()
  assert.is(refusal(await keyed(as, name, 'less')).code, 'domain_limit_reached')
  await as.remove(`/domains/${first.domain_id}`)
  assert.is((await keyed(as, name, 'less')).status, 201)
})

domains('without their record stay pending_validation; the message names the record', async () => {
  const domain = await register()
  const { domain_id, validation_cname_name: name, validation_cname_value: value } = domain
  const { message, ...rest } = await verify(domain)
  assert.equal(rest, { domain_id, domain: domain.domain, status: 'pending_validation' })
  assert.ok(message.includes(`${name} CNAME ${value}`), message)
  dns.records.set(name, 'someone.else.example')
  dns.records.set('someone.else.example', 'db.secret.example')
  const { message: found } = await verify(domain)
  assert.match(found, /someone\.else\.example/)
  assert.not.match(found, /secret/)
  assert.equal(await get(domain), domain)
})

domains('are proved without questions about private names', async () => {
  for (const target of ['db.internal', 'db.internal.corp', 'printer.local', 'single', 'x.localhost']) {
    const domain = await register()
    dns.records.set(domain.validation_cname_name, target)
    dns.records.set(target, domain.validation_cname_value)
    assert.is((await verify(domain)).status, 'pending_validation', target)
    assert.not(dns.asked.includes(target), target)
  }
  for (const domain of ['db.internal', 'x.corp', 'a.b.local'])
    assert.is((await api.refused('POST', '/domains', { domain })).code, 'bad_request')
})

domains('keep their status while DNS does not answer', async () => {
  const domain = await register()
  dns.mood = 'fails'
  const { status, message } = await verify(domain)
  dns.mood = 'answers'
  assert.is(status, 'pending_validation')
  assert.ok(message.includes(domain.validation_cname_name), message)
})

domains('are validated by the record, also through another record; routing_domain is set', async () => {
  const domain = await register()
  dns.records.set(domain.validation_cname_name, 'by.example.net')
  dns.records.set('by.example.net', domain.validation_cname_value)
  const { status, message } = await verify(domain)
  assert.is(status, 'validated')
  const { routing_domain } = await reached(domain, 'provisioning')
  assert.is(routing_domain, `${domain.domain_id}.edge.svc.test`)
  assert.ok(message.includes(`${domain.domain} CNAME ${routing_domain}`), message)
  assert.is((await verify(domain)).status, 'validated')
  assert.is((await get(domain)).status, 'provisioning')
})

domains('are not validated by records that form a circle', async () => {
  const domain = await register()
  dns.records.set(domain.validation_cname_name, 'x.example.net')
  dns.records.set('x.example.net', 'y.example.net')
  dns.records.set('y.example.net', 'x.example.net')
  assert.is((await verify(domain)).status, 'pending_validation')
})

domains('become active when they point to their routing domain', async () => {
  const domain = await activate()
  assert.equal([domain.status, (await verify(domain)).status], ['active', 'validated'])
})

const callBy = (host: string, path: string, method = 'POST') => callHost(server, host, path, method)

const replyBy = async (host: string, path: string, method: string): Promise<IncomingHttpHeaders> =>
  (await callBy(host, path, method)).headers

domains('that are active serve the webhooks of their environment', async () => {
  await deploy(api, 'hooks', {
    'h.js': `import { fn } from 'svc'
      export const hook = fn({ webhook: { service: 's', path: '/a/b', method: 'PUT' } }, (request) => ({
        status: 200,
        headers: { 'Set-Cookie': ['a=1'], 'Strict-Transport-Security': 'max-age=1', 'X-Accel-Redirect': '/x' },
        body: request['original-url'],
      }))`,
  })
  const { data } = await api.page<Webhook>('/projects/hooks/webhooks')
  const [, , token] = /\/webhook\/(local\/dev)\/s\/a\/b\/(\w+)$/.exec(data[0]?.url ?? '') ?? []
  const path = `/webhook/s/a/b/${token}`
  const pending = await register()
  assert.is((await callBy(pending.domain, path, 'PUT')).status, 404)
  const { domain, domain_id } = await activate()
  for (const host of [domain, domain.toUpperCase(), `${domain}:443`, `${domain}.`]) {
    const { status, text } = await callBy(host, path, 'PUT')
    assert.equal([status, text], [200, JSON.stringify(`http://${domain}${path}`)], host)
  }
  for (const other of [
    '/',
    '/ui',
    '/ui/runs',
    '/docs',
    '/openapi.json',
    '/status',
    '/v1/env',
    '/v1/sign-in',
    '/operator/orgs',
    '/operator/sign-in',
    '/webhook',
  ])
    assert.is((await callBy(domain, other, 'GET')).status, 404, other)
  assert.is((await callBy(domain, path)).status, 404) // another method
  assert.is((await callBy(domain, `${path}x`, 'PUT')).status, 404)
  assert.is((await callBy('unknown.example.com', path, 'PUT')).status, 404)
  assert.is((await callBy(new URL(server.url).host, `/webhook/local/dev/s/a/b/${token}`, 'PUT')).status, 200)
  const own = await replyBy(domain, path, 'PUT')
  assert.equal(
    [
      own['set-cookie'],
      own['strict-transport-security'],
      own['content-security-policy'],
      own['x-accel-redirect'],
    ],
    [['a=1'], 'max-age=1', undefined, undefined],
  )
  await api.remove(`/domains/${domain_id}`)
  await until(async () => (await callBy(domain, path, 'PUT')).status === 404)
})

/** The path at the service of a webhook of a new environment. */
const pathOfOther = async (): Promise<string> => {
  const other = await tenant('scale')
  await deploy(other, 'theirs', {
    'h.js': `import { fn } from 'svc'
      export const hook = fn({ webhook: { service: 's', path: '/a' } }, () => 'theirs')`,
  })
  const { data } = await other.page<Webhook>('/projects/theirs/webhooks')
  const { pathname } = new URL(data[0]?.url ?? '')
  assert.is((await callBy(new URL(server.url).host, pathname)).status, 200)
  return pathname
}

domains('that are proved but not active serve no webhook of another environment', async () => {
  const theirs = await pathOfOther()
  const { domain } = await prove()
  for (const host of [domain, `${domain.toUpperCase()}.`])
    assert.is((await callBy(host, theirs)).status, 404, host)
})

/** What a service would serve at the name of a domain that it does not know. */
const serves = async (name: string, path: string): Promise<readonly string[]> => {
  const replies = [await callBy(name, path)]
  for (const other of ['/ui', '/docs', '/status', '/v1/env', '/mcp', '/operator/orgs'])
    replies.push(await callBy(name, other, 'GET'))
  return replies.filter(({ status }) => status !== 404).map(({ text }) => text)
}
const isAsked = async (name: string): Promise<boolean> =>
  (await callBy('127.0.0.1', `/ask?domain=${name}`, 'GET')).status === 200

domains('of a deleted environment serve nothing, neither before nor after their removal', async () => {
  const theirs = await pathOfOther()
  const left = await tenant('scale')
  const { domain } = await activate(left)
  const { env_id } = await left.get<{ env_id: string }>('/env')
  await operator.remove(`${server.url}/operator/envs/${env_id}`)
  await until(async () => {
    assert.equal(await serves(domain, theirs), [])
    return !(await isAsked(domain))
  })
  assert.equal(await serves(domain, theirs), [])
})

domains('that are deleted serve nothing until their name is proved again', async () => {
  const theirs = await pathOfOther()
  const { domain, domain_id } = await activate()
  await api.remove(`/domains/${domain_id}`)
  await until(async () => (await api.send('GET', `/domains/${domain_id}`)).status === 404)
  assert.equal(await serves(domain, theirs), [])
  const again = await register(domain)
  assert.equal(await serves(domain, theirs), [])
  dns.records.set(again.validation_cname_name, again.validation_cname_value)
  dns.records.set(domain, `${again.domain_id}.edge.svc.test`)
  await verify(again)
  await reached(again, 'provisioning')
  await verify(again)
  await reached(again, 'active')
  assert.equal(await serves(domain, theirs), [])
  await deploy(api, 'again', {
    'h.js': `import { fn } from 'svc'
      export const hook = fn({ webhook: { service: 'again', path: '/a' } }, () => 'own')`,
  })
  const { data } = await api.page<Webhook>('/projects/again/webhooks')
  const own = new URL(data[0]?.url ?? '').pathname.replace('/local/dev/', '/')
  assert.is((await callBy(domain, own)).text, '"own"')
})

domains('that were never proved leave nothing at their name', async () => {
  const { domain, domain_id } = await register()
  await api.remove(`/domains/${domain_id}`)
  await until(async () => (await api.send('GET', `/domains/${domain_id}`)).status === 404)
  assert.is((await callBy(domain, '/status', 'GET')).status, 200)
})

domains('that are deleted disappear, and their name is available', async () => {
  for (const domain of [await register(), await activate()]) {
    const removed = await api.send('DELETE', `/domains/${domain.domain_id}`)
    assert.equal([removed.status, removed.text], [204, ''])
    await until(async () => (await api.send('GET', `/domains/${domain.domain_id}`)).status === 404)
    for (const [method, path] of [
      ['DELETE', ''],
      ['POST', '/verify'],
    ] as const) {
      assert.is((await api.refused(method, `/domains/${domain.domain_id}${path}`)).status, 404)
    }
    const again = await register(domain.domain, await tenant('scale'))
    assert.is.not(again.validation_cname_value, domain.validation_cname_value)
  }
})

domains('of another environment do not exist', async () => {
  const theirs = await register(newName(), await tenant('scale'))
  for (const id of [theirs.domain_id, newId()]) {
    for (const [method, path] of [
      ['GET', ''],
      ['DELETE', ''],
      ['POST', '/verify'],
    ] as const) {
      const { status, message } = await api.refused(method, `/domains/${id}${path}`)
      assert.equal([status, message], [404, `No domain ${id}`])
    }
  }
})

domains('are registered once under an Idempotency-Key', async () => {
  const sent = { body: { domain: newName() }, headers: { 'Idempotency-Key': 'd1' } }
  const [first, again] = [await api.send('POST', '/domains', sent), await api.send('POST', '/domains', sent)]
  assert.equal([first.status, again.text], [201, first.text])
})

domains.after(async () => {
  await server.stop()
  await dns.stop()
})
domains.run()
