import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import { parseToken } from '../../src/access/tokens.ts'
import { addEnvironment, EVERYTHING, startServer } from '../support/server.ts'
import { openApi, type Api } from '../support/http.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import { as, isRefusedWith, newServiceKey, newSession, type Session } from './issuing.ts'

const dataDir = tempDir()
const keys = await addEnvironment(
  dataDir,
  `t-${newId()}`,
  EVERYTHING,
  EVERYTHING,
  { 'run:*': ['read'], 'session:*': ['create'], 'key:*': ['create'] },
  { 'run:*': ['read'] },
  EVERYTHING,
  EVERYTHING,
)
const server = await startServer({ dataDir })
const [api, sibling, narrow, mayNot, lister, many] = keys.map((key) => openApi(server.url, key)) as [
  Api,
  Api,
  Api,
  Api,
  Api,
  Api,
]
await until(() => api.page('/projects'))
const READ = { 'run:*': ['read'] }

const sessions = suite('sessions (SPEC.md, Sessions)', { timeoutMs: 60_000 })

sessions('POST /sessions: 201, Session including token', async () => {
  const metadata = { user: 'ä', n: [1, null] }
  const { status, json } = await api.send('POST', '/sessions', {
    body: { permissions: READ, metadata, expires_in: 60 },
  })
  assert.is(status, 201)
  const session = (json as { data: Session }).data
  assert.equal([session.permissions, session.metadata], [READ, metadata])
  const { kind, id } = parseToken(session.token) ?? {}
  assert.equal([kind, id], ['session', session.session_id])
  assert.match(session.token, /^s_[0-9a-f-]{36}_[0-9A-Za-z]{49}$/)
  const lives = Date.parse(session.expires_at) - Date.parse(session.created_at)
  assert.ok(Math.abs(lives - 60_000) < 20_000, String(lives)) // it is created when a slow disk has stored it
})

sessions('are valid for 3600 s by default', async () => {
  const { expires_at, created_at, metadata } = await newSession(api, READ)
  assert.ok(Math.abs(Date.parse(expires_at) - Date.parse(created_at) - 3_600_000) < 20_000)
  assert.is(metadata, null)
})

for (const expires_in of ['60', 86_401])
  sessions(`are valid for 1 to 86400 s, not ${JSON.stringify(expires_in)}`, async () => {
    const told = await isRefusedWith(
      api,
      ['POST', '/sessions', { permissions: READ, expires_in }],
      [400, 'bad_request'],
    )
    assert.match(told, /^expires_in: /)
  })
sessions('are valid for a day at most', async () => {
  assert.ok((await newSession(api, READ, { expires_in: 86_400 })).token)
})

sessions('need permissions, and valid ones', async () => {
  await isRefusedWith(api, ['POST', '/sessions', {}], [400, 'bad_request'])
  const told = await isRefusedWith(
    api,
    ['POST', '/sessions', { permissions: { run: ['read'] } }],
    [400, 'bad_request'],
  )
  assert.is(told, 'Invalid resource: "run": expected type:path, such as "run:*"')
  for (const resource of ['run:x', 'run:\n', 'run:a\u2028b']) {
    const permissions = { [resource]: { read: true } }
    await isRefusedWith(api, ['POST', '/sessions', { permissions }], [400, 'bad_request'])
  }
})

sessions('have the permissions they were given, in the environment of their API key', async () => {
  const session = as(api, await newSession(api, { 'run:*': ['read'], 'env:*': ['read'] }))
  assert.is((await session.page('/runs')).pagination.total, 0)
  assert.is(
    (await session.get<{ env_id: string }>('/env')).env_id,
    (await api.get<{ env_id: string }>('/env')).env_id,
  )
  await isRefusedWith(session, ['GET', '/projects'], [403, 'forbidden'])
})

sessions('with more permissions than the API key are 403 permission_escalation', async () => {
  for (const permissions of [
    { 'run:*': ['read'], 'env:*': ['read'] },
    { '*:*': ['*'] },
    { 'session:*': ['*'] },
    { 'project:shop': ['read'] },
  ])
    await isRefusedWith(narrow, ['POST', '/sessions', { permissions }], [403, 'permission_escalation'])
  assert.ok((await newSession(narrow, { 'run:x': ['*'], 'session:*': ['create'] })).token)
  assert.ok((await newSession(narrow, {})).token)
})

sessions('need session create', async () => {
  await isRefusedWith(mayNot, ['POST', '/sessions', { permissions: READ }], [403, 'forbidden'])
})

sessions('are created by API keys alone: by sessions and service keys 403 forbidden', async () => {
  const session = as(api, await newSession(api, EVERYTHING))
  for (const path of ['/sessions', '/service-keys'])
    await isRefusedWith(session, ['POST', path, { permissions: READ }], [403, 'forbidden'])
  const key = as(api, await newServiceKey(api, READ))
  for (const path of ['/sessions', '/service-keys'])
    await isRefusedWith(key, ['POST', path, { permissions: READ }], [403, 'forbidden'])
})

sessions('are created with bodies of at most 64 KiB, and so are service keys', async () => {
  for (const path of ['/sessions', '/service-keys']) {
    const statusOf = async (bytes: number) => {
      const empty = { permissions: READ, metadata: '' }
      const metadata = 'x'.repeat(bytes - JSON.stringify(empty).length)
      return (await api.send('POST', path, { body: { ...empty, metadata } })).status
    }
    assert.equal([await statusOf(65_536), await statusOf(65_537)], [201, 413], path)
  }
})

sessions(
  'permissions and metadata of many objects are refused, as lists would need too much memory',
  async () => {
    const paths = Array.from({ length: 3000 }, (_, n) => [`run:${n}`, ['read']])
    for (const path of ['/sessions', '/service-keys'])
      for (const [field, body] of [
        ['metadata', { permissions: READ, metadata: Array(20_000).fill({}) }],
        ['permissions', { permissions: Object.fromEntries(paths) }],
      ] as const) {
        const { message } = await api.refused('POST', path, body)
        assert.is(message, `${field}: expected fewer lists, objects and fields`)
      }
  },
)

sessions('GET /sessions: pages of more sessions than are read at once, the newest first', async () => {
  const ids: string[] = []
  for (let n = 0; n < 120; n++)
    ids.unshift((await newSession(many, READ, { expires_in: 1000 + ((n * 7) % 120) })).session_id)
  const listed: string[] = []
  for (let offset = 0; offset < 120; offset += 50) {
    const { data, pagination } = await many.page<Session>(`/sessions?limit=50&offset=${offset}`)
    listed.push(...data.map(({ session_id }) => session_id))
    assert.is(pagination.total, 120)
  }
  assert.equal(listed, ids)
})

sessions('GET /sessions: active sessions of the calling API key, without token', async () => {
  const made: Session[] = []
  for (let n = 0; n < 3; n++) made.push(await newSession(lister, READ, { expires_in: 600 - n, metadata: n }))
  const { token: _, ...first } = made[0] as Session
  const brief = await newSession(lister, READ, { expires_in: 1 })
  await newSession(sibling, READ)
  await until(async () => (await as(lister, brief).send('GET', '/runs')).status === 401)
  const { data, pagination } = await lister.page<Session>('/sessions')
  assert.equal(
    data.map(({ session_id }) => session_id),
    made.map(({ session_id }) => session_id).reverse(),
  )
  assert.equal(data.at(-1), first)
  assert.equal([pagination.total, pagination.has_more], [3, false])
  const page = await lister.page<Session>('/sessions?limit=1&offset=1')
  assert.equal(
    [page.data[0]?.session_id, page.pagination.total, page.pagination.has_more],
    [made[1]?.session_id, 3, true],
  )
})

sessions('DELETE /sessions/{session_id}: 204, and the session is refused from then on', async () => {
  const made = await newSession(api, READ)
  const session = as(api, made)
  assert.is((await session.send('GET', '/runs')).status, 200)
  assert.is((await api.send('DELETE', `/sessions/${made.session_id}`)).status, 204)
  await isRefusedWith(session, ['GET', '/runs'], [401, 'unauthorized'])
  await isRefusedWith(api, ['DELETE', `/sessions/${made.session_id}`], [404, 'not_found'])
  assert.not.ok(
    (await api.page<Session>('/sessions?limit=100')).data.some(
      ({ session_id }) => session_id === made.session_id,
    ),
  )
})

sessions('of another API key, or another environment, are 404', async () => {
  const { session_id } = await newSession(sibling, READ)
  for (const caller of [api, server.api])
    await isRefusedWith(caller, ['DELETE', `/sessions/${session_id}`], [404, 'not_found'])
  await isRefusedWith(api, ['DELETE', '/sessions/none'], [404, 'not_found'])
})

sessions('DELETE /sessions: {revoked_count}, and all are refused', async () => {
  await sibling.send('DELETE', '/sessions')
  const made = await Promise.all([1, 2, 3].map(() => newSession(sibling, READ)))
  const other = as(api, await newSession(api, READ))
  for (const one of made) assert.is((await as(api, one).send('GET', '/runs')).status, 200)
  const { json } = await sibling.send('DELETE', '/sessions')
  assert.is((json as { data: { revoked_count: number } }).data.revoked_count, 3)
  for (const one of made) await isRefusedWith(as(api, one), ['GET', '/runs'], [401, 'unauthorized'])
  assert.is((await other.send('GET', '/runs')).status, 200)
  const again = await sibling.send('DELETE', '/sessions')
  assert.equal((again.json as { data: unknown }).data, { revoked_count: 0 })
})

sessions('with session permissions list and end those of their API key', async () => {
  const session = as(api, await newSession(lister, { 'session:*': ['read', 'delete'] }))
  const { session_id } = await newSession(lister, READ)
  assert.ok((await session.page<Session>('/sessions')).data.some((one) => one.session_id === session_id))
  assert.is((await session.send('DELETE', `/sessions/${session_id}`)).status, 204)
})

sessions('expire by themselves', async () => {
  const session = as(api, await newSession(api, READ, { expires_in: 10 }))
  assert.is((await session.send('GET', '/runs')).status, 200)
  await until(async () => (await session.send('GET', '/runs')).status === 401)
})

sessions('with a wrong secret, checksum or kind are 401, always the same', async () => {
  const { token, session_id } = await newSession(api, READ)
  const other = await newSession(api, READ)
  const swapped = (text: string, at: number) =>
    text.slice(0, at) + (text[at] === 'a' ? 'b' : 'a') + text.slice(at + 1)
  const messages = new Set<string>()
  for (const bad of [
    swapped(token, 45),
    swapped(token, token.length - 1),
    token.slice(2),
    `svc_${token.slice(2)}`,
    token.replace(session_id, other.session_id),
    token.slice(0, -1),
    `${token}a`,
  ])
    messages.add(await isRefusedWith(as(api, { token: bad }), ['GET', '/runs'], [401, 'unauthorized']))
  assert.is(messages.size, 1)
})

sessions.after(() => server.stop())
sessions.run()
