import * as assert from 'uvu/assert'
import type { Permissions } from '../../src/events/org.ts'
import { deploy, type Run } from '../support/build.ts'
import { type Api, openApi } from '../support/http.ts'
import { addEnvironment, EVERYTHING, startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const EVALUATES: Permissions = { 'build:shop': ['execute'] }
const RICH: Permissions = {
  ...EVALUATES,
  'build:bank': ['execute'],
  'context:shop': ['read'],
  'event:paid': ['create'],
  'file:a.txt': ['read', 'update'],
  'file:b.txt': ['create'],
}
const dataDir = tempDir()
const keys = await addEnvironment(dataDir, 'team', EVERYTHING, EVALUATES, RICH, {
  ...RICH,
  'session:*': ['create', 'read', 'delete'],
})
const server = await startServer({ dataDir })
const [full, poor, rich, issuer] = keys.map((key) => openApi(server.url, key)) as [Api, Api, Api, Api]

await deploy(full, 'bank', { 'bank.js': `export const transfer = () => 'money'` })
await deploy(full, 'shop', {
  'f.js': `import { context } from 'svc'\nexport const price = async () => (await context('KEY')).length`,
})
await full.post('/projects/shop/context', { key: 'KEY', value: 'a secret of the shop' })
await full.send('PUT', '/files/upload/a.txt', { body: 'first' })

const evaluated = async (api: Api, code: string, more: object = {}): Promise<Run> =>
  api.post('/projects/shop/eval', { code, ...more })
const outcomeOf = async (api: Api, code: string, more: object = {}): Promise<unknown> => {
  const { status, result, error } = await evaluated(api, code, more)
  return status === 'succeeded' ? result : error?.message
}

const evaluating = suite('evaluated code')
evaluating.after(() => server.stop())

const calls: [what: string, code: string, result: unknown, lacking: string][] = [
  ['read context', `(await context('KEY')).length`, 20, 'context:'],
  ['publish an event', `typeof (await send('paid')).event_id`, 'string', 'event:paid create'],
  ['run a function of another project', `await run('bank/transfer')`, 'money', 'build:'],
  ['call a function of another project', `typeof (await call('bank/transfer')).run_id`, 'string', 'build:'],
  ['read a file', `(await files.get('a.txt')).size`, 5, 'file:a.txt read'],
  ['replace a file', `(await files.put('a.txt', 'again')).size`, 5, 'file:a.txt update'],
  ['create a file', `(await files.put('b.txt', 'b')).size`, 1, 'file:b.txt'],
]
for (const [what, code, result, permission] of calls) {
  evaluating(`may ${what} with the permission`, async () => {
    assert.equal(await outcomeOf(rich, code), result)
  })
  evaluating(`may not ${what} without the permission`, async () => {
    assert.match(String(await outcomeOf(poor, code)), `The credential lacks the permission ${permission}`)
  })
}

const refused: [what: string, code: string][] = [
  ['publish another event', `await send('order:created')`],
  ['send a control event', `await send('svc:call', { fn: 'bank/transfer' })`],
  ['list files with permissions for single files', `await files.list()`],
  ['read another file', `await files.get('b.txt')`],
  ['delete a file that it may only read', `await files.delete('a.txt')`],
  ['write a large file that it may only read', `await files.put('c.txt', new Uint8Array(6 << 20))`],
]
for (const [what, code] of refused)
  evaluating(`may not ${what}`, async () => {
    assert.match(String(await outcomeOf(rich, code)), 'The credential lacks the permission')
  })

evaluating('may start a deployed function of its project, which has its own rights', async () => {
  assert.is(await outcomeOf(poor, `await run('f/price')`), 20)
})

evaluating('may emit live data, which belongs to its own run', async () => {
  assert.is(await outcomeOf(poor, `await emit('progress', 1)`), null)
})

evaluating('shares no process and no declarations with another credential', async () => {
  assert.is(
    await outcomeOf(rich, `globalThis.left = 1; const mine = process.pid; mine`, { repl_id: 'r' }),
    await outcomeOf(rich, 'mine', { repl_id: 'r' }),
  )
  assert.match(String(await outcomeOf(poor, 'mine', { repl_id: 'r' })), 'mine is not defined')
  assert.is(await outcomeOf(poor, 'globalThis.left'), null)
})

evaluating('may do nothing more once its credential is revoked', async () => {
  const issued = await issuer.post<{ session_id: string; token: string }>('/sessions', { permissions: RICH })
  const { session_id, token } = issued
  const session = openApi(server.url, token)
  const running = outcomeOf(
    session,
    `await emit('begun'); for (;;) { await context('KEY'); await new Promise((r) => setTimeout(r, 20)) }`,
  )
  await until(async () => (await full.page<Run>('/runs?status=running&type=eval')).data.length > 0)
  await issuer.remove(`/sessions/${session_id}`)
  assert.match(String(await running), 'The credential that evaluates this code is no longer valid')
})

evaluating.run()
