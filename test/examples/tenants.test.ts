import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { readFileSync, statSync } from 'node:fs'
import * as assert from 'uvu/assert'
import { createClient } from '../../src/client/index.ts'
import { compile, installExample, outputIn, runIn } from '../support/example.ts'
import { openApi } from '../support/http.ts'
import { EMBEDDED } from '../support/installation.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

interface Granted {
  readonly url: string
  readonly token: string
}

interface Context {
  /** The installed example. */
  project: string
  server: TestServer
  /** Runs a command of the example, and resolves with what it prints. */
  customers: <T>(...args: readonly string[]) => Promise<T>
  env: Readonly<Record<string, string>>
}

const tenants = suite<Context>('the example tenants', { timeoutMs: 120_000 })

tenants.before(async (context) => {
  const SVC_OPERATOR_TOKEN = randomBytes(32).toString('hex')
  context.project = await installExample('tenants')
  context.server = await startServer({ env: { ...EMBEDDED, SVC_OPERATOR_TOKEN } })
  context.env = { SVC_URL: context.server.url, SVC_OPERATOR_TOKEN }
  const { project, env } = context
  context.customers = async (...args) =>
    JSON.parse(await outputIn(project, process.execPath, ['customers.ts', ...args], env))
  await context.customers('add', 'acme')
  await context.customers('add', 'globex')
})
tenants.after(({ server }) => server.stop())

tenants('compiles with the installed package', ({ project }) => compile(project))

tenants('gives each customer an environment and a key, which only the backend can read', ({ project }) => {
  const file = join(project, 'customers.json')
  const stored = JSON.parse(readFileSync(file, 'utf8')) as Record<string, { env_id: string; key: string }>
  assert.equal(Object.keys(stored), ['acme', 'globex'])
  assert.is.not(stored['acme']?.env_id, stored['globex']?.env_id)
  assert.is(statSync(file).mode & 0o777, 0o600)
})

tenants(
  'gives the page of a user a session that adds notes and follows them',
  async ({ customers, server }) => {
    const { url, token } = await customers<Granted>('user', 'acme')
    const events: string[] = []
    const note = { text: 'hello', from: 'ada' }
    for await (const { event } of createClient({ url, token }).sendAndFollow('note:added', note))
      events.push(event)
    assert.equal([events.at(0), events.at(-1)], ['event:published', 'run:stop'])
    assert.equal(await customers('notes', 'acme'), ['ada: hello\n'])
    const session = openApi(server.url, token)
    assert.is((await session.refused('GET', '/files')).status, 403)
    assert.is(
      (await session.refused('POST', '/events', { event_type: 'other', event_data: null })).status,
      403,
    )
  },
)

tenants('gives a device a key for the webhook, whose function receives its name', async ({ customers }) => {
  const { url, token } = await customers<Granted>('device', 'globex', 'sensor-7')
  const send = (headers: Record<string, string>) =>
    fetch(url, { method: 'POST', headers, body: JSON.stringify({ text: '21 degrees' }) })
  assert.is((await send({})).status, 401)
  assert.is((await send({ authorization: `Bearer ${token}` })).status, 202)
  const notes = await until(async () => {
    const found = await customers<readonly string[]>('notes', 'globex')
    return found.length > 0 ? found : undefined
  })
  assert.equal(notes, ['sensor-7: 21 degrees\n'])
  assert.equal(await customers('notes', 'acme'), ['ada: hello\n'], 'no note of another customer')
})

tenants('removes a customer with its credentials', async ({ customers, project, env }) => {
  const { url, token } = await customers<Granted>('user', 'globex')
  await customers('remove', 'globex')
  assert.is((await openApi(url, token).refused('POST', '/events', {})).status, 401)
  const { code, out } = await runIn(project, process.execPath, ['customers.ts', 'notes', 'globex'], env)
  assert.is(code, 1)
  assert.match(out, 'CUSTOMER: expected a customer that was added, got globex')
})

tenants.run()
