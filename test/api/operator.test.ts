import * as assert from 'uvu/assert'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig } from '../../src/process/config.ts'
import { newId } from '../../src/ids.ts'
import { type Api, openApi } from '../support/http.ts'
import { installation } from '../support/installation.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { newServiceKey, newSession } from './issuing.ts'
import { isRefused, refusal } from './refusal.ts'

interface Org {
  org_id: string
  slug: string
  name: string
  plan: string
  team_members: number
}
interface Env {
  env_id: string
  org_id: string
  name: string
  active: boolean
}
interface Key {
  api_key_id: string
  env_id: string
  name: string
  enabled: boolean
  access: string
  permissions: Record<string, string[]>
  expires_at: string | null
  token?: string
  former?: Key
}

const server = await startServer()
const { operatorToken } = openSecrets(readConfig(installation(server.dataDir)))
const operator = openApi(server.url, operatorToken)
const at = (path: string) => `${server.url}/operator${path}`
const as = (key: Key): Api => openApi(server.url, key.token ?? '')

const asked = async <T>(method: string, path: string, body: unknown, status: number): Promise<T> => {
  const answer = await operator.send(method, at(path), { body })
  assert.is(answer.status, status, `${method} ${path}: ${answer.text}`)
  return (answer.json as { data: T }).data
}
const get = <T>(path: string) => asked<T>('GET', path, undefined, 200)
const post = <T>(path: string, body: unknown) => asked<T>('POST', path, body, 201)
const patch = <T>(path: string, body: unknown) => asked<T>('PATCH', path, body, 200)
const names = new Set<string>()
/** A slug that no other user of a shared installation has. */
const slug = (): string => {
  const made = `o-${newId().slice(-12)}`
  names.add(made)
  return made
}
const newEnv = async (): Promise<Env> => {
  const { slug: of } = await post<Org>('/orgs', { slug: slug(), plan: 'free' })
  return post<Env>(`/orgs/${of}/envs`, { name: 'dev' })
}
const newKey = async (permissions?: Record<string, string[]>): Promise<Key> =>
  post<Key>(`/envs/${(await newEnv()).env_id}/api-keys`, { name: 'k', ...(permissions && { permissions }) })

const orgs = suite('organizations')

orgs('are created, with each plan', async () => {
  for (const plan of ['free', 'starter', 'pro', 'scale', 'self_host']) {
    const of = slug()
    const { org_id, ...org } = await post<Org>('/orgs', { slug: of, name: 'Acme', plan })
    assert.match(org_id, /^[0-9a-f-]{36}$/)
    assert.equal(
      { ...org, created_at: '' },
      { slug: of, name: 'Acme', plan, team_members: 1, created_at: '' },
    )
  }
})

orgs('have one slug each: 409 for every other simultaneous request', async () => {
  const of = slug()
  const answers = await Promise.all(
    Array.from({ length: 10 }, () =>
      operator.send('POST', at('/orgs'), { body: { slug: of, plan: 'free' } }),
    ),
  )
  assert.equal(answers.map(({ status }) => status).sort(), [201, ...Array.from({ length: 9 }, () => 409)])
  assert.is(
    refusal(await operator.send('POST', at('/orgs'), { body: { slug: 'local', plan: 'pro' } })).code,
    'conflict',
  )
})

for (const bad of ['A', 7]) {
  orgs(`have a slug like a DNS label, not ${JSON.stringify(bad)}`, async () =>
    isRefused(await operator.send('POST', at('/orgs'), { body: { slug: bad, plan: 'pro' } }), /^slug: /),
  )
}
orgs('have a plan that exists', async () =>
  isRefused(
    await operator.send('POST', at('/orgs'), { body: { slug: slug(), plan: 'gold' } }),
    /^plan: .*self_host/,
  ),
)

orgs('are listed, newest first', async () => {
  const [first, second] = [slug(), slug()]
  await post('/orgs', { slug: first, plan: 'pro' })
  await post('/orgs', { slug: second, plan: 'pro' })
  const { json } = await operator.send('GET', at('/orgs?limit=100'))
  const slugs = (json as { data: Org[] }).data.map((org) => org.slug).filter((one) => names.has(one))
  assert.equal(slugs.slice(0, 2), [second, first])
})

orgs('change plan, name and team, by slug or id', async () => {
  const { org_id, slug: of } = await post<Org>('/orgs', { slug: slug(), plan: 'free' })
  assert.is((await patch<Org>(`/orgs/${of}`, { plan: 'scale' })).plan, 'scale')
  const changed = await patch<Org>(`/orgs/${org_id}`, { name: 'New', team_members: 7 })
  assert.equal([changed.plan, changed.name, changed.team_members], ['scale', 'New', 7])
  assert.is(
    refusal(await operator.send('PATCH', at(`/orgs/${slug()}`), { body: { name: 'New' } })).code,
    'not_found',
  )
  isRefused(
    await operator.send('PATCH', at(`/orgs/${of}`), { body: { team_members: -1 } }),
    /^team_members: /,
  )
})
orgs.run()

const envs = suite('environments')
envs('are created and listed, each name once in its organization', async () => {
  const { org_id, slug: of } = await post<Org>('/orgs', { slug: slug(), plan: 'pro' })
  const env = await post<Env>(`/orgs/${of}/envs`, { name: 'prod' })
  assert.equal([env.org_id, env.name, env.active], [org_id, 'prod', true])
  const again = await operator.send('POST', at(`/orgs/${of}/envs`), { body: { name: 'prod' } })
  assert.equal([refusal(again).status, refusal(again).code], [409, 'conflict'])
  const stage = await post<Env>(`/orgs/${of}/envs`, { name: 'stage' })
  const { json } = await operator.send('GET', at(`/orgs/${of}/envs`))
  assert.equal((json as { data: Env[] }).data, [stage, env])
  isRefused(await operator.send('POST', at(`/orgs/${of}/envs`), { body: { name: 'a b' } }), /^name: /)
  const elsewhere = await operator.send('POST', at(`/orgs/${newId()}/envs`), { body: { name: 'prod' } })
  assert.is(refusal(elsewhere).code, 'not_found')
})
envs('and organizations are read one by one', async () => {
  const env = await newEnv()
  assert.equal(await get<Env>(`/envs/${env.env_id}`), env)
  const org = await get<Org>(`/orgs/${env.org_id}`)
  assert.equal(await get<Org>(`/orgs/${org.slug}`), org)
  for (const path of [`/orgs/${newId()}`, `/envs/${newId()}`, '/envs/x'])
    assert.is(refusal(await operator.send('GET', at(path))).code, 'not_found')
})
envs.run()

const node = suite('the node that answers')
node('reports its state and its engines', async () => {
  const status = await get<Record<string, unknown>>('/status')
  assert.equal([status['ready'], status['reason'], status['skipped_facts']], [true, null, 0])
  const engines = status['engines'] as { engine: string; kind: string; answers: boolean }[]
  assert.equal(
    engines.slice(0, 3).map(({ engine, answers }) => [engine, answers]),
    [
      ['event store', true],
      ['read models', true],
      ['blobs', true],
    ],
  )
})
node('checks itself, and prints no secret of its engines', async () => {
  const checks = await get<{ name: string; state: string; detail: string }[]>('/checks')
  const engines = ['event store', 'read models', 'blobs']
  assert.equal(
    checks.filter(({ name }) => engines.includes(name)).map(({ state }) => state),
    ['ok', 'ok', 'ok'],
  )
  assert.not.match(JSON.stringify(checks), /:\/\/[^/" ]*@/)
})
node.run()

const keys = suite('API keys')
keys('are Full by default, and their token is returned once', async () => {
  const key = await newKey()
  assert.match(key.token ?? '', new RegExp(`^svc_${key.api_key_id}_[0-9A-Za-z]{49}$`))
  assert.equal([key.enabled, key.access, key.permissions], [true, 'full', { '*:*': ['*'] }])
  assert.is((await as(key).get<Env>('/env')).env_id, key.env_id)
  const { json, text } = await operator.send('GET', at(`/envs/${key.env_id}/api-keys`))
  assert.equal(
    (json as { data: Key[] }).data.map(({ api_key_id }) => api_key_id),
    [key.api_key_id],
  )
  assert.not.match(text, /token|mac|svc_/)
})

keys('are Restricted when created with permissions', async () => {
  const key = await newKey({ 'project:*': ['read'] })
  assert.is(key.access, 'restricted')
  assert.is((await as(key).page('/projects')).pagination.total, 0)
  assert.is((await as(key).refused('GET', '/env')).status, 403)
})

keys('are disabled and enabled from the next request on', async () => {
  const key = await newKey()
  for (const [enabled, status] of [
    [false, 401],
    [true, 200],
    [false, 401],
  ] as const) {
    assert.is((await patch<Key>(`/api-keys/${key.api_key_id}`, { enabled })).enabled, enabled)
    assert.is((await as(key).send('GET', '/env')).status, status)
  }
})

keys('change their permissions from the next request on', async () => {
  const key = await newKey()
  assert.is((await as(key).send('GET', '/projects')).status, 200)
  const changed = await patch<Key>(`/api-keys/${key.api_key_id}`, {
    permissions: { 'env:*': ['read'] },
    name: 'narrow',
  })
  assert.equal([changed.name, changed.access], ['narrow', 'restricted'])
  assert.is((await as(key).send('GET', '/projects')).status, 403)
  assert.is((await as(key).send('GET', '/env')).status, 200)
})

keys('do not exist once they are deleted', async () => {
  const key = await newKey()
  assert.is((await as(key).send('GET', '/env')).status, 200)
  assert.is((await operator.send('DELETE', at(`/api-keys/${key.api_key_id}`))).status, 204)
  assert.is((await as(key).send('GET', '/env')).status, 401)
  for (const method of ['PATCH', 'DELETE'] as const) {
    const gone = await operator.send(method, at(`/api-keys/${key.api_key_id}`), {
      ...(method === 'PATCH' && { body: { enabled: true } }),
    })
    assert.is(refusal(gone).code, 'not_found')
  }
})

keys('are read one by one, without their tokens', async () => {
  const { token: _, ...key } = await newKey()
  assert.equal(await get<Key>(`/api-keys/${key.api_key_id}`), key)
  const gone = await operator.send('GET', at(`/api-keys/${newId()}`))
  assert.is(refusal(gone).code, 'not_found')
})

keys('expire, with the sessions that they issued, unless the expiry is taken back', async () => {
  const key = await newKey()
  assert.is(key.expires_at, null)
  const session = openApi(server.url, (await newSession(as(key), { 'env:*': ['read'] })).token)
  const statuses = async () => [
    (await as(key).send('GET', '/env')).status,
    (await session.send('GET', '/env')).status,
  ]
  assert.equal(await statuses(), [200, 200])
  const change = (body: object) => patch<Key>(`/api-keys/${key.api_key_id}`, body)
  assert.type((await change({ expires_in: 3600 })).expires_at, 'string')
  assert.equal(await statuses(), [200, 200])
  await change({ expires_in: 1 })
  // A request with the ended key counts as a guess, so nothing is asked twice.
  await until(async () => (await session.send('GET', '/env')).status === 401, { everyMs: 250 })
  assert.equal(await statuses(), [401, 401])
  assert.is((await change({ expires_in: null })).expires_at, null)
  assert.equal(await statuses(), [200, 200])
})

keys('are replaced by a key with the same rights; the former one expires at once', async () => {
  const former = await newKey({ 'env:*': ['read'] })
  const next = await post<Key>(`/api-keys/${former.api_key_id}/rotate`, {})
  assert.equal(
    [next.env_id, next.name, next.permissions, next.expires_at],
    [former.env_id, former.name, former.permissions, null],
  )
  assert.is(next.former?.api_key_id, former.api_key_id)
  assert.is((await as(next).send('GET', '/env')).status, 200)
  assert.is((await as(former).send('GET', '/env')).status, 401)
  const again = await operator.send('POST', at(`/api-keys/${former.api_key_id}/rotate`), { body: {} })
  assert.equal([refusal(again).status, refusal(again).code], [409, 'conflict'])
})

keys('are both valid during the overlap of a rotation', async () => {
  const former = await newKey()
  const next = await post<Key>(`/api-keys/${former.api_key_id}/rotate`, { overlap_s: 600 })
  for (const key of [former, next]) assert.is((await as(key).send('GET', '/env')).status, 200)
  const left = Date.parse(next.former?.expires_at ?? '') - Date.now()
  assert.ok(left > 0 && left <= 600_000, String(left))
})

keys('keep what they issued during the overlap of a rotation, and end it with themselves', async () => {
  const former = await newKey()
  const issued = [
    await newSession(as(former), { 'run:*': ['read'] }),
    await newServiceKey(as(former), { 'run:*': ['read'] }),
  ].map(({ token }) => openApi(server.url, token))
  const statuses = () => Promise.all(issued.map(async (each) => (await each.send('GET', '/runs')).status))
  const next = await post<Key>(`/api-keys/${former.api_key_id}/rotate`, { overlap_s: 600 })
  assert.equal(await statuses(), [200, 200])
  await post<Key>(`/api-keys/${former.api_key_id}/rotate`, {})
  assert.equal(await statuses(), [401, 401])
  assert.equal((await as(next).page('/sessions')).data, [], 'the new key has none')
})

keys('that are disabled or deleted end what they issued', async () => {
  const key = await newKey()
  const issued = [
    await newSession(as(key), { 'run:*': ['read'] }),
    await newServiceKey(as(key), { 'run:*': ['read'] }),
  ].map(({ token }) => openApi(server.url, token))
  const statuses = () => Promise.all(issued.map(async (each) => (await each.send('GET', '/runs')).status))
  await patch(`/api-keys/${key.api_key_id}`, { enabled: false })
  assert.equal(await statuses(), [401, 401])
  await patch(`/api-keys/${key.api_key_id}`, { enabled: true })
  assert.equal(await statuses(), [200, 200])
  await operator.send('DELETE', at(`/api-keys/${key.api_key_id}`))
  assert.equal(await statuses(), [401, 401])
})

keys('that expire soon do not live longer because they are replaced', async () => {
  const former = await newKey()
  const { expires_at } = await patch<Key>(`/api-keys/${former.api_key_id}`, { expires_in: 300 })
  const next = await post<Key>(`/api-keys/${former.api_key_id}/rotate`, { overlap_s: 600 })
  assert.is(next.former?.expires_at, expires_at)
})

for (const overlap_s of [-1, 1.5, 31_536_001, '60'])
  keys(`are not replaced with an overlap of ${JSON.stringify(overlap_s)}`, async () => {
    const { api_key_id } = await newKey()
    const answer = await operator.send('POST', at(`/api-keys/${api_key_id}/rotate`), { body: { overlap_s } })
    isRefused(answer, /^overlap_s: /)
  })

keys('that are disabled or missing are not replaced', async () => {
  const key = await newKey()
  await patch(`/api-keys/${key.api_key_id}`, { enabled: false })
  const rotate = (id: string) => operator.send('POST', at(`/api-keys/${id}/rotate`), { body: {} })
  assert.is(refusal(await rotate(key.api_key_id)).code, 'conflict')
  assert.is(refusal(await rotate(newId())).code, 'not_found')
})

keys('are for an environment that exists, with permissions that are valid', async () => {
  const none = await operator.send('POST', at(`/envs/${newId()}/api-keys`), { body: { name: 'k' } })
  assert.is(refusal(none).code, 'not_found')
  const { env_id, api_key_id } = await newKey()
  const body = { name: 'k', permissions: { 'mcp:*': ['create'] } }
  const message = /^Action not valid for resource: "mcp:\*"/
  isRefused(await operator.send('POST', at(`/envs/${env_id}/api-keys`), { body }), message)
  isRefused(await operator.send('PATCH', at(`/api-keys/${api_key_id}`), { body }), message)
})
keys.run()

const access = suite('the operator API')
for (const [who, authorization] of Object.entries({
  nobody: undefined,
  'an API key that may do everything': `Bearer ${server.api.key}`,
  'another token': `Bearer ${operatorToken}x`,
  'a shorter token': `Bearer ${operatorToken.slice(0, -1)}`,
  'another scheme': `Basic ${operatorToken}`,
})) {
  access(`is not for ${who}`, async () => {
    for (const [method, path] of [
      ['GET', '/orgs'],
      ['POST', '/orgs'],
      ['PATCH', `/orgs/${newId()}`],
      ['GET', `/orgs/${newId()}/envs`],
      ['POST', `/orgs/${newId()}/envs`],
      ['GET', `/envs/${newId()}/api-keys`],
      ['POST', `/envs/${newId()}/api-keys`],
      ['PATCH', `/api-keys/${newId()}`],
      ['DELETE', `/api-keys/${newId()}`],
      ['GET', `/orgs/${newId()}`],
      ['GET', `/envs/${newId()}`],
      ['GET', `/api-keys/${newId()}`],
      ['POST', `/api-keys/${newId()}/rotate`],
      ['GET', '/status'],
      ['GET', '/checks'],
    ] as const) {
      const response = await fetch(at(path), { method, headers: authorization ? { authorization } : {} })
      const { error } = (await response.json()) as { error: { code: string } }
      assert.equal([response.status, error.code], [401, 'unauthorized'], `${method} ${path}`)
      assert.is(response.headers.get('www-authenticate'), 'Bearer')
    }
  })
}
access('is not under /v1', async () => {
  assert.is((await server.api.send('GET', '/operator/orgs')).status, 404)
})
access('does not accept the operator as a user', async () => {
  assert.is((await operator.send('GET', '/env')).status, 401)
})
access.after(() => server.stop())
access.run()
