import { createHash } from 'node:crypto'
import { copyFileSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { newId } from '../../src/ids.ts'
import { newSession } from '../api/issuing.ts'
import { follow } from '../api/sse.ts'
import { deploy, handle, publish, type Webhook } from '../support/build.ts'
import { type Api, openApi } from '../support/http.ts'
import { type ServerProcess, spawnServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { attackSuite } from './attack.ts'
import type { Target, Tier } from './target.ts'

const hash = (text: string): string => createHash('sha256').update(text).digest('hex')
const VARIABLE = `
  import { createHash } from 'node:crypto'
  import { context } from 'svc'
  export const read = async () => createHash('sha256').update(await context('KEY')).digest('hex')
`
const secretsOf = (dataDir: string) =>
  JSON.parse(readFileSync(join(dataDir, 'secrets.json'), 'utf8')) as Readonly<Record<string, string>>

/** The texts of all wrapped keys. */
const wrappedIn = (dataDir: string): string[] =>
  readdirSync(join(dataDir, 'blobs', 'objects', 'keys~'), { recursive: true, encoding: 'utf8' })
    .map((name) => join(dataDir, 'blobs', 'objects', 'keys~', name))
    .filter((path) => statSync(path).isFile())
    .map((path) => readFileSync(path, 'latin1'))

/** The number of facts in the log of a service that has ended. */
const factsIn = (dataDir: string): unknown => {
  const db = new DatabaseSync(join(dataDir, 'log.db'))
  const row = db.prepare('SELECT sum(count) AS facts FROM log').get()
  db.close()
  return row?.['facts']
}

/** A service with one variable, and the API of its operator. */
const startWithVariable = async (tier: Tier, value: string) => {
  const server = await spawnServer({ env: { SVC_SANDBOX: tier } })
  await deploy(server.api, 'keeper', { 'main.ts': VARIABLE })
  await server.api.post('/projects/keeper/context', { key: 'KEY', value })
  const { env_id } = await server.api.get<{ env_id: string }>('/env')
  const operatorOf = ({ url }: ServerProcess) =>
    openApi(url, secretsOf(server.dataDir)['operator_token'] ?? '')
  return {
    server,
    env_id,
    operatorOf,
    restart: () => spawnServer({ dataDir: server.dataDir, env: { SVC_SANDBOX: tier } }),
  }
}

/** The variable as a function reads it: its hash, or the error. */
const readVariable = async (api: Api): Promise<string> => {
  const { result, error } = await handle(api, 'svc:call', { fn: 'main/read', project: 'keeper', args: [] })
  return typeof result === 'string' ? result : `refused: ${error?.code}`
}

const startRefused = async (dataDir: string, env: Readonly<Record<string, string>> = {}): Promise<string> => {
  const server = await spawnServer({ dataDir, env }).catch((error: unknown) => error as Error)
  if (!(server instanceof Error)) {
    await server.end('SIGKILL')
    throw new Error('the service started')
  }
  const line = /(?:^|: )(svc: .*)$/m.exec(server.message)?.[1]
  if (line === undefined || /\n\s+at /.test(server.message))
    throw new Error(`no single line: ${server.message}`)
  return line
}

const rotated = async (operator: Api): Promise<void> => {
  const at = `${operator.url}/operator/secrets/rotate-master`
  await operator.post(at, {})
  await until(async () => (await operator.get<{ status: string }>(at)).status === 'idle')
}

const statusOf = async (api: Api, path = '/env'): Promise<number> => (await api.send('GET', path)).status

/** Creates an API key of the attacker. */
const newKey = async ({ operator, server, attacker }: Target) => {
  const at = `${server.url}/operator/envs/${attacker.env_id}/api-keys`
  const { token, api_key_id } = await operator.post<{ token: string; api_key_id: string }>(at, { name: 'k' })
  return { api: openApi(server.url, token), at: `${server.url}/operator/api-keys/${api_key_id}` }
}

attackSuite('rotation and revocation', [
  {
    id: 'B/16-rotation',
    attempt:
      'read an erased secret: by the API, after a restart, or with a backup of the log from before its erasure',
    severity: 'high',
    async run({ tier }) {
      const value = `planted-${newId()}`
      const started = await startWithVariable(tier, value)
      const { env_id, operatorOf, restart } = started
      const { dataDir } = started.server
      if ((await readVariable(started.server.api)) !== hash(value))
        throw new Error('the variable is not read')
      await operatorOf(started.server).post(`${started.server.url}/operator/envs/${env_id}/rotate-data-key`)
      if ((await readVariable(started.server.api)) !== hash(value))
        throw new Error('the rotation lost the variable')
      await started.server.end('SIGTERM')
      const backup = join(dataDir, 'backup-of-log')
      copyFileSync(join(dataDir, 'log.db'), backup)

      let server = await restart()
      const erasure = await operatorOf(server).send(
        'DELETE',
        `${server.url}/operator/envs/${env_id}/data-keys`,
      )
      const after = await readVariable(server.api)
      await server.end('SIGTERM')
      for (const file of ['log.db', 'index.db', 'read-models.db']) rmSync(join(dataDir, file))
      copyFileSync(backup, join(dataDir, 'log.db'))
      server = await restart()
      const restored = await readVariable(server.api)
      await server.end('SIGKILL')
      if (erasure.status !== 204 || [after, restored].some((read) => !read.startsWith('refused')))
        throw new Error(`erase ${erasure.status}; after it ${after}; with the backup of the log ${restored}`)
      return `after the erasure ${after}; with the backup of the log ${restored}`
    },
  },
  {
    id: 'B/16-rotation/revocation',
    attempt: 'use a disabled or deleted key, a revoked session, or an open stream of theirs',
    severity: 'high',
    async run(target) {
      const { attacker, operator, server } = target
      const [disabled, deleted] = [await newKey(target), await newKey(target)]
      const session = await newSession(disabled.api, { '*:*': ['*'] })
      const asSession = openApi(server.url, session.token)
      const revoked = await newSession(attacker.api, { '*:*': ['*'] })
      await deploy(attacker.api, 'hooks', {
        'main.ts': `import { fn } from 'svc'
          export const hook = fn({ webhook: { service: 's', path: '/p', auth: 'required' } }, () => 1)`,
      })
      const [webhook] = (await attacker.api.page<Webhook>('/projects/hooks/webhooks')).data
      const called = async (api: Api) => (await api.send('POST', webhook?.url ?? '', { body: {} })).status
      const { stream_id } = await publish(attacker.api, 'nobody')
      const followers = [
        await follow(disabled.api, `/streams/${stream_id}/subscribe`),
        await follow(asSession, '/env/subscribe'),
        await follow(deleted.api, '/env/subscribe'),
      ]
      if ((await called(disabled.api)) !== 200) throw new Error('the webhook refuses a valid key')
      await operator.patch(disabled.at, { enabled: false })
      await operator.remove(deleted.at)
      await attacker.api.remove(`/sessions/${revoked.session_id}`)
      const after = {
        disabled: await statusOf(disabled.api),
        session: await statusOf(asSession),
        deleted: await statusOf(deleted.api),
        revoked: await statusOf(openApi(server.url, revoked.token)),
        webhook: await called(disabled.api),
      }
      for (const [name, status] of Object.entries(after))
        if (status !== 401) throw new Error(`${name}: ${status} after its end`)
      await until(() => followers.every(({ over }) => over))
      return `401 from the next request on: ${Object.keys(after).join(', ')}; open streams ended`
    },
  },
  {
    id: 'B/16-rotation/master',
    attempt:
      'start on the data of an installation with another master key, or with missing, damaged or foreign secrets',
    severity: 'low',
    async run({ tier }) {
      const { server } = await startWithVariable(tier, 'x')
      const { dataDir } = server
      await server.end('SIGTERM')
      const file = join(dataDir, 'secrets.json')
      const own = readFileSync(file, 'utf8')
      const foreign = JSON.stringify({
        ...secretsOf(dataDir),
        master_key: Buffer.alloc(32, 5).toString('base64'),
      })
      const facts = factsIn(dataDir)
      const lines = [
        await startRefused(dataDir, { SVC_MASTER_KEY: Buffer.alloc(32, 5).toString('base64') }),
        await startRefused(dataDir, {
          SVC_MASTER_KEY: Buffer.alloc(32, 5).toString('base64'),
          SVC_MASTER_KEY_PREVIOUS: Buffer.alloc(32, 6).toString('base64'),
        }),
      ]
      for (const text of [foreign, own.slice(0, 60), '', '[]']) {
        writeFileSync(file, text)
        lines.push(await startRefused(dataDir))
        if (readFileSync(file, 'utf8') !== text) throw new Error('the file was replaced')
      }
      rmSync(file)
      lines.push(await startRefused(dataDir))
      if (readdirSync(dataDir).includes('secrets.json')) throw new Error('secrets.json was created again')
      if (factsIn(dataDir) !== facts) throw new Error('a refused start wrote to the log')
      writeFileSync(file, own, { mode: 0o600 })
      const again = await spawnServer({ dataDir })
      const status = await statusOf(again.api)
      await again.end('SIGKILL')
      if (status !== 200) throw new Error(`with its own secrets: ${status}`)
      return `${lines.length} starts were refused in one line each, such as "${lines[0]?.slice(0, 90)}…"`
    },
  },
  {
    id: 'B/16-rotation/former-key',
    attempt: 'open the keys of an installation with a master key that was replaced',
    severity: 'high',
    async run({ tier }) {
      const value = `planted-${newId()}`
      const { server, operatorOf } = await startWithVariable(tier, value)
      const { dataDir } = server
      const former = secretsOf(dataDir)['master_key'] ?? ''
      const before = new Set(wrappedIn(dataDir))
      await rotated(operatorOf(server))
      await until(() => secretsOf(dataDir)['previous_master_key'] === undefined)
      const read = await readVariable(server.api)
      await server.end('SIGTERM')
      const kept = wrappedIn(dataDir).filter((text) => before.has(text))
      if (kept.length > 0) throw new Error(`${kept.length} keys are still wrapped with the former master key`)
      const line = await startRefused(dataDir, { SVC_MASTER_KEY: former })
      const again = await spawnServer({ dataDir })
      const after = await readVariable(again.api)
      await again.end('SIGKILL')
      if (read !== hash(value) || after !== hash(value))
        throw new Error(`the variable is ${read}, then ${after}`)
      return `${before.size} keys were wrapped again; ${line.slice(0, 100)}…`
    },
  },
  {
    id: 'B/16-rotation/resurrect',
    attempt: 'bring back an erased key by a rotation of the master key at the same moment',
    severity: 'high',
    async run({ tier }) {
      const { server, operatorOf, env_id } = await startWithVariable(tier, 'x')
      const operator = operatorOf(server)
      for (let round = 0; round < 5; round++) {
        await Promise.all([
          rotated(operator),
          operator.send('DELETE', `${server.url}/operator/envs/${env_id}/data-keys`),
        ])
        const read = await readVariable(server.api)
        if (!read.startsWith('refused')) throw new Error(`the erased variable is ${read}`)
      }
      const wrapped = wrappedIn(server.dataDir).length
      await server.end('SIGKILL')
      if (wrapped !== 1) throw new Error(`${wrapped} keys are stored, expected the root key alone`)
      return 'five erasures during rotations left the root key alone'
    },
  },
  {
    id: 'B/16-rotation/rights',
    attempt: 'replace the master key, or learn its progress, without the operator token',
    severity: 'critical',
    async run({ attacker, server }) {
      const at = `${server.url}/operator/secrets/rotate-master`
      const session = await newSession(attacker.api, { '*:*': ['*'] })
      const before = secretsOf(server.dataDir)['master_key']
      const statuses: number[] = []
      for (const key of [attacker.api.key, session.token, '', 'svc_operator_x', 'null'])
        for (const method of ['GET', 'POST', 'PUT', 'DELETE'])
          statuses.push(
            (await openApi(server.url, key).send(method, at, method === 'GET' ? {} : { body: {} })).status,
          )
      const wrong = statuses.filter((status) => ![401, 405, 429].includes(status))
      if (wrong.length > 0) throw new Error(`replied ${wrong.join(', ')}`)
      if (secretsOf(server.dataDir)['master_key'] !== before) throw new Error('the master key was replaced')
      return `${statuses.length} requests: ${[...new Set(statuses)].join(', ')}`
    },
  },
])
