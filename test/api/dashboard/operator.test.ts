import * as assert from 'uvu/assert'
import type { Static } from 'typebox'
import type { AuditedFact } from '../../../src/api/schemas.ts'
import { virtualClock } from '../../../src/clock.ts'
import { newId } from '../../../src/ids.ts'
import { readConfig } from '../../../src/process/config.ts'
import { openSecrets } from '../../../src/process/secretsFile.ts'
import { Keyring } from '../../../src/secrets/keyring.ts'
import { Operator } from '../../../src/api/http/operator.ts'
import { openVisitor, signedIn } from '../../support/dashboard.ts'
import { installation } from '../../support/installation.ts'
import { openApi } from '../../support/http.ts'
import { openOperatorSessions } from '../../support/operatorSessions.ts'
import { startServer } from '../../support/server.ts'
import { suite } from '../../support/suite.ts'

const server = await startServer()
const { url } = server
const { operatorToken } = openSecrets(readConfig(installation(server.dataDir)))

const signedInAsOperator = () => signedIn(url, operatorToken, '/operator/sign-in')

const operators = suite('the sign-in of the operator', { timeoutMs: 60_000 })

operators('sets a cookie for the API of the operator, which does not contain the token', async () => {
  const visitor = openVisitor(url)
  const reply = await visitor.send('POST', '/operator/sign-in', { body: { token: operatorToken } })
  assert.is(reply.status, 200)
  const [value = '', ...attributes] = (reply.headers.get('set-cookie') ?? '').split('; ')
  assert.match(value, /^svc_operator=[0-9a-f-]{36}\.\d+\.[0-9a-f]{64}$/)
  assert.not.match(value, operatorToken)
  assert.equal(attributes.slice(0, 3), ['HttpOnly', 'SameSite=Strict', 'Path=/operator'])
  const { data } = reply.json as { data: { expires_at: string } }
  assert.ok(Date.parse(data.expires_at) <= Date.now() + 12 * 3600 * 1000)
  assert.equal((await visitor.send('GET', '/operator/sign-in')).status, 200)
  assert.is((await visitor.send('GET', '/operator/orgs')).status, 200)
})

operators('requires the header of the dashboard and a page of the same origin', async () => {
  const visitor = await signedInAsOperator()
  for (const headers of [
    { 'Svc-Dashboard': '' },
    { 'Sec-Fetch-Site': 'cross-site' },
    { 'Sec-Fetch-Site': 'same-site' },
  ])
    for (const path of ['/operator/orgs', '/operator/sign-in'])
      assert.is((await visitor.send('GET', path, { headers })).status, 401)
  const headers = { Authorization: 'Bearer nonsense' }
  assert.is((await visitor.send('GET', '/operator/orgs', { headers })).status, 401, 'the header wins')
})

operators('refuses a wrong token, also an API key', async () => {
  const visitor = openVisitor(url)
  for (const token of ['nonsense', server.api.key, '', 'a b']) {
    const reply = await visitor.send('POST', '/operator/sign-in', { body: { token } })
    assert.is(reply.status, 401)
    assert.match((reply.json as { error: { message: string } }).error.message, /^token: expected/)
    assert.is(reply.headers.get('set-cookie'), null)
  }
})

operators('does not admit to an environment, and a session does not admit to the operator', async () => {
  const operator = await signedInAsOperator()
  const session = await signedIn(url, server.api.key)
  for (const cookie of [operator.cookie, operator.cookie.replace('svc_operator', 'svc_session')])
    assert.is((await openVisitor(url, cookie).send('GET', '/v1/projects')).status, 401)
  for (const cookie of [session.cookie, session.cookie.replace('svc_session', 'svc_operator')])
    assert.is((await openVisitor(url, cookie).send('GET', '/operator/orgs')).status, 401)
})

operators('ends with a sign-out: a copy of the cookie admits no more', async () => {
  const [visitor, other] = await Promise.all([signedInAsOperator(), signedInAsOperator()])
  const copy = openVisitor(url, visitor.cookie)
  assert.is((await copy.send('GET', '/operator/orgs')).status, 200)
  assert.is((await visitor.send('DELETE', '/operator/sign-in')).status, 204)
  assert.is(visitor.cookie, '')
  for (const path of ['/operator/sign-in', '/operator/orgs', '/metrics']) {
    assert.is((await visitor.send('GET', path)).status, 401, path)
    assert.is((await copy.send('GET', path)).status, 401, `${path} with the copy`)
  }
  const body = { name: 'x', slug: 'x' }
  assert.is((await copy.send('POST', '/operator/orgs', { body })).status, 401)
  assert.is((await other.send('GET', '/operator/orgs')).status, 200, 'another sign-in continues')
  assert.is((await copy.send('DELETE', '/operator/sign-in')).status, 204, 'a repetition is no error')
})

operators('ends with a sign-out of a page only, and of a cookie that the service made', async () => {
  const visitor = await signedInAsOperator()
  const { cookie } = visitor
  for (const headers of [{ 'Svc-Dashboard': '' }, { 'Sec-Fetch-Site': 'cross-site' }])
    assert.is((await openVisitor(url, cookie).send('DELETE', '/operator/sign-in', { headers })).status, 403)
  const forged = cookie.replace(/[0-9a-f]$/, (last) => (last === '0' ? '1' : '0'))
  assert.is((await openVisitor(url, forged).send('DELETE', '/operator/sign-in')).status, 204)
  assert.is((await visitor.send('GET', '/operator/orgs')).status, 200)
})

operators('leaves its sign-out in the audit of the installation', async () => {
  const visitor = await signedInAsOperator()
  const [, session_id = ''] = /=([0-9a-f-]{36})/.exec(visitor.cookie) ?? []
  await visitor.send('DELETE', '/operator/sign-in')
  const operator = openApi(url, operatorToken)
  const { data } = await operator.page<Static<typeof AuditedFact>>(
    `${url}/operator/audit?type=OperatorSignedOut&limit=100`,
  )
  const fact = data.find((one) => JSON.stringify(one.data).includes(session_id))
  assert.equal([fact?.actor.credential_type, fact?.actor.ip], ['operator', '127.0.0.1'])
})

const keyring = new Keyring(new Uint8Array(32).fill(7))
const sessions = openOperatorSessions()
const operatorOf = (...tokens: readonly string[]) =>
  new Operator({ tokens, sessions, keyring, logger: { warn: () => {} } })
const endOf = async (operator: Operator, value: string | undefined): Promise<number | null> =>
  (await operator.sessionOf(value))?.expires ?? null

operators('proves its id and its end, and ends with the operator token', async () => {
  const { value, expires } = operatorOf('one').newSession('one')
  assert.is(await endOf(operatorOf('one'), value), expires)
  assert.is(await endOf(operatorOf('two', 'one'), value), expires, 'while the master key is rotated')
  assert.is(await endOf(operatorOf('two'), value), null)
  const [id = '', , proof = ''] = value.split('.')
  for (const changed of [
    `${newId()}.${expires}.${proof}`,
    `${id}.${expires + 1}.${proof}`,
    `${id}.${expires}.${'0'.repeat(64)}`,
    `${id}.${expires}.`,
    `${expires}.${proof}`,
    proof,
    '',
    undefined,
  ])
    assert.is(await endOf(operatorOf('one'), changed), null, changed)
  assert.is(await endOf(operatorOf('one'), operatorOf('one').newSession('two').value), null)
})

operators('admits for 12 hours', async () => {
  const operator = operatorOf('one')
  const { value, expires } = operator.newSession('one')
  try {
    virtualClock.set(expires - 1)
    assert.is(await endOf(operator, value), expires)
    virtualClock.set(expires)
    assert.is(await endOf(operator, value), null)
  } finally {
    virtualClock.set(null)
  }
})

operators.after(server.stop)
operators.run()
