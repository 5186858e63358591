import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import { call, deploy, ended, type Event, type Run, runsOf } from '../support/build.ts'
import { openApi } from '../support/http.ts'
import { startWithOther } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { JOBS } from './jobs.ts'

interface Called {
  readonly run_id: string
  readonly event_id: string
  readonly stream_id: string
  readonly status: string | null
  readonly result: unknown
  readonly error?: { readonly message: string }
}

const server = await startWithOther()
const { api, other } = server
await deploy(api, 'work', {
  'jobs.js': `${JOBS}
    import { fn as again } from 'svc'
    export const third = again({ retry: { attempts: 2, delay: 1 } }, failing(3))`,
  'deep/er.js': 'export const add = (a, b) => a + b',
})

const ask = async (path: string, body: unknown = {}, headers: Record<string, string> = {}) => {
  const { status, json, headers: sent } = await api.send('POST', path, { body, headers })
  return { status, data: (json as { data: Called }).data, location: sent.get('location'), sent }
}

const calls = suite('POST /v1/functions')

calls('waits for the result', async () => {
  const { status, data } = await ask('/functions/work/jobs%2Fadd?wait=30', { args: [1, 2] })
  assert.equal([status, data.status, data.result], [200, 'succeeded', 3])
  const run = await api.get<Run>(`/runs/${data.run_id}`)
  assert.equal([run.event_id, run.stream_id, run.result], [data.event_id, data.stream_id, 3])
  assert.is((await ask('/functions/work/deep.er%2Fadd?wait=30', { args: [3, 4] })).data.result, 7)
})

calls('returns a large result, and no result', async () => {
  const text = 'é'.repeat(50_000)
  assert.equal((await ask('/functions/work/jobs%2Fall?wait=30', { args: [text] })).data.result, [text])
  assert.equal((await ask('/functions/work/jobs%2Fall?wait=30')).data.result, [])
})

calls('returns the error of a failed run, and waits for retries', async () => {
  const { status, data } = await ask('/functions/work/jobs%2FthrowsText?wait=30', { args: ['Sold out'] })
  assert.equal([status, data.status, data.result, data.error?.message], [200, 'failed', null, 'Sold out'])
  const retried = await ask('/functions/work/jobs%2Fthird?wait=30')
  assert.equal([retried.data.status, retried.data.result], ['succeeded', { tried: 3, attempt: 3 }])
})

calls('returns 202 while the run continues', async () => {
  const { status, data, location } = await ask('/functions/work/jobs%2Fwait', { args: [1] })
  assert.equal([status, data.status, data.result, location], [202, null, null, `/v1/runs/${data.run_id}`])
  await until(async () => (await runsOf(api, data.event_id)).length > 0)
  assert.is((await ended(api, data.run_id)).result, 'waited')
  const late = await ask('/functions/work/jobs%2Fwait?wait=1', { args: [60_000] })
  assert.equal([late.status, late.data.status], [202, null])
  await until(async () => (await runsOf(api, late.data.event_id)).length > 0)
  await ask(`/runs/${late.data.run_id}/cancel`)
  assert.is((await ended(api, late.data.run_id)).status, 'cancelled')
})

calls('happens once for an Idempotency-Key', async () => {
  const headers = { 'Idempotency-Key': newId() }
  const first = await ask('/functions/work/jobs%2Fadd?wait=30', { args: [1, 2] }, headers)
  const again = await ask('/functions/work/jobs%2Fadd?wait=30', { args: [1, 2] }, headers)
  assert.equal(again.data, first.data)
  assert.is(again.sent.get('idempotency-replayed'), 'true')
  assert.is((await runsOf(api, first.data.event_id)).length, 1)
})

for (const [path, body, status, told] of [
  ['/functions/nothing/jobs%2Fadd', {}, 404, 'No project "nothing"'],
  ['/functions/work/jobs%2Fnone', {}, 404, 'No function "jobs/none" in the deployed build of work'],
  ['/functions/work/jobs%2Fconstructor', {}, 404, 'No function'],
  ['/functions/work/add', {}, 400, 'ref: expected a function as ns/var, got "add"'],
  ['/functions/work/jobs/add', {}, 404, 'did you mean /v1/functions/work/jobs%2Fadd?'],
  ['/functions/work/jobs%2Fad', {}, 404, 'did you mean jobs/add?'],
  ['/functions/work/jobs%2Fadd?wait=61', {}, 400, 'wait: must be <= 60, got 61'],
  ['/functions/work/jobs%2Fadd', { args: { a: 1 } }, 400, 'args: must be array'],
  ['/functions/work/jobs%2Fadd', { arguments: [] }, 400, 'arguments: unknown field; expected args'],
] as const)
  calls(`refuses ${path} with ${JSON.stringify(body)}`, async () => {
    const refused = await api.refused('POST', path, body)
    assert.is(refused.status, status)
    assert.match(refused.message, told)
  })

calls('finds no function of another environment', async () => {
  assert.is((await other.refused('POST', '/functions/work/jobs%2Fadd', {})).status, 404)
})

calls.run()

const control = suite('POST /v1/runs/{run_id}')

control('replay runs the function again', async () => {
  const run = await call(api, 'jobs/add', 1, 2)
  const event = await api.post<Event>(`/runs/${run.run_id}/replay`)
  assert.equal([event.event_type, event.event_data], ['svc:replay', { run_id: run.run_id }])
  const [again] = await until(async () => {
    const runs = await runsOf(api, event.event_id)
    return runs.length > 0 ? runs : undefined
  })
  assert.is(again?.replay_of, run.run_id)
  assert.is((await ended(api, again?.run_id ?? '')).result, 3)
})

control('cancel leaves an ended run as it is', async () => {
  const run = await call(api, 'jobs/add', 1, 2)
  const event = await api.post<Event>(`/runs/${run.run_id}/cancel`)
  assert.equal([event.event_type, event.event_data], ['svc:cancel', { run_id: run.run_id }])
  assert.equal(await api.get(`/runs/${run.run_id}`), run)
})

control('of an unknown run or one of another environment is a 404', async () => {
  const { run_id } = await call(api, 'jobs/add', 1, 2)
  for (const action of ['replay', 'cancel'])
    for (const [as, id] of [
      [api, newId()],
      [api, 'x'],
      [other, run_id],
    ] as const) {
      const { status, message } = await as.refused('POST', `/runs/${id}/${action}`)
      assert.equal([status, message], [404, `No run ${id}`])
    }
})

control('needs the permissions of the events', async () => {
  const { run_id } = await call(api, 'jobs/add', 1, 2)
  const { token } = await api.post<{ token: string }>('/service-keys', {
    name: 'limited',
    permissions: { 'event:svc:cancel': ['create'] },
  })
  const limited = openApi(api.url, token)
  assert.is((await limited.send('POST', `/runs/${run_id}/cancel`)).status, 201)
  assert.is((await limited.send('POST', `/runs/${run_id}/replay`)).status, 403)
  assert.is((await limited.send('POST', '/functions/work/jobs%2Fadd', { body: {} })).status, 403)
})

control.after(() => server.stop())
control.run()
