import * as assert from 'uvu/assert'
import { isId } from '../../src/ids.ts'
import { call, deploy, type Event, handled, type Run } from '../support/build.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

/** Functions that use every call of the SDK. */
const FUNCTIONS = `
import { call, context, currentRun, emit, files, fn, run, send } from 'svc'

export const sends = async () => [await send('sent', { n: 1 }), await send('sent:nothing')]
export const onSent = fn({ 'on-event': 'sent' }, (event) => event)
export const calls = () => call('sdk/add', 1, 2)
export const runs = async () => ({ sum: await run('sdk/add', 1, 2), other: await run('other/twice', 21) })
export const runsFailing = () => run('sdk/throws')
export const survives = () => run('sdk/throws').catch(({ message }) => ({ message }))
export const runsNothing = () => run('sdk/nothing')
export const deep = (n) => (n === 0 ? 'bottom' : run('sdk/deep', n - 1))
export const emits = async () => { await emit('token', 'a'); await emit('token'); return 'done' }
export const add = (a, b) => a + b
export const throws = () => { throw new Error('from below') }
export const wrongUse = async () => Promise.all([send(''), send(7), call('no-slash'), emit(null)].map((p) => p.catch((e) => e.message)))
export const missing = async () => Promise.all([context('KEY'), files.get('a.txt')].map((p) => p.catch((e) => e.code)))
export const who = () => { const { signal, ...info } = currentRun(); return { info, aborted: signal.aborted } }
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
export const late = async () => { setTimeout(() => send('too:late').catch(() => {}), 50); return 'gone' }
`

const server = await startServer()
const { api } = server
await deploy(api, 'sdk', { 'sdk.js': FUNCTIONS })
await deploy(api, 'other', { 'other.js': `export const twice = (n) => n * 2` })

const sdk = suite('user code')

sdk('sends events on its own stream, which start their handlers', async () => {
  const run = await call(api, 'sdk/sends')
  const [sent, plain] = run.result as [{ event_id: string }, { event_id: string }]
  const event = await api.get<Event>(`/events/${sent.event_id}`)
  assert.equal([event.event_type, event.event_data, event.stream_id], ['sent', { n: 1 }, run.stream_id])
  assert.is((await api.get<Event>(`/events/${plain.event_id}`)).event_data, null)
  const [handler] = (await handled(api, sent.event_id)) as [Run]
  assert.is(handler.stream_id, run.stream_id)
  assert.is((handler.result as { source: string }).source, `run:${run.run_id}`)
})

sdk('calls a function in the background', async () => {
  const run = await call(api, 'sdk/calls')
  const { event_id, run_id } = run.result as { event_id: string; run_id: string }
  const [called] = (await handled(api, event_id)) as [Run]
  assert.equal(
    [called.run_id, called.run_type, called.result, called.stream_id],
    [run_id, 'call', 3, run.stream_id],
  )
})

sdk('starts child runs and receives their results', async () => {
  const run = await call(api, 'sdk/runs')
  assert.equal(run.result, { sum: 3, other: 42 })
  const { data } = await api.page<Run>('/runs?type=run&limit=2')
  assert.equal(
    data.map(({ parent_run_id, stream_id }) => [parent_run_id, stream_id]),
    Array(2).fill([run.run_id, run.stream_id]),
  )
  assert.equal(
    data.map(({ project_name, result }) => [project_name, result]),
    [
      ['other', 42],
      ['sdk', 3],
    ],
  )
})

sdk('runs children of children', async () => assert.is((await call(api, 'sdk/deep', 12)).result, 'bottom'))

sdk('receives the failure of a child as an error', async () => {
  const run = await call(api, 'sdk/runsFailing')
  assert.equal([run.status, run.error?.code], ['failed', 'function_failed'])
  assert.match(run.error?.message ?? '', 'from below')
  const { message } = (await call(api, 'sdk/survives')).result as { message: string }
  assert.match(message, 'from below')
})

sdk('rejects for a missing function', async () => {
  const { status, error } = await call(api, 'sdk/runsNothing')
  assert.is(status, 'failed')
  assert.match(error?.message ?? '', 'No function "sdk/nothing"')
})

sdk('rejects with instructions when the SDK is used wrongly', async () => {
  const messages = (await call(api, 'sdk/wrongUse')).result as string[]
  assert.is(messages.length, 4)
  for (const message of messages) assert.match(message, /^Expected .*, got /)
})

sdk('rejects with not_found for a missing context variable and a missing file', async () => {
  assert.equal((await call(api, 'sdk/missing')).result, ['not_found', 'not_found'])
})

sdk('knows which run it is', async () => {
  const run = await call(api, 'sdk/who')
  const { run_id, stream_id, run_type, attempt, event_id, origin_run_id, project_id, project_name } = run
  const info = { run_id, stream_id, run_type, attempt, event_id, origin_run_id, project_id, project_name }
  assert.equal(run.result, { info, aborted: false })
  assert.ok(isId(run_id))
})

sdk('cannot send once its run is over', async () => {
  await call(api, 'sdk/late')
  await call(api, 'sdk/pause', 150) // outlasts its wait, in the same process
  assert.is((await api.page('/events?event_type=too:late')).pagination.total, 0)
})

sdk.after(() => server.stop())
sdk.run()
