import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import { deploy, ended, type Run } from '../support/build.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { callTool, connect, textOf } from './mcp/client.ts'

const server = await startServer({ env: { SVC_WEBHOOK_TIMEOUT_MS: '300000' } }) // calls wait for the test
const { api } = server
await deploy(api, 'shop', {
  'shop.js': `
import { setTimeout } from 'node:timers/promises'
import { files, fn } from 'svc'
const isThere = async (path) => (await files.list({ prefix: path })).length > 0
const asks = async (path) => {
  await files.put(path + '.asked', 'x')
  while (!(await isThere(path + '.answered'))) await setTimeout(50)
}
export const waits = fn({ timeout: 300_000 }, (path, many) => asks(path).then(() => many.length))
export const tool = fn({ mcp: { service: 'shop', description: 'Asks' } }, ({ path, many }) => asks(path).then(() => many.length))
export const large = fn({ mcp: { service: 'shop', description: 'Large' } }, ({ many }) => many.slice(0, 100_000))
`,
})
const { client } = await connect(api.url, api.key)

/** A text that counts as all values that an organization may have in memory: each bracket could be a list. */
const MANY = '['.repeat(1_000_000)
/** The code of an evaluation that counts as half of them. */
const CODE = '['.repeat((256 << 10) - 1000)
/** A list that does not fit beside it. */
const LONGEST_LIST = '/runs?limit=100'

const isThere = async (path: string) => (await api.page(`/files?prefix=${path}`)).data.length > 0
const put = (path: string) => api.send('PUT', `/files/upload/${path}`, { body: 'x' })

/** The memory of a call that waits is free: a list of the same organization is answered. */
const leavesMemory = async <T>(path: string, calling: Promise<T>): Promise<T> => {
  calling.catch(() => {}) // awaited below
  try {
    await until(() => isThere(`${path}.asked`), { timeoutMs: 30_000, everyMs: 50 })
    const { status, text } = await api.send('GET', LONGEST_LIST)
    assert.is(status, 200, text)
  } finally {
    await put(`${path}.answered`)
    await calling.catch(() => {})
  }
  return calling
}

const waiting = suite('a call that waits for its run', { timeoutMs: 60_000 })

for (const [how, headers] of [
  ['?wait=', {}],
  ['?wait= and an Idempotency-Key', { 'Idempotency-Key': newId() }],
] as const)
  waiting(`has no memory for its arguments any more: ${how}`, async () => {
    const path = newId()
    const body = { args: [path, MANY] }
    const called = api.send('POST', '/functions/shop/shop%2Fwaits?wait=60', { body, headers })
    const { json } = await leavesMemory(path, called)
    const { run_id } = (json as { data: { run_id: string } }).data
    assert.is((await ended(api, run_id)).result, MANY.length)
  })

waiting('whose client leaves is continued by a repetition with its Idempotency-Key', async () => {
  const path = newId()
  const client = new AbortController()
  const sent = { body: { args: [path, 'many'] }, headers: { 'Idempotency-Key': newId() } }
  const send = (signal?: AbortSignal) =>
    api.send('POST', '/functions/shop/shop%2Fwaits?wait=60', { ...sent, ...(signal && { signal }) })
  const left = send(client.signal).then(
    () => 'answered',
    (error: Error) => error.name,
  )
  await until(() => isThere(`${path}.asked`), { timeoutMs: 30_000, everyMs: 50 })
  client.abort()
  assert.is(await left, 'AbortError')
  const repeated = send()
  await put(`${path}.answered`)
  const { status, headers, text } = await repeated
  assert.equal([status, headers.get('idempotency-replayed')], [200, null], text)
  const again = await send()
  assert.equal([again.text, again.headers.get('idempotency-replayed')], [text, 'true'])
  const runs = (await api.page<Run>('/runs?fn=shop/waits')).data
  assert.is(runs.filter(({ result }) => result === 'many'.length).length, 1)
})

const JOBS = `
import { setTimeout } from 'node:timers/promises'
import { files, fn } from 'svc'
const isThere = async (path) => (await files.list({ prefix: path })).length > 0
export const slow = fn({ timeout: 300_000 }, async (path) => {
  await files.put(path + '.asked', 'x')
  while (!(await isThere(path + '.answered'))) await setTimeout(50)
  return path
})
`
const WITHOUT = { 'other.js': 'export const other = () => 1' }
const changes: Readonly<Record<string, (project: string) => Promise<unknown>>> = {
  'a deployment removes its function': (project) => deploy(api, project, WITHOUT),
  'its project is renamed': (project) => api.patch(`/projects/${project}`, { name: `${project}-renamed` }),
  'another project has its name': async (project) => {
    await api.patch(`/projects/${project}`, { name: `${project}-earlier` })
    await deploy(api, project, { 'jobs.js': JOBS })
  },
}
for (const [n, [what, change]] of Object.entries(changes).entries())
  waiting(`is continued by a repetition although ${what} meanwhile`, async () => {
    const [path, project] = [newId(), `jobs-${n}`]
    await deploy(api, project, { 'jobs.js': JOBS })
    const client = new AbortController()
    const sent = { body: { args: [path] }, headers: { 'Idempotency-Key': newId() } }
    const at = `/functions/${project}/jobs%2Fslow?wait=60`
    const left = api.send('POST', at, { ...sent, signal: client.signal }).catch(() => {})
    await until(() => isThere(`${path}.asked`), { timeoutMs: 30_000, everyMs: 50 })
    client.abort()
    await left
    await change(project)
    const repeated = api.send('POST', at, sent)
    await put(`${path}.answered`)
    const { status, json, text } = await repeated
    assert.is(status, 200, text)
    const { data } = json as { data: { run_id: string; result: unknown } }
    assert.is(data.result, path)
    assert.is((await api.get<Run>(`/runs/${data.run_id}`)).result, path)
    assert.is(
      (await api.page<Run>('/runs?fn=jobs/slow')).data.filter(({ result }) => result === path).length,
      1,
    )
  })

waiting('has no memory for its code any more: an evaluation', async () => {
  const path = newId()
  const code = `/*${CODE}*/ await run('shop/waits', '${path}', '[')`
  const called = api.send('POST', '/projects/shop/eval', { body: { code } })
  const { json } = await leavesMemory(path, called)
  assert.is((json as { data: { result: number } }).data.result, 1)
})

waiting('has no memory for its arguments any more: a tool without a stream', async () => {
  const path = newId()
  const called = callTool(client, 'shop_shop_tool', { path, many: MANY })
  assert.equal((await leavesMemory(path, called)).structuredContent, { result: MANY.length })
})

waiting('does not wait for its own memory to return a large result', async () => {
  const called = await callTool(client, 'shop_shop_large', { many: MANY })
  assert.not(called.isError, textOf(called))
  assert.equal(called.structuredContent, { result: MANY.slice(0, 100_000) })
})

waiting('does not wait for its own memory to return a list', async () => {
  const params = { name: 'list_runs', arguments: {}, _meta: { many: MANY } }
  const { isError, content } = await client.callTool(params)
  assert.not(isError, JSON.stringify(content))
})

waiting.after(async () => {
  await client.close()
  await server.stop()
})
waiting.run()
