import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import type { Permissions } from '../../src/events/org.ts'
import { deploy, formOf, type Project, publish, type Run, type Webhook } from '../support/build.ts'
import { type Api, openApi } from '../support/http.ts'
import { addEnvironment, EVERYTHING, startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { zipBuild } from '../support/zipBuild.ts'
import { follow } from './sse.ts'

const maps = {
  nothing: { 'mcp:*': ['execute'] },
  readsProjects: { 'project:*': ['read'] },
  readsShop: { 'project:shop': ['read'] },
  makesProjects: { 'project:*': ['create'] },
  buildsShop: { 'build:shop': ['*'] },
  publishesOrders: { 'event:order:created': ['create'] },
  reads: { 'event:*': ['read'], 'run:*': ['read'] },
  follows: { 'stream:*': ['read'] },
  followsAndPublishes: { 'stream:*': ['read'], 'event:*': ['create'] },
  env: { 'env:*': ['read'] },
  callsBank: { 'webhook:bank': ['execute'] },
  callsOther: { 'webhook:other': ['execute'] },
} as const satisfies Record<string, Record<string, readonly string[]>>

const dataDir = tempDir()
const names = Object.keys(maps) as (keyof typeof maps)[]
const keys = await addEnvironment(
  dataDir,
  'team',
  EVERYTHING,
  ...names.map((name) => maps[name] as unknown as Permissions),
)
const server = await startServer({ dataDir })
const [full, ...limited] = keys.map((key) => openApi(server.url, key)) as [Api, ...Api[]]
const as = (name: keyof typeof maps): Api => limited[names.indexOf(name)] as Api

await deploy(full, 'shop', {
  'h.js': `import { fn } from 'svc'\nexport const hook = fn({ webhook: { service: 'bank', path: '/paid', auth: 'required' } }, ({ auth }) => auth)`,
})
await full.post('/projects', { name: 'other' })
const { project_id } = await full.get<Project>('/projects/shop')
const { event_id, stream_id } = await publish(full, 'nobody')
const { url } = (await full.page<Webhook>('/projects/shop/webhooks')).data[0] as Webhook

/** Every endpoint that needs a permission, on something that exists. */
const endpoints: [method: string, path: string, body?: unknown][] = [
  ['GET', '/projects'],
  ['POST', '/projects', { name: 'x' }],
  ['GET', '/projects/shop'],
  ['PATCH', '/projects/shop', { name: 'x' }],
  ['DELETE', '/projects/shop'],
  ['GET', '/builds'],
  ['GET', '/projects/shop/builds'],
  ['GET', '/projects/shop/builds/deployed'],
  ['GET', '/projects/shop/builds/live'],
  ['POST', '/projects/shop/builds'],
  ['GET', `/projects/shop/builds/${newId()}`],
  ['GET', `/projects/shop/builds/${newId()}/download`],
  ['POST', `/projects/shop/builds/${newId()}/deploy`],
  ['GET', '/projects/shop/event-handlers'],
  ['GET', '/projects/shop/schedules'],
  ['POST', `/projects/shop/schedules/${newId()}/pause`],
  ['POST', `/projects/shop/schedules/${newId()}/resume`],
  ['POST', `/projects/shop/schedules/${newId()}/run`],
  ['GET', '/projects/shop/webhooks'],
  ['GET', '/projects/shop/context'],
  ['POST', '/projects/shop/context', { key: 'KEY', value: 'x' }],
  ['PUT', '/projects/shop/context/KEY', { value: 'x' }],
  ['DELETE', '/projects/shop/context/KEY'],
  ['POST', '/projects/shop/eval', { code: '1' }],
  ['POST', '/events', { type: 'x' }],
  ['GET', '/events'],
  ['GET', `/events/${event_id}`],
  ['GET', `/events/${event_id}/runs`],
  ['GET', '/runs'],
  ['GET', '/runs/stats'],
  ['GET', `/runs/${newId()}`],
  ['GET', `/runs/${newId()}/logs`],
  ['GET', `/streams/${stream_id}/subscribe`],
  ['POST', '/streams/subscribe-with-event', { type: 'x', data: null }],
  ['GET', '/files'],
  ['PUT', '/files/upload/a', 'x'],
  ['GET', `/files/${newId()}`],
  ['GET', `/files/${newId()}/download`],
  ['DELETE', `/files/${newId()}`],
  ['POST', '/files/uploads', { path: 'a' }],
  ['GET', `/files/uploads/${newId()}`],
  ['PUT', `/files/uploads/${newId()}/1`, 'x'],
  ['POST', `/files/uploads/${newId()}/complete`],
  ['DELETE', `/files/uploads/${newId()}`],
  ['GET', '/domains'],
  ['POST', '/domains', { domain: 'a.example.com' }],
  ['GET', `/domains/${newId()}`],
  ['POST', `/domains/${newId()}/verify`],
  ['DELETE', `/domains/${newId()}`],
  ['GET', '/env'],
  ['POST', '/sessions', { permissions: {} }],
  ['GET', '/sessions'],
  ['DELETE', `/sessions/${newId()}`],
  ['DELETE', '/sessions'],
  ['POST', '/service-keys', { permissions: {} }],
  ['GET', '/service-keys'],
  ['GET', `/service-keys/${newId()}`],
  ['DELETE', `/service-keys/${newId()}`],
  ['DELETE', '/service-keys'],
  ['GET', '/env/subscribe'],
]

const permissions = suite('permissions')

for (const [method, path, body] of endpoints) {
  permissions(`are needed for ${method} ${path.replace(/[0-9a-f-]{36}/, '{id}')}`, async () => {
    const { status, code, message } = await as('nothing').refused(method, path, body)
    assert.equal([status, code], [403, 'forbidden'])
    assert.match(message, /lacks the permission \w+:\S+ \w+/)
  })
}

permissions('of one action do not give another', async () => {
  const reader = as('readsProjects')
  assert.is((await reader.page('/projects')).pagination.total, 2)
  for (const [method, body] of [['PATCH', { name: 'x' }], ['DELETE']] as const) {
    assert.is((await reader.refused(method, '/projects/shop', body)).code, 'forbidden')
  }
  assert.is((await reader.refused('POST', '/projects', { name: 'x' })).code, 'forbidden')
  const maker = as('makesProjects')
  assert.is((await maker.post<Project>('/projects', { name: 'made' })).name, 'made')
  assert.is((await maker.refused('GET', '/projects/made')).code, 'forbidden')
})

permissions('on one project reach it by name and id, and nothing else', async () => {
  const reader = as('readsShop')
  for (const project of ['shop', project_id])
    assert.is((await reader.get<Project>(`/projects/${project}`)).name, 'shop')
  assert.is((await reader.refused('GET', '/projects/other')).code, 'forbidden')
  assert.is((await reader.refused('GET', '/projects/none')).code, 'forbidden')
  assert.is((await reader.refused('GET', '/projects')).code, 'forbidden')

  const builder = as('buildsShop')
  const form = async () => formOf(await zipBuild({ 'a.js': 'export const a = () => 1' }))
  assert.is((await builder.send('POST', '/projects/shop/builds', { body: await form() })).status, 201)
  assert.is((await builder.refused('POST', '/projects/other/builds', await form())).code, 'forbidden')
  assert.is((await builder.post<Run>('/projects/shop/eval', { code: '1' })).result, 1)
})

permissions('on one event type let only that be published', async () => {
  const publisher = as('publishesOrders')
  assert.is((await publish(publisher, 'order:created')).event_type, 'order:created')
  for (const body of [
    { type: 'order' },
    { type: 'order:created:x' },
    { event_type: 'x', type: 'order:created' },
    { type: 'svc:call', data: { fn: 'h/hook' } },
  ]) {
    assert.is((await publisher.refused('POST', '/events', body)).code, 'forbidden')
  }
})

permissions('to read runs and events are no permission to publish', async () => {
  assert.is((await as('reads').get<{ event_id: string }>(`/events/${event_id}`)).event_id, event_id)
  assert.is((await as('reads').page('/runs')).pagination.limit, 20)
  assert.is((await as('reads').refused('POST', '/events', { type: 'x' })).code, 'forbidden')
})

permissions('for subscribe-with-event are both read and publish', async () => {
  const body = { type: 'x', data: null }
  assert.is((await as('follows').refused('POST', '/streams/subscribe-with-event', body)).code, 'forbidden')
  const follower = await follow(as('followsAndPublishes'), '/streams/subscribe-with-event', {
    method: 'POST',
    body,
  })
  assert.is((await follower.next()).event, 'event:published')
  follower.close()
})

permissions('for the environment are their own', async () => {
  assert.is((await as('env').get<{ name: string }>('/env')).name, 'dev')
  assert.is((await as('env').refused('GET', '/projects')).code, 'forbidden')
})

permissions('to execute are needed for a webhook with auth', async () => {
  const call = (api: Api) => api.send('POST', url)
  assert.equal((await call(full)).json, { type: 'api-key' })
  assert.equal((await call(as('callsBank'))).json, { type: 'api-key' })
  assert.equal([(await call(as('callsOther'))).status, (await call(as('nothing'))).status], [403, 403])
  assert.is((await fetch(url, { method: 'POST' })).status, 401)
  assert.is((await full.send('POST', `${url}x`)).status, 404) // the token is checked first
  const { status, json } = await call(server.api) // of another environment
  assert.equal([status, (json as { error: { code: string } }).error.code], [404, 'not_found'])
})

permissions.after(() => server.stop())
permissions.run()
