import * as assert from 'uvu/assert'
import { isId } from '../../src/ids.ts'
import { deploy, ended, handle, handled, publish, type Run, runsOf } from '../support/build.ts'
import { PATIENCE } from '../support/patience.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { JOBS } from './jobs.ts'

const server = await startServer()
const { api } = server
await deploy(api, 'work', { 'jobs.js': JOBS })

const errorOf = ({ error, result }: Run) => {
  assert.equal(result, { error })
  return error
}

const handlers = suite('an event handler')

handlers('runs once for an event, as a run of SPEC.md', async () => {
  const { event_id, stream_id } = await publish(api, 'seen', { n: 1 })
  const [run] = (await handled(api, event_id)) as [Run]
  assert.equal(
    [run.run_type, run.status, run.event_id, run.stream_id, run.project_name, run.fn, run.attempt],
    ['event', 'succeeded', event_id, stream_id, 'work', 'jobs/seen', 1],
  )
  assert.equal([run.origin_run_id, run.parent_run_id, run.retry_at, run.replay_of], [null, null, null, null])
  for (const id of [run.run_id, run.env_id, run.build_id, run.project_id]) assert.ok(isId(id))
  assert.ok((run.stop_time ?? '') >= run.start_time)
  assert.not('error' in run)
  assert.equal(await api.get(`/runs/${run.run_id}`), run)
})

handlers('receives the event and its own run', async () => {
  const published = await publish(api, 'seen', { n: 1 })
  const [{ result, run_id }] = (await handled(api, published.event_id)) as [Run]
  const { event, run } = result as { event: Record<string, unknown>; run: Record<string, unknown> }
  const { timestamp, ...rest } = event
  assert.equal(rest, { type: 'seen', data: { n: 1 }, id: published.event_id, source: 'api' })
  assert.is(new Date(String(timestamp)).toISOString(), timestamp)
  assert.equal([run['run_id'], run['event_id'], run['run_type']], [run_id, published.event_id, 'event'])
})

handlers('is started beside all other matching handlers', async () => {
  const { event_id } = await publish(api, 'two')
  const runs = await handled(api, event_id, 2)
  assert.equal(runs.map(({ result }) => result).sort(), ['first', 'second'])
})

handlers('is optional: an event without one has no runs', async () => {
  const { event_id } = await publish(api, 'nobody:cares')
  await handle(api, 'two') // published later, handled already
  assert.equal(await runsOf(api, event_id), [])
})

handlers('that throws ends its run as failed, with the error in two places', async () => {
  const run = await handle(api, 'fails')
  assert.is(run.status, 'failed')
  const error = errorOf(run)
  assert.equal([error?.code, error?.message], ['function_failed', 'broken on purpose'])
  assert.match(error?.stack ?? '', /jobs\.js:8/)
})

handlers.run()

const retry = suite('a retry')

// A slow machine does not see a status of a second, so the delay is longer than any wait.
retry('leaves its run pending_retry until its delay has passed', async () => {
  const { event_id } = await publish(api, 'patient60s')
  const pending = await until(async () =>
    (await runsOf(api, event_id)).find(({ status }) => status === 'pending_retry'),
  )
  assert.is(Date.parse(pending.retry_at ?? ''), Date.parse(pending.stop_time ?? '') + 60_000)
  assert.equal(errorOf(pending)?.message, 'try 1')
  await publish(api, 'svc:cancel', { run_id: pending.run_id })
})

retry('is a new run', async () => {
  const { event_id } = await publish(api, 'flaky')
  const runs = (await handled(api, event_id, 3)).toReversed()
  assert.equal(
    runs.map(({ status }) => status),
    ['failed', 'failed', 'succeeded'],
  )
  assert.equal(
    runs.map(({ attempt }) => attempt),
    [1, 2, 3],
  )
  const [first, ...later] = runs as [Run, ...Run[]]
  assert.is(first.origin_run_id, null)
  for (const run of later) assert.is(run.origin_run_id, first.run_id)
  for (const run of runs) assert.equal([run.retry_at, run.event_id], [null, event_id])
  assert.equal(later[1]?.result, { tried: 3, attempt: 3 })
})

retry('waits for its delay', async () => {
  const { event_id } = await publish(api, 'flaky')
  const [third, second, first] = (await handled(api, event_id, 3)) as [Run, Run, Run]
  for (const [before, after] of [
    [first, second],
    [second, third],
  ] as const) {
    const waited = Date.parse(after.start_time) - Date.parse(before.stop_time ?? '')
    assert.ok(waited >= 300 * PATIENCE - 1, `waited ${waited} ms`)
  }
})

retry('happens at most as often as the function allows', async () => {
  const { event_id } = await publish(api, 'hopeless')
  const runs = await handled(api, event_id, 3)
  assert.equal(
    runs.map(({ status }) => status),
    ['failed', 'failed', 'failed'],
  )
  assert.is(runs[0]?.error?.message, 'try 3')
})

retry('does not happen without a policy', async () => {
  const run = await handle(api, 'once')
  assert.equal([run.status, run.retry_at], ['failed', null])
})

retry.run()

const cancelledRetry = suite('a cancelled retry', { timeoutMs: 200_000 })

// A slow machine handles the cancellation after a short delay has passed, so the delays grow.
cancelledRetry('does not happen', async () => {
  for (const type of ['patient2s', 'patient10s', 'patient60s']) {
    const { event_id } = await publish(api, type)
    const { run_id } = await until(async () =>
      (await runsOf(api, event_id)).findLast(({ status }) => status !== 'running'),
    )
    await publish(api, 'svc:cancel', { run_id })
    const { status } = await ended(api, run_id)
    if (status === 'failed') continue // it was retried before
    assert.is(status, 'cancelled')
    const later = await publish(api, type)
    await until(async () => (await runsOf(api, later.event_id)).length === 2, { timeoutMs: 100_000 })
    assert.is((await runsOf(api, event_id)).length, 1) // by now the cancelled one would have been retried
    return
  }
  assert.unreachable('each run was retried before it was cancelled')
})

cancelledRetry.after(() => server.stop())
cancelledRetry.run()
