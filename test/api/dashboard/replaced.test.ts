import * as assert from 'uvu/assert'
import { readConfig } from '../../../src/process/config.ts'
import { openSecrets } from '../../../src/process/secretsFile.ts'
import { openVisitor, signedIn, type Visitor } from '../../support/dashboard.ts'
import { openApi } from '../../support/http.ts'
import { installation } from '../../support/installation.ts'
import { addEnvironment, EVERYTHING, startServer } from '../../support/server.ts'
import { suite } from '../../support/suite.ts'
import { tempDir } from '../../support/tempDir.ts'
import { until } from '../../support/until.ts'
import { newSession } from '../issuing.ts'

const dataDir = tempDir()
const [otherKey = ''] = await addEnvironment(dataDir, 'other', EVERYTHING)
const server = await startServer({ dataDir })
const { url, api } = server
const { operatorToken } = openSecrets(readConfig(installation(dataDir)))
const other = openApi(url, otherKey)
await until(() => other.page('/projects'))

const ENV = { path: '/v1/sign-in', read: '/v1/projects' } as const
const OPERATOR = { path: '/operator/sign-in', read: '/operator/orgs' } as const

const again = async (visitor: Visitor, body: object, path: string = ENV.path): Promise<number> =>
  (await visitor.send('POST', path, { body })).status

/** What a copy of a cookie may do, also after its browser has another one. */
const statusOf = async (cookie: string, { read }: { readonly read: string } = ENV): Promise<number> =>
  (await openVisitor(url, cookie).send('GET', read)).status

const newTicket = async (): Promise<string> => (await api.post<{ ticket: string }>('/sign-in/tickets')).ticket

const replaced = suite('a sign-in that replaces another one', { timeoutMs: 60_000 })

replaced('revokes the session of the same browser, and no other one', async () => {
  for (const credential of [
    { token: api.key },
    { token: otherKey },
    { token: (await newSession(api, { 'project:*': ['read'] })).token },
    { ticket: await newTicket() },
  ]) {
    const [visitor, stranger] = await Promise.all([signedIn(url, api.key), signedIn(url, api.key)])
    const { cookie } = visitor
    assert.is(await again(visitor, credential), 200)
    const name = Object.entries(credential).join()
    assert.is(await statusOf(cookie), 401, name)
    assert.is(await statusOf(visitor.cookie), 200, name)
    assert.is(await statusOf(stranger.cookie), 200, name)
  }
})

replaced('revokes nothing if it fails', async () => {
  const visitor = await signedIn(url, api.key)
  const ticket = await newTicket()
  assert.is(await again(openVisitor(url), { ticket }), 200)
  for (const [body, status] of [
    [{ token: 'nonsense' }, 401],
    [{ ticket }, 401],
    [{}, 400],
  ] as const) {
    assert.is(await again(visitor, body), status)
    assert.is(await statusOf(visitor.cookie), 200, JSON.stringify(body))
  }
  const headers = { 'Sec-Fetch-Site': 'cross-site' }
  const foreign = await visitor.send('POST', ENV.path, { body: { token: api.key }, headers })
  assert.is(foreign.status, 403)
  assert.is(await statusOf(visitor.cookie), 200)
})

replaced('does not revoke a session that no sign-in created, or that signs in itself', async () => {
  const { token } = await newSession(api, { 'project:*': ['read'] })
  const visitor = await signedIn(url, token)
  const { cookie } = visitor
  assert.is(await again(visitor, { token: api.key }), 200)
  assert.is(await statusOf(cookie), 200)

  const own = await signedIn(url, api.key)
  assert.is(await again(own, { token: own.cookie.replace('svc_session=', '') }), 200)
  assert.is(await statusOf(own.cookie), 200)
})

replaced('does not count the ended session of the browser as a guess, and replaces its cookie', async () => {
  const visitor = await signedIn(url, api.key)
  const ended = visitor.cookie
  assert.is((await visitor.send('DELETE', ENV.path)).status, 204)
  for (let signIns = 0; signIns < 120; signIns++)
    assert.is(await again(openVisitor(url, ended), { token: api.key }), 200, `sign-in ${signIns}`)
})

replaced('ends the former sign-in of the operator, and only that one', async () => {
  const asOperator = () => signedIn(url, operatorToken, OPERATOR.path)
  const [visitor, stranger, inEnv] = await Promise.all([asOperator(), asOperator(), signedIn(url, api.key)])
  const { cookie } = visitor
  const both = openVisitor(url, `${cookie}; ${inEnv.cookie}`)
  assert.is(await again(both, { token: 'nonsense' }, OPERATOR.path), 401)
  assert.is(await statusOf(cookie, OPERATOR), 200)
  assert.is(await again(both, { token: operatorToken }, OPERATOR.path), 200)
  assert.is(await statusOf(cookie, OPERATOR), 401)
  assert.is(await statusOf(both.cookie, OPERATOR), 200)
  assert.is(await statusOf(stranger.cookie, OPERATOR), 200)
  assert.is(await statusOf(inEnv.cookie), 200, 'the session of the environment is another scope')
})

replaced.after(server.stop)
replaced.run()
