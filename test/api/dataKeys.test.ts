import { createHash } from 'node:crypto'
import * as assert from 'uvu/assert'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig } from '../../src/process/config.ts'
import { newId } from '../../src/ids.ts'
import { deploy, type Webhook } from '../support/build.ts'
import { openApi } from '../support/http.ts'
import { installation } from '../support/installation.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

interface Rotated {
  readonly env_id: string
  readonly key_id: string
  readonly resealed: number
}

const server = await startServer()
const { api } = server
const { operatorToken } = openSecrets(readConfig(installation(server.dataDir)))
const operator = openApi(server.url, operatorToken)
const { env_id } = await api.get<{ env_id: string }>('/env')
const at = (path: string, env = env_id): string => `${server.url}/operator/envs/${env}${path}`
const rotate = (): Promise<Rotated> => operator.post(at('/rotate-data-key'))

const hash = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Values of variables are masked in results, so the function returns their hash. */
const code = `import { createHash } from 'node:crypto'
  import { context, fn } from 'svc'
  const hash = (text) => createHash('sha256').update(text).digest('hex')
  export const tell = (key) => context(key).then(hash, ({ code }) => code)
  export const hook = fn({ webhook: { service: 'bank', path: '/paid' } }, ({ headers }) => ({ got: headers.cookie }))`
await deploy(api, 'one', { 'f.js': code })
await api.post('/projects', { name: 'two' })
await api.post('/projects', { name: 'empty' })
const valueOf = async (key: string): Promise<unknown> =>
  (await api.post<{ result: unknown }>('/projects/one/eval', { code: `await run('f/tell', '${key}')` }))
    .result
const hooked = async (): Promise<unknown> => {
  const [webhook] = (await api.page<Webhook>('/projects/one/webhooks')).data
  return (await api.send('POST', webhook?.url ?? '', { headers: { cookie: 'c' } })).json
}
const create = (project: string, key: string, value: string) =>
  api.post(`/projects/${project}/context`, { key, value })

const rotation = suite('rotating data keys')

rotation('seals every context variable again, and earlier ciphertext can still be unsealed', async () => {
  await create('one', 'A', 'first')
  await create('one', 'B', 'other')
  await create('two', 'A', 'of two')
  const before = await api.page('/projects/one/context')
  const once = await rotate()
  assert.equal([once.env_id, once.resealed], [env_id, 3])
  assert.equal([await valueOf('A'), await valueOf('B')], ['first', 'other'].map(hash))
  assert.equal(await api.page('/projects/one/context').then(({ data }) => data), before.data)
  await api.send('PUT', '/projects/one/context/A', { body: { value: 'second' } })
  const twice = await rotate()
  assert.is.not(twice.key_id, once.key_id)
  assert.is(twice.resealed, 3)
  assert.is(await valueOf('A'), hash('second'))
  assert.equal(await hooked(), { got: 'c' })
})

rotation('is reserved for the operator, for an existing environment', async () => {
  for (const [method, path] of [
    ['POST', '/rotate-data-key'],
    ['DELETE', '/data-keys'],
  ] as const) {
    assert.is((await api.refused(method, at(path))).status, 401)
    assert.is((await operator.refused(method, at(path, newId()))).status, 404)
  }
})
rotation.run()

const erasure = suite('destroying the data keys of an environment')
erasure('erases its secrets permanently, and new ones can be stored', async () => {
  await create('one', 'DOOMED', 'x')
  assert.is(await valueOf('DOOMED'), hash('x'))
  const before = await api.page<{ key: string }>('/projects/one/context')
  assert.is((await operator.send('DELETE', at('/data-keys'))).status, 204)
  assert.is(await valueOf('DOOMED'), 'not_found')
  assert.is((await rotate()).resealed, 0)
  assert.equal((await api.page('/projects/one/context')).data, before.data)
  await api.send('PUT', '/projects/one/context/DOOMED', { body: { value: 'new' } })
  assert.is(await valueOf('DOOMED'), hash('new'))
  assert.equal(await hooked(), { got: 'c' })
  assert.is((await operator.send('DELETE', at('/data-keys'))).status, 204)
})
erasure.after(() => server.stop())
erasure.run()
