import * as assert from 'uvu/assert'
import { addEnvironment, EVERYTHING, startServer } from '../../support/server.ts'
import { openVisitor, signedIn, type Visitor } from '../../support/dashboard.ts'
import { deploy, type Webhook } from '../../support/build.ts'
import { openApi } from '../../support/http.ts'
import { suite } from '../../support/suite.ts'
import { tempDir } from '../../support/tempDir.ts'
import { until } from '../../support/until.ts'

const PAGE = 'https://app.example'
const dataDir = tempDir()
const [otherKey = ''] = await addEnvironment(dataDir, 'other', EVERYTHING)
const server = await startServer({ dataDir, env: { SVC_CORS_ORIGINS: PAGE } })
const { url, api } = server
const other = openApi(url, otherKey)
await until(() => other.page('/projects'))
const { host } = new URL(url)
const visitor = await signedIn(url, api.key)

const status = async (
  headers: Readonly<Record<string, string>>,
  [method, path, body]: readonly [string, string, unknown?] = ['GET', '/v1/projects'],
  as: Visitor = visitor,
): Promise<number> => (await as.send(method, path, { headers, body })).status

const cookies = suite('the cookie of the dashboard', { timeoutMs: 60_000 })

cookies('is a credential only with the header of the dashboard', async () => {
  assert.is(await status({}), 200)
  for (const value of ['', '0', 'true', '1, 1'])
    assert.is(await status({ 'Svc-Dashboard': value }), 401, value)
})

cookies('is a credential only for a page of the same origin', async () => {
  for (const site of ['cross-site', 'same-site', 'none'])
    assert.is(await status({ 'Sec-Fetch-Site': site }), 401, site)
  const without = { 'Sec-Fetch-Site': '' }
  assert.is(await status(without), 200, 'a GET of a page without TLS has neither header')
  assert.is(await status({ ...without, Origin: `http://${host}` }), 200)
  for (const origin of [
    'null',
    PAGE,
    'http://localhost:1',
    `http://${host}.evil.test`,
    `http://evil@${host}`,
  ])
    assert.is(await status({ ...without, Origin: origin }), 401, origin)
})

cookies('is no credential of a change whose origin is not known', async () => {
  const create = ['POST', '/v1/projects', { name: 'by-cookie' }] as const
  assert.is(await status({ 'Sec-Fetch-Site': '' }, create), 401)
  assert.is(await status({ 'Sec-Fetch-Site': '', Origin: `http://${host}` }, create), 201)
})

cookies('is not read beside an Authorization header', async () => {
  assert.is(await status({ Authorization: 'Bearer nonsense' }), 401)
  const reply = await visitor.send('GET', '/v1/env', { headers: { Authorization: `Bearer ${otherKey}` } })
  const { env_id } = await other.get<{ env_id: string }>('/env')
  assert.is((reply.json as { data: { env_id: string } }).data.env_id, env_id)
})

cookies('holds a session, and no credential that lives longer', async () => {
  const { token } = await api.post<{ token: string }>('/service-keys', {
    name: 'k',
    permissions: { 'run:*': ['read'] },
  })
  for (const value of [api.key, token, 'nonsense', ''])
    assert.is(await status({}, ['GET', '/v1/runs'], openVisitor(url, `svc_session=${value}`)), 401)
})

cookies('is not read beside another one, which another host of the site may have set', async () => {
  const stranger = await signedIn(url, otherKey)
  for (const both of [`${stranger.cookie}; ${visitor.cookie}`, `${visitor.cookie}; ${stranger.cookie}`])
    assert.is(await status({}, undefined, openVisitor(url, both)), 401)
  assert.is(await status({}, undefined, openVisitor(url, `theme=dark; ${visitor.cookie}; a=b`)), 200)
})

cookies('cannot be set or removed by another site', async () => {
  for (const headers of [
    { 'Svc-Dashboard': '' },
    { 'Sec-Fetch-Site': 'cross-site' },
    { 'Sec-Fetch-Site': 'same-site' },
  ])
    for (const [method, path, body] of [
      ['POST', '/v1/sign-in', { token: otherKey }],
      ['DELETE', '/v1/sign-in'],
      ['POST', '/operator/sign-in', { token: 'x' }],
      ['DELETE', '/operator/sign-in'],
    ] as const) {
      const reply = await openVisitor(url, visitor.cookie).send(method, path, { headers, body })
      assert.is(reply.status, 403, `${method} ${path}`)
      assert.is(reply.headers.get('set-cookie'), null)
    }
})

cookies('is for no page of an origin that CORS allows', async () => {
  const asked = await openVisitor(url).send('OPTIONS', '/v1/projects', {
    headers: {
      Origin: PAGE,
      'Access-Control-Request-Method': 'GET',
      'Access-Control-Request-Headers': 'svc-dashboard',
    },
  })
  assert.is(asked.status, 204)
  assert.not.match(asked.headers.get('access-control-allow-headers') ?? '', /svc-dashboard/i)
  assert.is(asked.headers.get('access-control-allow-credentials'), null)
  assert.is(await status({ 'Sec-Fetch-Site': 'cross-site', Origin: PAGE }), 401)
})

cookies('authenticates streams and downloads', async () => {
  const { stream_id } = await api.post<{ stream_id: string }>('/events', { event_type: 'a', event_data: 1 })
  const headers = { 'Svc-Dashboard': '1', 'Sec-Fetch-Site': 'same-origin', Cookie: visitor.cookie }
  const stream = await fetch(`${url}/v1/streams/${stream_id}/subscribe`, { headers })
  assert.is(stream.status, 200)
  assert.match(stream.headers.get('content-type') ?? '', 'text/event-stream')
  await stream.body?.cancel()
  const { file_id } = (
    (await api.send('PUT', '/files/upload/a.txt', { body: 'text' })).json as { data: { file_id: string } }
  ).data
  assert.is(await (await fetch(`${url}/v1/files/${file_id}/download`, { headers })).text(), 'text')
})

cookies('reaches no function, and no function sets it', async () => {
  await deploy(api, 'hooks', {
    'h.js': `import { fn } from 'svc'
      export const hook = fn({ webhook: { service: 's', path: '/p', method: 'GET' } }, ({ headers }) => ({
        status: 200, headers: { 'Set-Cookie': 'svc_session=theirs; Path=/v1' }, body: headers.cookie ?? null,
      }))`,
  })
  const { url: hook } = (await api.page<Webhook>('/projects/hooks/webhooks')).data[0] as Webhook
  const reply = await fetch(hook, { headers: { Cookie: `a=b; ${visitor.cookie}; svc_operator=1.2;c=d` } })
  const seen = (await reply.json()) as string
  assert.match(seen, /^a=b; svc_session=[^;]*; svc_operator=[^;]*;c=d$/)
  assert.not.match(seen, visitor.cookie)
  assert.not.match(seen, '1.2')
  assert.is(reply.headers.get('set-cookie'), null)
})

cookies.after(server.stop)
cookies.run()
