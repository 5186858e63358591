import * as assert from 'uvu/assert'
import type { Static } from 'typebox'
import type { AuditedFact, SignIn } from '../../../src/api/schemas.ts'
import { virtualClock } from '../../../src/clock.ts'
import { readConfig } from '../../../src/process/config.ts'
import { openSecrets } from '../../../src/process/secretsFile.ts'
import { newId } from '../../../src/ids.ts'
import { openVisitor, signedIn } from '../../support/dashboard.ts'
import { type Answer, type Api, openApi } from '../../support/http.ts'
import { addEnvironment, EVERYTHING, startServer } from '../../support/server.ts'
import { installation } from '../../support/installation.ts'
import { suite } from '../../support/suite.ts'
import { tempDir } from '../../support/tempDir.ts'
import { until } from '../../support/until.ts'
import { newServiceKey, newSession } from '../issuing.ts'

const dataDir = tempDir()
const READS = { 'project:*': ['read'], 'run:*': ['read'] }
const keys = await addEnvironment(dataDir, 'team', EVERYTHING, READS)
const server = await startServer({ dataDir, env: { SVC_TRUSTED_PROXIES: '127.0.0.2' } })
const { url } = server
const { operatorToken } = openSecrets(readConfig(installation(dataDir)))
const operator = openApi(url, operatorToken)
const [full, reads] = keys.map((key) => openApi(url, key)) as [Api, Api]
await until(() => full.page('/projects'))
const unknown = (await newSession(full, READS)).token // of another service
const proxied = await startServer({ env: { SVC_TRUSTED_PROXIES: '127.0.0.0/8, ::1' } })
const limited = await startServer()

const dataOf = ({ json }: Answer): Static<typeof SignIn> => (json as { data: Static<typeof SignIn> }).data
const codeOf = ({ status, json }: Answer): string =>
  `${status} ${(json as { error?: { code: string } } | null)?.error?.code ?? ''}`
const messageOf = ({ json }: Answer): string => (json as { error: { message: string } }).error.message
const tokenIn = (cookie: string): string => cookie.replace('svc_session=', '')

const signIns = suite('a sign-in', { timeoutMs: 60_000 })

signIns(
  'with an API key sets a cookie with a session of 12 hours and the permissions of the key',
  async () => {
    const visitor = openVisitor(url)
    const before = Date.now()
    const reply = await visitor.send('POST', '/v1/sign-in', { body: { token: reads.key } })
    const { env_id } = await full.get<{ env_id: string }>('/env')
    const { expires_at, session_id, ...rest } = dataOf(reply)
    assert.is(reply.status, 200)
    assert.equal(rest, { env_id, env_name: null, org_id: null, permissions: READS })
    const seconds = (Date.parse(expires_at ?? '') - before) / 1000
    assert.ok(seconds >= 12 * 3600 - 1, `${seconds} s`)
    assert.ok(Date.parse(expires_at ?? '') <= Date.now() + 12 * 3600 * 1000)

    assert.ok(visitor.cookie.startsWith(`svc_session=s_${session_id}_`))
    const [value, ...attributes] = (reply.headers.get('set-cookie') ?? '').split('; ')
    assert.match(value ?? '', /^svc_session=s_/)
    assert.not.match(reply.text, tokenIn(visitor.cookie))
    assert.equal(attributes.slice(0, 3), ['HttpOnly', 'SameSite=Strict', 'Path=/v1'])
    const maxAge = Number(/^Max-Age=(\d+)$/.exec(attributes[3] ?? '')?.[1])
    assert.ok(maxAge <= 12 * 3600 && maxAge >= Math.floor((Date.parse(expires_at ?? '') - Date.now()) / 1000))
    assert.is(attributes.length, 4, 'not Secure, because the request came without TLS')

    assert.is((await visitor.send('GET', '/v1/projects')).status, 200)
    assert.is(codeOf(await visitor.send('POST', '/v1/projects', { body: { name: 'x' } })), '403 forbidden')
    assert.equal(dataOf(await visitor.send('GET', '/v1/sign-in')), {
      ...rest,
      session_id,
      expires_at,
    })
  },
)

signIns('returns the name and the organization of the environment to a key that may read it', async () => {
  const { env_id, org_id } = await full.get<{ env_id: string; org_id: string }>('/env')
  const reader = await newSession(full, { 'env:*': ['read'] })
  for (const token of [full.key, reader.token]) {
    const visitor = await signedIn(url, token)
    const { env_name, ...rest } = dataOf(await visitor.send('GET', '/v1/sign-in'))
    assert.equal([env_name, rest.env_id, rest.org_id], ['dev', env_id, org_id])
  }
  assert.is((await reads.refused('GET', '/env')).status, 403)
  assert.is((await reads.refused('GET', '/org/usage')).status, 403)
  assert.equal(await reads.get('/sign-in'), {
    ...(await full.get<object>('/sign-in')),
    env_name: null,
    org_id: null,
    permissions: READS,
  })
})

signIns('with the token of a session uses this session, and signing out does not revoke it', async () => {
  const session = await newSession(full, READS)
  const visitor = await signedIn(url, session.token)
  assert.is(visitor.cookie, `svc_session=${session.token}`)
  assert.is(dataOf(await visitor.send('GET', '/v1/sign-in')).expires_at, session.expires_at)
  const out = await visitor.send('DELETE', '/v1/sign-in')
  assert.equal([out.status, visitor.cookie], [204, ''])
  await openApi(url, session.token).page('/projects')
})

signIns('with anything else is refused, and the message names the field', async () => {
  const visitor = openVisitor(url)
  const serviceKey = await newServiceKey(full, { 'run:*': ['read'] }, { name: 'n' })
  for (const [body, code, message] of [
    [{ token: 'nonsense' }, '401 unauthorized', /^token: expected/],
    [
      { token: `${full.key.slice(0, -1)}${full.key.endsWith('x') ? 'y' : 'x'}` },
      '401 unauthorized',
      /^token: expected/,
    ],
    [{ token: '' }, '401 unauthorized', /^token: expected/],
    [{ ticket: full.key }, '401 unauthorized', /^ticket: expected/],
    [{ token: serviceKey.token }, '400 bad_request', /^token: expected an API key .* got a service key/],
    [{}, '400 bad_request', /^token: expected either/],
    [{ token: full.key, ticket: 't' }, '400 bad_request', /^token: expected either/],
  ] as const) {
    const reply = await visitor.send('POST', '/v1/sign-in', { body })
    assert.is(codeOf(reply), code, JSON.stringify(body))
    assert.match(messageOf(reply), message)
    assert.is(reply.headers.get('set-cookie'), null)
  }
})

signIns('ends with a sign-out: the cookie is removed and its session is revoked', async () => {
  const visitor = await signedIn(url, full.key)
  const { cookie } = visitor
  const out = await visitor.send('DELETE', '/v1/sign-in')
  assert.is(out.status, 204)
  assert.match(
    out.headers.get('set-cookie') ?? '',
    /^svc_session=; HttpOnly; SameSite=Strict; Path=\/v1; Max-Age=0$/,
  )
  assert.is(codeOf(await openVisitor(url, cookie).send('GET', '/v1/sign-in')), '401 unauthorized')
  assert.is((await openVisitor(url, cookie).send('DELETE', '/v1/sign-in')).status, 204)
})

signIns('ends with its API key', async () => {
  const { env_id } = await full.get<{ env_id: string }>('/env')
  const keyOf = `${url}/operator/envs/${env_id}/api-keys`
  const made = await operator.post<{ api_key_id: string; token: string }>(keyOf, { name: 'doomed' })
  const visitor = await signedIn(url, made.token)
  assert.is((await visitor.send('GET', '/v1/projects')).status, 200)
  await operator.remove(`${url}/operator/api-keys/${made.api_key_id}`)
  assert.is(codeOf(await visitor.send('GET', '/v1/projects')), '401 unauthorized')
})

signIns('ends with its session', async () => {
  const { token, expires_at } = await newSession(full, READS, { expires_in: 60 })
  const short = await signedIn(url, token)
  assert.is((await short.send('GET', '/v1/projects')).status, 200)
  try {
    virtualClock.set(Date.parse(expires_at))
    for (const path of ['/v1/projects', '/v1/sign-in'])
      assert.is(codeOf(await short.send('GET', path)), '401 unauthorized', path)
  } finally {
    virtualClock.set(null)
  }
})

signIns('is the actor of what the page does', async () => {
  const visitor = await signedIn(url, full.key)
  const name = `made-${newId()}`
  assert.is((await visitor.send('POST', '/v1/projects', { body: { name } })).status, 201)
  const facts = await full.page<Static<typeof AuditedFact>>('/audit?type=ProjectCreated&limit=100')
  const fact = facts.data.find(({ data }) => JSON.stringify(data).includes(name))
  const [, session_id] = tokenIn(visitor.cookie).split('_')
  assert.equal([fact?.actor.credential_type, fact?.actor.credential_id], ['session', session_id])
  const created = await full.page<Static<typeof AuditedFact>>('/audit?type=SessionCreated&limit=100')
  const own = created.data.find(({ data }) => JSON.stringify(data).includes(session_id ?? 'none'))
  assert.is(own?.actor.credential_type, 'api-key')
})

signIns('sets a Secure cookie for a page with TLS', async () => {
  const origin = new URL(url).host
  const sent = { body: { token: full.key }, headers: { 'Sec-Fetch-Site': '', Origin: `https://${origin}` } }
  const reply = await openVisitor(url).send('POST', '/v1/sign-in', sent)
  assert.match(reply.headers.get('set-cookie') ?? '', /; Secure$/)
  const headers = { 'X-Forwarded-Proto': 'https' } // of an address that is no proxy
  const other = await openVisitor(url).send('POST', '/v1/sign-in', { body: { token: full.key }, headers })
  assert.not.match(other.headers.get('set-cookie') ?? 'Secure', 'Secure')
})

signIns.after(server.stop)
const behind = suite('a sign-in behind a proxy', { timeoutMs: 60_000 })

behind('sets a Secure cookie if the proxy names https', async () => {
  const headers = { 'X-Forwarded-Proto': 'https' }
  const sent = { body: { token: proxied.api.key }, headers }
  const reply = await openVisitor(proxied.url).send('POST', '/v1/sign-in', sent)
  assert.match(reply.headers.get('set-cookie') ?? '', /; Secure$/)
})

behind('counts wrong tokens as guesses of the address', async () => {
  const visitor = openVisitor(limited.url)
  const wrong = () => visitor.send('POST', '/v1/sign-in', { body: { token: 'nonsense' } })
  const codes = new Set<string>()
  const isRefused = async () => {
    const code = codeOf(await wrong())
    codes.add(code)
    return code === '429 rate_limit_exceeded'
  }
  // The limit grows again with time, so a slow machine may need more than one try.
  const out = await until(async () => {
    await until(isRefused)
    const reply = await openVisitor(limited.url, `svc_session=${unknown}`).send('DELETE', '/v1/sign-in')
    return reply.status === 429 ? reply : null
  })
  assert.equal([...codes], ['401 unauthorized', '429 rate_limit_exceeded'])
  assert.is(out.headers.get('set-cookie'), null, 'the sign-out can be repeated')
})

behind.after(() => Promise.all([proxied.stop(), limited.stop()]))
signIns.run()
behind.run()
