import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import type { Static } from 'typebox'
import type { MasterKeyStatus } from '../../src/api/schemas.ts'
import { newId } from '../../src/ids.ts'
import { readConfig } from '../../src/process/config.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { deploy, ended, handle, type Run, type Webhook } from '../support/build.ts'
import { type Api, openApi } from '../support/http.ts'
import { installation } from '../support/installation.ts'
import { type ServerProcess, spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import { newSession } from './issuing.ts'

/** The master key is in `secrets.json`, on all engines that the other tests may use. */
const EMBEDDED = {
  SVC_EVENT_STORE: 'embedded:',
  SVC_READ_MODELS: 'embedded:',
  SVC_BLOBS: 'embedded:',
  SVC_REDIS: '',
  SVC_MASTER_KEY: '',
}

const hash = (text: string): string => createHash('sha256').update(text).digest('hex')
const newKey = (): string => randomBytes(32).toString('base64')

/** Results are stored as they are, so the functions return hashes of what they received. */
const FUNCTIONS = {
  'hook.js': `import { createHash } from 'node:crypto'
    import { context, fn } from 'svc'
    const hash = (text) => createHash('sha256').update(text).digest('hex')
    export const hook = fn({ webhook: { service: 'bank', path: '/paid' } }, ({ headers }) => hash(headers.cookie))
    export const variable = async () => hash(await context('KEY'))`,
}

const operatorOf = ({ url, dataDir }: ServerProcess, env: Readonly<Record<string, string>>): Api =>
  openApi(`${url}/operator`, openSecrets(readConfig(installation(dataDir, env))).operatorToken)

type Status = Static<typeof MasterKeyStatus>

const AT = '/operator/secrets/rotate-master'
const statusOf = (operator: Api, url: string): Promise<Status> => operator.get(url + AT)
const rotate = (operator: Api, url: string, body: object = {}): Promise<Status> =>
  operator.post(url + AT, body)

const rotation = suite('the rotation of the master key', { timeoutMs: 60_000 })

/** Plants something of each kind that depends on the master key, and returns a check that all of it still works. */
const plant = async ({ api, url }: ServerProcess, operator: Api) => {
  await deploy(api, 'bank', FUNCTIONS)
  await api.post('/projects/bank/context', { key: 'KEY', value: 'planted-variable' })
  const { env_id } = await api.get<{ env_id: string }>('/env')
  const { token } = await operator.post<{ token: string }>(`${url}/operator/envs/${env_id}/api-keys`, {
    name: 'k',
  })
  const session = await newSession(api, { '*:*': ['*'] })
  const [webhook] = (await api.page<Webhook>('/projects/bank/webhooks')).data
  const path = new URL(webhook?.url ?? '').pathname
  const headers = { cookie: 'planted-cookie' }
  const keyed = { body: { name: `p-${newId()}` }, headers: { 'Idempotency-Key': 'planted' } }
  const { json: created } = await api.send('POST', '/projects', keyed)
  assert.equal((await api.send('POST', url + path, { headers, body: {} })).json, hash('planted-cookie'))
  const [run] = (await api.page<Run>('/runs?type=call')).data

  return async (server: ServerProcess): Promise<void> => {
    for (const each of [api.key, token, session.token]) {
      const known = await openApi(server.url, each).send('GET', '/env')
      assert.is(known.status, 200, known.text)
    }
    const called = await server.api.send('POST', server.url + path, { headers, body: {} })
    assert.equal(called.json, hash('planted-cookie'))
    const variable = await handle(server.api, 'svc:call', { fn: 'hook/variable', project: 'bank', args: [] })
    assert.equal(variable.result, hash('planted-variable'))
    const { run_id } = await replayOf(server.api, run?.run_id ?? '')
    assert.equal((await ended(server.api, run_id)).result, hash('planted-cookie'))
    const repeated = await server.api.send('POST', '/projects', keyed)
    assert.is(repeated.headers.get('idempotency-replayed'), 'true')
    assert.equal(repeated.json, created)
  }
}

const replayOf = (api: Api, run_id: string): Promise<Run> => handle(api, 'svc:replay', { run_id })

const done = (operator: Api, url: string): Promise<Status> =>
  until(async () => {
    const status = await statusOf(operator, url)
    return status.status === 'idle' && status.remaining === 0 ? status : undefined
  })

rotation(
  'keeps credentials, webhook URLs, variables, replays and stored replies, also after a restart',
  async () => {
    const first = await spawnServer({ env: EMBEDDED })
    const operator = operatorOf(first, EMBEDDED)
    const check = await plant(first, operator)
    const before = readFileSync(join(first.dataDir, 'secrets.json'), 'utf8')
    const old = (JSON.parse(before) as { master_key: string }).master_key

    const { previous_master_key_id, master_key_id } = await rotate(operator, first.url)
    assert.is.not(previous_master_key_id, master_key_id)
    const { rewrapped, ended_at } = await done(operator, first.url)
    assert.ok(rewrapped >= 3)
    assert.type(ended_at, 'string')
    await check(first)

    const file = () => readFileSync(join(first.dataDir, 'secrets.json'), 'utf8')
    await until(() => !file().includes('previous_master_key'))
    assert.not.match(file(), old)
    for (const key of [old, (JSON.parse(file()) as { master_key: string }).master_key])
      assert.not(first.output.join('').includes(key))
    await first.end('SIGTERM')
    const second = await spawnServer({ dataDir: first.dataDir, env: EMBEDDED })
    await check(second)
    await second.end('SIGTERM')

    const refused = await spawnServer({
      dataDir: first.dataDir,
      env: { ...EMBEDDED, SVC_MASTER_KEY: old },
    }).then(
      () => new Error('Expected a refusal'),
      (error: unknown) => error as Error,
    )
    assert.match(refused.message, /svc: SVC_MASTER_KEY: .*was replaced by.*$/m)
  },
)

const storedKey = (dataDir: string): string =>
  (JSON.parse(readFileSync(join(dataDir, 'secrets.json'), 'utf8')) as { master_key: string }).master_key

rotation('continues after kill -9 at any moment', async () => {
  let server = await spawnServer({ env: EMBEDDED })
  const { dataDir } = server
  const check = await plant(server, operatorOf(server, EMBEDDED))
  const moments: readonly ((asked: Promise<Status>, before: string) => Promise<unknown>)[] = [
    () => Promise.resolve(),
    (_, before) => until(() => storedKey(dataDir) !== before), // the former key is there for a moment only
    (asked) => asked,
    async (asked) => (await asked, statusOf(operatorOf(server, EMBEDDED), server.url)),
  ]
  for (const moment of moments) {
    const before = storedKey(dataDir)
    const asked = rotate(operatorOf(server, EMBEDDED), server.url)
    asked.catch(() => {}) // the service is killed before it replies
    await moment(asked, before)
    await server.end('SIGKILL')
    server = await spawnServer({ dataDir, env: EMBEDDED })
    await done(operatorOf(server, EMBEDDED), server.url)
    await check(server)
  }
  await rotate(operatorOf(server, EMBEDDED), server.url)
  await done(operatorOf(server, EMBEDDED), server.url)
  await check(server)
  await server.end('SIGTERM')
})

rotation(
  'with SVC_MASTER_KEY takes a restart with both keys, a request, and a restart with the new key',
  async () => {
    const dataDir = tempDir()
    const [old, next] = [newKey(), newKey()]
    const envOf = (SVC_MASTER_KEY: string, SVC_MASTER_KEY_PREVIOUS = '') => ({
      ...EMBEDDED,
      SVC_MASTER_KEY,
      SVC_MASTER_KEY_PREVIOUS,
    })
    let server = await spawnServer({ dataDir, env: envOf(old) })
    const { api } = server
    const former = operatorOf(server, envOf(old))
    const check = await plant(server, former)
    assert.match((await former.refused('POST', server.url + AT, {})).message, 'SVC_MASTER_KEY_PREVIOUS')
    await server.end('SIGTERM')

    server = { ...(await spawnServer({ dataDir, env: envOf(next, old) })), api }
    server = { ...server, api: openApi(server.url, api.key) }
    await check(server)
    const operator = operatorOf(server, envOf(next))
    await rotate(former, server.url)
    await done(operator, server.url)
    await check(server)
    assert.not.match(server.output.join(''), 'not shown again')
    await server.end('SIGTERM')

    server = await spawnServer({ dataDir, env: envOf(next) })
    server = { ...server, api: openApi(server.url, api.key) }
    await check(server)
    assert.is((await former.refused('GET', server.url + AT)).status, 401)
    await server.end('SIGTERM')
  },
)
rotation.run()
