import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { cachesOf } from '../attacks/diskUse.ts'
import { withBlobs } from '../support/blobs.ts'
import { call, deploy, handle, publish, type Run, type Webhook } from '../support/build.ts'
import { openApi } from '../support/http.ts'
import { newId } from '../../src/ids.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig } from '../../src/process/config.ts'
import { installation } from '../support/installation.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { storedFiles } from './storedFiles.ts'

const server = await startServer({ env: {} })
const { dataDir } = server
const { operatorToken } = openSecrets(readConfig(installation(dataDir)))
const operator = openApi(server.url, operatorToken)
const at = (path: string) => `${server.url}/operator${path}`

const CODE = `
import { fn } from 'svc'
export const hook = fn({ webhook: { service: 's', path: '/x', method: 'GET' } }, () => 'served')
export const onLarge = fn({ 'on-event': 'large' }, ({ data }) => data)
export const forever = () => new Promise((resolve) => setTimeout(resolve, 100_000))
`

const newTenant = async () => {
  const slug = `o-${newId().slice(-12)}`
  await operator.post(at('/orgs'), { slug, plan: 'pro' })
  const { env_id } = await operator.post<{ env_id: string }>(at(`/orgs/${slug}/envs`), { name: 'dev' })
  const { token } = await operator.post<{ token: string }>(at(`/envs/${env_id}/api-keys`), { name: 'k' })
  return { slug, env_id, api: openApi(server.url, token) }
}
const status = async (method: string, path: string) => (await operator.send(method, at(path))).status
/** The stored bytes that belong to an environment or to nothing else on this server. */
const left = async (): Promise<string[]> => [
  ...(await withBlobs(dataDir, async (blobs) => {
    const keys: string[] = []
    for (const prefix of ['builds/', 'files/', 'payloads/', 'replies/', 'keys/'])
      for await (const { key } of blobs.list(prefix)) keys.push(key)
    return keys
  })),
  ...cachesOf(dataDir)
    .map((dir) => join(dir, 'builds'))
    .flatMap((dir) => (existsSync(dir) ? readdirSync(dir) : [])),
]

const deleted = suite('a deleted environment', { timeoutMs: 120_000 })

deleted('serves nothing, and leaves no bytes', async () => {
  const before = await left()
  const { env_id, slug, api } = await newTenant()
  await deploy(api, 'shop', { 'f.js': CODE })
  await api.post('/projects/shop/context', { key: 'KEY', value: 'secret', description: '' })
  await storedFiles({ api, dataDir }).put('a.txt', 'content')
  await handle(api, 'large', 'x'.repeat(200_000)) // its result is stored before the deletion
  await publish(api, 'svc:call', { fn: 'f/forever', args: [] })
  const isRunning = async () => {
    const { data } = await api.page<Run>('/runs?status=running')
    return data.some(({ fn }) => fn === 'f/forever')
  }
  await until(isRunning, { timeoutMs: 30_000 })
  const { data } = await api.page<Webhook>('/projects/shop/webhooks')
  const url = data[0]?.url ?? ''
  assert.is((await fetch(url)).status, 200)
  assert.ok((await left()).length > before.length + 4)

  assert.is(await status('DELETE', `/envs/${env_id}`), 204)
  assert.is((await api.send('GET', '/env')).status, 401)
  assert.is((await fetch(url)).status, 404)
  const { data: listed } = await operator.page<{ env_id: string }>(at(`/orgs/${slug}/envs`))
  assert.equal(listed, [])
  assert.is(await status('GET', `/envs/${env_id}/api-keys`), 404)
  await until(
    async () => {
      assert.equal((await left()).sort(), before.sort())
      return true
    },
    { timeoutMs: 30_000 },
  )
  assert.is(await status('DELETE', `/envs/${env_id}`), 204)
})

deleted('leaves its name to an environment of its own', async () => {
  const { env_id, slug } = await newTenant()
  assert.is(await status('DELETE', `/envs/${env_id}`), 204)
  const again = await operator.post<{ env_id: string }>(at(`/orgs/${slug}/envs`), { name: 'dev' })
  assert.is.not(again.env_id, env_id)
  const { token } = await operator.post<{ token: string }>(at(`/envs/${again.env_id}/api-keys`), {
    name: 'k',
  })
  const api = openApi(server.url, token)
  await deploy(api, 'shop', { 'f.js': `export const add = (a, b) => a + b` })
  assert.is((await call(api, 'f/add', 1, 2)).result, 3)
})

deleted('is one that existed: any other id is 404', async () => {
  assert.is(await status('DELETE', `/envs/${newId()}`), 404)
  assert.is(await status('DELETE', '/envs/nothing'), 404)
})

deleted('is needed before its organization is deleted: 409 names it', async () => {
  const { env_id, slug } = await newTenant()
  const { status: refused, code, message } = await operator.refused('DELETE', at(`/orgs/${slug}`))
  assert.equal([refused, code], [409, 'conflict'])
  assert.match(message, env_id)
  assert.is(await status('DELETE', `/envs/${env_id}`), 204)
  assert.is(await status('DELETE', `/orgs/${slug}`), 204)
  assert.is(await status('DELETE', `/orgs/${slug}`), 204)
  assert.is(await status('DELETE', '/orgs/never-there'), 404)
  const { data } = await operator.page<{ slug: string }>(at('/orgs?limit=100'))
  assert.not.ok(data.some((org) => org.slug === slug))
})

deleted('cannot be deleted with an API key', async () => {
  const { env_id, slug, api } = await newTenant()
  for (const path of [`/envs/${env_id}`, `/orgs/${slug}`])
    assert.is((await api.send('DELETE', at(path))).status, 401)
})
deleted.after(() => server.stop())
deleted.run()
