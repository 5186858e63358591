import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import { parseToken } from '../../src/access/tokens.ts'
import { deploy, type Webhook } from '../support/build.ts'
import { addEnvironment, EVERYTHING, startServer } from '../support/server.ts'
import { openApi, type Api } from '../support/http.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import { as, isRefusedWith, newServiceKey, newSession, type ServiceKey } from './issuing.ts'

const dataDir = tempDir()
const [key, siblingKey, narrowKey] = await addEnvironment(dataDir, `t-${newId()}`, EVERYTHING, EVERYTHING, {
  'run:*': ['read'],
  'key:*': ['create', 'read'],
})
const server = await startServer({ dataDir })
const [api, sibling, narrow] = [key, siblingKey, narrowKey].map((one) => openApi(server.url, one ?? '')) as [
  Api,
  Api,
  Api,
]
await until(() => api.page('/projects'))
const READ = { 'run:*': ['read'] }

const keys = suite('service keys (SPEC.md, Service keys)')

keys('POST /service-keys: 201, service key including token', async () => {
  const body = { name: 'partner', description: 'who', permissions: READ, metadata: { a: 1 }, expires_in: 60 }
  const { status, json } = await api.send('POST', '/service-keys', { body })
  assert.is(status, 201)
  const { token, service_key_id, created_at, expires_at, ...made } = (json as { data: ServiceKey }).data
  assert.equal(made, {
    name: 'partner',
    description: 'who',
    permissions: READ,
    metadata: { a: 1 },
    revoked_at: null,
    last_used_at: null,
  })
  const { kind, id } = parseToken(token) ?? {}
  assert.equal([kind, id], ['service-key', service_key_id])
  assert.match(token, /^[0-9a-f-]{36}_[0-9A-Za-z]{49}$/)
  const lives = Date.parse(expires_at ?? '') - Date.parse(created_at) // it is created when a slow disk has stored it
  assert.ok(Math.abs(lives - 60_000) < 20_000, String(lives))
})

keys('never expire when expires_in is null or omitted', async () => {
  for (const more of [{}, { expires_in: null }])
    assert.is((await newServiceKey(api, READ, more)).expires_at, null)
})
for (const expires_in of ['60', 1e12])
  keys(`expire in a number of seconds, not ${JSON.stringify(expires_in)}`, async () => {
    await isRefusedWith(
      api,
      ['POST', '/service-keys', { permissions: READ, expires_in }],
      [400, 'bad_request'],
    )
  })

for (const type of ['mcp', 'webhook'])
  keys(`may be given ${type}`, async () => {
    assert.equal((await newServiceKey(api, { [`${type}:x`]: ['*'] })).permissions, { [`${type}:x`]: ['*'] })
  })
for (const type of ['project', '*'])
  keys(`may not be given ${type}`, async () => {
    const permissions = { 'run:*': ['read'], [`${type}:*`]: ['*'] }
    const told = await isRefusedWith(api, ['POST', '/service-keys', { permissions }], [400, 'bad_request'])
    assert.match(told, `"${type}:*"`)
  })

keys('with more permissions than the API key are 403 permission_escalation', async () => {
  const permissions = { 'run:*': ['read'], 'event:*': ['read'] }
  await isRefusedWith(narrow, ['POST', '/service-keys', { permissions }], [403, 'permission_escalation'])
  assert.ok((await newServiceKey(narrow, READ)).token)
})

keys('GET /service-keys: service keys of the calling API key, without token', async () => {
  await newServiceKey(api, READ)
  const { token: _, ...made } = await newServiceKey(sibling, READ, { metadata: 'text' })
  const { data, pagination } = await sibling.page<ServiceKey>('/service-keys')
  assert.equal([data, pagination.total], [[made], 1])
  assert.equal(await sibling.get(`/service-keys/${made.service_key_id}`), made)
})

keys('GET and DELETE of another API key’s, or another environment’s, are 404', async () => {
  const { service_key_id } = await newServiceKey(sibling, READ)
  for (const caller of [api, server.api])
    for (const method of ['GET', 'DELETE'])
      await isRefusedWith(caller, [method, `/service-keys/${service_key_id}`], [404, 'not_found'])
})

keys('DELETE /service-keys/{service_key_id}: 204; refused at once, and visible for audit', async () => {
  const made = await newServiceKey(api, READ)
  assert.is((await as(api, made).send('GET', '/runs')).status, 200)
  assert.is((await api.send('DELETE', `/service-keys/${made.service_key_id}`)).status, 204)
  await isRefusedWith(as(api, made), ['GET', '/runs'], [401, 'unauthorized'])
  const { revoked_at } = await api.get<ServiceKey>(`/service-keys/${made.service_key_id}`)
  assert.ok(Date.parse(revoked_at ?? '') >= Date.parse(made.created_at))
  assert.ok(
    (await api.page<ServiceKey>('/service-keys?limit=100')).data.some(
      (one) => one.service_key_id === made.service_key_id,
    ),
  )
  assert.is((await api.send('DELETE', `/service-keys/${made.service_key_id}`)).status, 204)
})

keys('that have expired are refused, and visible', async () => {
  const made = await newServiceKey(api, READ, { expires_in: 10 })
  assert.is((await as(api, made).send('GET', '/runs')).status, 200)
  await until(async () => (await as(api, made).send('GET', '/runs')).status === 401)
  const { expires_at, revoked_at } = await api.get<ServiceKey>(`/service-keys/${made.service_key_id}`)
  assert.equal([expires_at, revoked_at], [made.expires_at, null])
})

keys('DELETE /service-keys: {revoked_count}', async () => {
  await sibling.send('DELETE', '/service-keys')
  const made = await Promise.all([1, 2].map(() => newServiceKey(sibling, READ)))
  const { json } = await sibling.send('DELETE', '/service-keys')
  assert.equal((json as { data: unknown }).data, { revoked_count: 2 })
  for (const one of made) await isRefusedWith(as(api, one), ['GET', '/runs'], [401, 'unauthorized'])
})

keys('report when they were last used', async () => {
  const made = await newServiceKey(api, READ)
  assert.is((await as(api, made).send('GET', '/runs')).status, 200)
  const used = await until(
    async () => (await api.get<ServiceKey>(`/service-keys/${made.service_key_id}`)).last_used_at,
  )
  assert.ok(Date.parse(used) >= Date.parse(made.created_at))
})

keys('keep their metadata as ciphertext (I6)', async () => {
  const secret = `secret-${newId()}`
  await newServiceKey(api, READ, { metadata: { secret }, name: `name-${secret.slice(-12)}` })
  const files = readdirSync(server.dataDir, { recursive: true, withFileTypes: true }).filter((file) =>
    file.isFile(),
  )
  const holding = (text: string) =>
    files.filter((file) => readFileSync(join(file.parentPath, file.name)).includes(text)).length
  if (process.env['SVC_TEST_ENGINES'] !== 'real')
    // otherwise the log is stored elsewhere
    assert.ok(holding(`name-${secret.slice(-12)}`) > 0)
  assert.is(holding(secret), 0)
  assert.not.ok(server.output.some((line) => line.includes(secret)))
})

keys('and sessions can call webhooks with auth, which receive the kind of caller', async () => {
  const code = `import { fn } from 'svc'\nexport const hook = fn({ webhook: { service: 'bank', path: '/paid', auth: 'required' } }, ({ auth }) => auth)`
  await deploy(api, 'shop', { 'h.js': code })
  const { url } = (await api.page<Webhook>('/projects/shop/webhooks')).data[0] as Webhook
  const call = async (token: string) => (await openApi(server.url, token).send('POST', url)).json
  const may = { 'webhook:bank': ['execute'] }
  assert.equal(await call(api.key), { type: 'api-key' })
  assert.equal(await call((await newSession(api, may, { metadata: 7 })).token), { type: 'session' })
  const made = await newServiceKey(api, may, { metadata: { partner: 'ü', n: 1 } })
  assert.equal(await call(made.token), { type: 'service-key', metadata: { partner: 'ü', n: 1 } })
  assert.equal(await call((await newServiceKey(api, { 'webhook:*': ['*'] })).token), {
    type: 'service-key',
    metadata: null,
  })
  const other = await newServiceKey(api, { 'webhook:other': ['execute'] })
  assert.is((await as(api, other).send('POST', url)).status, 403)
  await api.remove(`/service-keys/${made.service_key_id}`)
  assert.is((await as(api, made).send('POST', url)).status, 401)
})

keys.after(() => server.stop())
keys.run()
