import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import { call, deploy, ended, handle, publish, type Run, runsOf } from '../support/build.ts'
import { startWithOther } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { JOBS } from './jobs.ts'

const server = await startWithOther()
const { api, other } = server
await deploy(api, 'work', { 'jobs.js': JOBS })

const calls = suite('svc:call')

calls('runs a function with its arguments', async () => {
  const run = await call(api, 'jobs/add', 1, 2)
  assert.equal([run.run_type, run.status, run.result, run.fn], ['call', 'succeeded', 3, 'jobs/add'])
  assert.equal((await call(api, 'jobs/all', null, [1], { a: 'b' })).result, [null, [1], { a: 'b' }])
  assert.equal((await call(api, 'jobs/all')).result, [])
})

calls('passes a large list of arguments', async () => {
  const text = 'é'.repeat(50_000)
  assert.equal((await call(api, 'jobs/all', text)).result, [text])
})

calls('may name the project', async () => {
  await deploy(api, 'second', { 'jobs.js': `export const add = () => 'second'` })
  const at = async (project: string) =>
    (await handle(api, 'svc:call', { fn: 'jobs/add', args: [1, 2], project })).result
  assert.equal([await at('work'), await at('second')], [3, 'second'])
})

const refused: [name: string, data: unknown, field: string][] = [
  ['nothing', null, 'event_data.fn'],
  ['a function that is not there', { fn: 'jobs/none' }, 'event_data.fn'],
  ['a namespace that is not there', { fn: 'none/add' }, 'event_data.fn'],
  ['a property every object has', { fn: 'jobs/constructor' }, 'event_data.fn'],
  ['a reference without a slash', { fn: 'add' }, 'event_data.fn'],
  ['arguments that are no array', { fn: 'jobs/add', args: { a: 1 } }, 'event_data.args'],
  ['a project that is not there', { fn: 'jobs/add', project: 'none' }, 'event_data.project'],
]
for (const [name, data, field] of refused) {
  calls(`of ${name} is refused`, async () => {
    const { status, code, message } = await api.refused('POST', '/events', { type: 'svc:call', data })
    assert.equal([status, code], [400, 'bad_request'])
    assert.ok(message.startsWith(`${field}: `), message)
  })
}

calls('finds no function of another environment', async () => {
  assert.is(
    (await other.refused('POST', '/events', { type: 'svc:call', data: { fn: 'jobs/add' } })).status,
    400,
  )
})

calls.run()

const running = async (fn: string, ...args: unknown[]): Promise<Run> => {
  const { event_id } = await publish(api, 'svc:call', { fn, args })
  return until(async () => (await runsOf(api, event_id)).find(({ status }) => status === 'running'))
}

const cancel = suite('svc:cancel')

cancel('ends a running run as cancelled', async () => {
  const { run_id } = await running('jobs/wait', 60_000)
  await publish(api, 'svc:cancel', { run_id })
  const run = await ended(api, run_id)
  assert.equal([run.status, run.result], ['cancelled', null])
  assert.ok(run.stop_time)
})

cancel('is final, whatever the function does afterwards (I4)', async () => {
  const { run_id } = await running('jobs/obeys')
  await publish(api, 'svc:cancel', { run_id })
  const run = await ended(api, run_id)
  await call(api, 'jobs/wait', 100) // the cancelled function has answered by now
  assert.equal(await api.get(`/runs/${run_id}`), run)
  assert.is(run.status, 'cancelled')
})

cancel('of a run that has ended changes nothing (I4)', async () => {
  const run = await call(api, 'jobs/add', 1, 2)
  const { event_id } = await publish(api, 'svc:cancel', { run_id: run.run_id })
  await call(api, 'jobs/wait', 50)
  assert.equal(await api.get(`/runs/${run.run_id}`), run)
  assert.equal(await runsOf(api, event_id), [])
})

cancel('finds no run of another environment', async () => {
  const { run_id } = await running('jobs/wait', 60_000)
  const { status, message } = await other.refused('POST', '/events', { type: 'svc:cancel', data: { run_id } })
  assert.equal([status, message], [404, `No run ${run_id}`])
  assert.is(
    (await other.refused('POST', '/events', { type: 'svc:cancel', data: { run_id: newId() } })).status,
    404,
  )
  assert.is((await other.refused('GET', `/runs/${run_id}`)).message, `No run ${run_id}`)
  assert.is((await api.get<Run>(`/runs/${run_id}`)).status, 'running')
  await publish(api, 'svc:cancel', { run_id })
  await ended(api, run_id)
})

cancel('of an invalid id is refused', async () => {
  for (const type of ['svc:cancel', 'svc:replay']) {
    for (const data of [null, {}, { run_id: 7 }, { run_id: 'none' }]) {
      const { status, message } = await api.refused('POST', '/events', { type, data })
      assert.equal([status, message], [400, 'event_data.run_id: expected a UUID'])
    }
  }
})

cancel.run()

const replay = suite('svc:replay')

replay('runs the same function on the same input again', async () => {
  const data = { n: 7, text: 'é'.repeat(50_000) }
  const run = await handle(api, 'seen', data)
  const again = await handle(api, 'svc:replay', { run_id: run.run_id })
  assert.equal([again.status, again.run_type, again.replay_of], ['succeeded', 'event', run.run_id])
  assert.equal((again.result as { event: unknown }).event, (run.result as { event: unknown }).event)
})

replay('accepts a call, and a run that failed', async () => {
  const sum = await call(api, 'jobs/add', 20, 22)
  assert.is((await handle(api, 'svc:replay', { run_id: sum.run_id })).result, 42)
  const failed = await handle(api, 'fails')
  assert.is((await handle(api, 'svc:replay', { run_id: failed.run_id })).error?.message, 'broken on purpose')
})

replay('runs on the build that is deployed now', async () => {
  const functionsOf = (n: number) => ({ 'v.js': `export const version = (x) => ({ x, n: ${n} })` })
  await deploy(api, 'versions', functionsOf(1))
  const run = await call(api, 'v/version', 'x')
  const { build_id } = await deploy(api, 'versions', functionsOf(2))
  const again = await handle(api, 'svc:replay', { run_id: run.run_id })
  assert.equal([again.result, again.build_id], [{ x: 'x', n: 2 }, build_id])
})

replay.after(() => server.stop())
replay.run()
