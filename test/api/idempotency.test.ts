import * as assert from 'uvu/assert'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig } from '../../src/process/config.ts'
import { allRoutes } from '../../src/api/routes/index.ts'
import {
  type Build,
  deploy,
  type Event,
  formOf,
  handled,
  type Project,
  type Run,
  upload,
} from '../support/build.ts'
import { type Answer, openApi } from '../support/http.ts'
import { installation } from '../support/installation.ts'
import { addEnvironment, EVERYTHING, startServer, type TestServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { zipBuild } from '../support/zipBuild.ts'
import { refusal } from './refusal.ts'

const FUNCTIONS = {
  'f.js': `import { fn } from 'svc'
    export const on = fn({ 'on-event': 'asked' }, ({ data }) => data)
    export const hook = fn({ webhook: { service: 's', path: '/hook' } }, ({ headers }) => headers['idempotency-key'] + Math.random())`,
}

const dataDir = tempDir()
const [otherKey = '', readerKey = ''] = await addEnvironment(dataDir, 'other', EVERYTHING, {
  'project:*': ['read'],
})
let server: TestServer = await startServer({ dataDir })
await deploy(server.api, 'shop', FUNCTIONS)

const readOperatorToken = (dir: string): string => openSecrets(readConfig(installation(dir))).operatorToken

const post = (path: string, body: unknown, key: string, api = server.api): Promise<Answer> =>
  api.send('POST', path, { body, headers: { 'Idempotency-Key': key } })
const isReplay = (answer: Answer): boolean => answer.headers.get('idempotency-replayed') === 'true'
const dataOf = <T>({ json }: Answer): T => (json as { data: T }).data
const count = async (path: string): Promise<number> => (await server.api.page(path)).pagination.total

const keyed = suite('POST with an Idempotency-Key')

keyed('is carried out once, and a repeat returns the identical first answer', async () => {
  const first = await post('/projects', { name: 'once' }, 'p1')
  assert.equal([first.status, isReplay(first)], [201, false])
  const again = await post('/projects', { name: 'once' }, 'p1')
  assert.equal([again.status, isReplay(again), again.text], [201, true, first.text])
  assert.match(again.headers.get('content-type') ?? '', /^application\/json/)
  assert.is.not(again.headers.get('x-request-id'), first.headers.get('x-request-id'))
})

keyed('is refused with a different body: 409', async () => {
  await post('/projects', { name: 'mine' }, 'p2')
  const { status, code } = refusal(await post('/projects', { name: 'other' }, 'p2'))
  assert.equal([status, code], [409, 'idempotency_key_reused'])
  assert.is((await server.api.refused('GET', '/projects/other')).status, 404)
})

keyed('may be formatted differently with the same meaning', async () => {
  await post('/projects', '{"name":"spaces"}', 'p3')
  assert.ok(isReplay(await post('/projects', '{ "name": "spaces" }\n', 'p3')))
})

keyed('may have its fields in another order', async () => {
  const first = await post('/events', '{"event_type":"order","event_data":{"a":1,"b":2}}', 'e3')
  const again = await post('/events', '{"event_data":{"b":2,"a":1},"event_type":"order"}', 'e3')
  assert.equal([again.text, isReplay(again)], [first.text, true])
})

keyed('is independent on another path and in another environment', async () => {
  const event = dataOf<Event>(await post('/events', { event_type: 'x' }, 'same'))
  const project = await post('/projects', { name: 'same' }, 'same')
  assert.equal([project.status, isReplay(project)], [201, false])
  const theirs = await post('/events', { event_type: 'x' }, 'same', openApi(server.url, otherKey))
  assert.is(isReplay(theirs), false)
  assert.is.not(dataOf<Event>(theirs).event_id, event.event_id)
})

keyed('publishes one event, whose handler runs once', async () => {
  const before = await count('/events')
  const body = { event_type: 'asked', event_data: { n: 1 } }
  const answers = await Promise.all(Array.from({ length: 8 }, () => post('/events', body, 'e1')))
  assert.is(new Set(answers.map(({ text }) => text)).size, 1)
  assert.is(answers.filter((answer) => !isReplay(answer)).length, 1)
  const { event_id } = dataOf<Event>(answers[0] as Answer)
  assert.is((await handled(server.api, event_id)).length, 1)
  assert.is(await count('/events'), before + 1)
})

keyed('continues a stream once', async () => {
  const { stream_id } = await server.api.post<Event>('/events', { event_type: 'x' })
  const [first, again] = [
    await post('/events', { event_type: 'y', stream_id }, 'e2'),
    await post('/events', { event_type: 'y', stream_id }, 'e2'),
  ]
  assert.equal([first.status, again.text], [201, first.text])
})

keyed('stores a refusal that a repeat would not change', async () => {
  const first = await post('/projects', { name: 'shop' }, 'p4')
  assert.equal([first.status, isReplay(first)], [409, false])
  const again = await post('/projects', { name: 'shop' }, 'p4')
  assert.equal([again.status, isReplay(again), again.text], [409, true, first.text])
})

keyed('stores no refusal from before the attempt: an invalid body, a missing permission', async () => {
  const wrong = await post('/projects', { name: '' }, 'p5')
  assert.is(wrong.status, 400)
  assert.is((await post('/projects', { name: 'right' }, 'p5')).status, 201)
  const denied = await post('/projects', { name: 'denied' }, 'p6', openApi(server.url, readerKey))
  assert.is(denied.status, 403)
  assert.is((await post('/projects', { name: 'denied' }, 'p6', openApi(server.url, otherKey))).status, 201)
})

keyed('returns the reply only to callers that could have sent the request', async () => {
  const other = openApi(server.url, otherKey)
  await post('/projects', { name: 'hidden' }, 'p7', other)
  assert.is((await post('/projects', { name: 'hidden' }, 'p7', openApi(server.url, readerKey))).status, 403)
})

keyed('belongs to its credential: another one of the environment cannot occupy it', async () => {
  const { token } = await server.api.post<{ token: string }>('/sessions', {
    permissions: { 'event:*': ['create'] },
  })
  const session = openApi(server.url, token)
  const theirs = await post('/events', { event_type: 'squat' }, 'order-1', session)
  assert.is(theirs.status, 201)
  const ours = await post('/events', { event_type: 'order' }, 'order-1')
  assert.equal([ours.status, isReplay(ours)], [201, false])
})

keyed('is replayed only after the checks that depend on stored data', async () => {
  const { token, session_id } = await server.api.post<{ token: string; session_id: string }>('/sessions', {
    permissions: { 'file:*': ['create'] },
  })
  const creator = openApi(server.url, token)
  const body = { path: 'replayed.bin' }
  const begun = await post('/files/uploads', body, 'u1', creator)
  assert.is(begun.status, 201)
  assert.ok(isReplay(await post('/files/uploads', body, 'u1', creator)))
  await server.api.send('PUT', '/files/upload/replayed.bin', { body: 'now it exists' })
  const again = await post('/files/uploads', body, 'u1', creator)
  assert.equal([again.status, isReplay(again)], [403, false])
  await server.api.remove(`/sessions/${session_id}`)
})

for (const key of ['', ' ', 'a b', 'ü', 'x'.repeat(256)]) {
  keyed(`is refused with the key "${key.slice(0, 8)}"`, async () => {
    const { status, message } = refusal(await post('/projects', { name: 'keyless' }, key))
    assert.is(status, 400)
    assert.match(message, /^Idempotency-Key: /)
  })
}

keyed('accepts a key of 255 characters', async () => {
  const key = '!~'.repeat(127) + 'x'
  const first = await post('/projects', { name: 'long-key' }, key)
  assert.is(first.status, 201)
  assert.is((await post('/projects', { name: 'long-key' }, key)).text, first.text)
})

keyed('uploads a build once; forms are compared by their content', async () => {
  const zip = await zipBuild({ 'a.js': 'export const a = () => 1' })
  const send = (fields = {}, built = zip) =>
    server.api.send('POST', '/projects/shop/builds', {
      body: formOf(built, fields),
      headers: { 'Idempotency-Key': 'b1' },
    })
  const before = await count('/projects/shop/builds')
  const [first, again] = [await send(), await send()]
  assert.equal([first.status, again.status, isReplay(again)], [201, 201, true])
  assert.equal(dataOf(again), dataOf(first))
  assert.is(await count('/projects/shop/builds'), before + 1)
  assert.is((await send({ live: 'true' })).status, 409)
  assert.is((await send({}, await zipBuild({ 'a.js': 'export const a = () => 2' }))).status, 409)
})

keyed('deploys, and repeats its answer although another build was deployed meanwhile', async () => {
  const builds: string[] = []
  for (const n of [1, 2]) {
    const answer = await upload(server.api, 'once', { 'a.js': `export const a = () => ${n}` })
    builds.push(dataOf<Build>(answer).build_id)
  }
  const path = (build: string | undefined) => `/projects/once/builds/${build}/deploy`
  const first = await post(path(builds[0]), undefined, 'd1')
  await server.api.post(path(builds[1]))
  assert.is((await post(path(builds[0]), undefined, 'd1')).text, first.text)
  assert.is((await server.api.get<Build>('/projects/once/builds/deployed')).build_id, builds[1])
})

keyed('evaluates once', async () => {
  const code = 'Math.random()'
  const [first, again] = [
    await post('/projects/shop/eval', { code }, 'v1'),
    await post('/projects/shop/eval', { code }, 'v1'),
  ]
  assert.is(first.status, 201)
  assert.is(dataOf<Run>(again).result, dataOf<Run>(first).result)
})

keyed('follows the same stream again from its event, and publishes nothing', async () => {
  const before = await count('/events')
  const body = { event_type: 'asked', event_data: 7 }
  const [first, again] = [
    await post('/streams/subscribe-with-event', body, 's1'),
    await post('/streams/subscribe-with-event', body, 's1'),
  ]
  assert.equal([isReplay(first), isReplay(again)], [false, true])
  assert.is(again.text, first.text)
  assert.match(again.text, /event: event:published[^]*event: run:stop[^]*event: stream:complete/)
  assert.is(await count('/events'), before + 1)
  assert.is(
    (await post('/streams/subscribe-with-event', { event_type: 'asked', event_data: 8 }, 's1')).status,
    409,
  )
})

keyed('is passed on to the function of a webhook', async () => {
  const { data } = await server.api.page<{ url: string }>('/projects/shop/webhooks')
  const [first, again] = [await post(data[0]?.url ?? '', {}, 'w1'), await post(data[0]?.url ?? '', {}, 'w1')]
  assert.match(String(first.json), /^w1/)
  assert.is.not(first.text, again.text)
})

keyed('works for the operator, and returns a token again to the same caller', async () => {
  const operator = openApi(server.url, readOperatorToken(dataDir))
  const make = (path: string, body: object) => post(`${server.url}/operator${path}`, body, 'o1', operator)
  const org = await make('/orgs', { slug: 'twice', plan: 'pro' })
  assert.is((await make('/orgs', { slug: 'twice', plan: 'pro' })).text, org.text)
  const { env_id } = dataOf<{ env_id: string }>(await make('/orgs/twice/envs', { name: 'dev' }))
  const key = await make(`/envs/${env_id}/api-keys`, { name: 'k' })
  const again = await make(`/envs/${env_id}/api-keys`, { name: 'k' })
  assert.equal([key.status, isReplay(again), again.text], [201, true, key.text])
  const { token } = dataOf<{ token: string }>(again)
  assert.is((await openApi(server.url, token).send('GET', '/env')).status, 200)
})

keyed('has no effect on an export, which changes nothing', async () => {
  const operator = openApi(server.url, readOperatorToken(dataDir))
  const { env_id } = await server.api.get<{ env_id: string }>('/env')
  const exported = () =>
    post(
      `${server.url}/operator/envs/${env_id}/export`,
      { transfer_key: `${'A'.repeat(43)}=` },
      'e1',
      operator,
    )
  for (const { status, text } of [await exported(), await exported()])
    assert.equal([status, text.startsWith('{"format":"svc export"')], [200, true])
})

keyed('creates one session, and does not return its token to other callers with the key', async () => {
  const body = { permissions: { 'run:*': ['read'] } }
  const [first, again] = [await post('/sessions', body, 'z1'), await post('/sessions', body, 'z1')]
  assert.equal([first.status, isReplay(again), again.text], [201, true, first.text])
  const { env_id } = await server.api.get<{ env_id: string }>('/env')
  const operator = openApi(server.url, readOperatorToken(dataDir))
  const { token } = await operator.post<{ token: string }>(`${server.url}/operator/envs/${env_id}/api-keys`, {
    name: 'another',
  })
  const another = await post('/sessions', body, 'z1', openApi(server.url, token))
  assert.equal([another.status, isReplay(another)], [201, false])
  assert.is.not(dataOf<{ token: string }>(another).token, dataOf<{ token: string }>(first).token)
})

keyed('has no effect on other methods', async () => {
  const get = () => server.api.send('GET', '/projects/shop', { headers: { 'Idempotency-Key': 'g' } })
  await get()
  assert.is(isReplay(await get()), false)
})

keyed('is answered the same after a restart', async () => {
  const first = await post('/projects', { name: 'restarted' }, 'p8')
  await server.stop()
  server = await startServer({ dataDir })
  const again = await post('/projects', { name: 'restarted' }, 'p8')
  assert.equal([isReplay(again), again.text], [true, first.text])
  assert.is((await server.api.get<Project>('/projects/restarted')).name, 'restarted')
})

keyed('works on every POST under /v1, also if the handler writes the reply', () => {
  const posts = allRoutes.filter(({ takesKey }) => takesKey)
  assert.equal(
    posts.filter(({ reply }) => reply.kind === 'bytes' || reply.kind === 'bare').map(({ path }) => path),
    [],
  )
  const byThemselves = posts.filter(({ reply, form, rawBody }) => reply.kind === 'stream' || form || rawBody)
  assert.equal(byThemselves.map(({ path }) => path).sort(), [
    '/v1/projects/:project/builds',
    '/v1/streams/subscribe-with-event',
  ])
})

keyed('returns a secret only to the credential that requested it', () => {
  for (const { reply, revealsSecret, path } of allRoutes) {
    const holds = /"(?:token|ticket)"/.test(JSON.stringify(reply.schema ?? {}))
    assert.is(revealsSecret, holds, path)
  }
})

keyed.after(() => server.stop())
keyed.run()
