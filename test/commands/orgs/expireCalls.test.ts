import * as assert from 'uvu/assert'
import { isoOf, clock } from '../../../src/clock.ts'
import { expireCalls } from '../../../src/commands/orgs/expireCalls.ts'
import { changeOrg } from '../../../src/commands/orgs/changeOrg.ts'
import { payloadsOf } from '../../../src/content/payloads.ts'
import type { RunPlan } from '../../../src/events/run.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { newId } from '../../../src/ids.ts'
import { termsOf } from '../../../src/plans/plans.ts'
import { usageOf } from '../../../src/plans/usage.ts'
import { runSeriesOf } from '../../../src/projections/runSeries.ts'
import { suite } from '../../support/suite.ts'
import { openCommands } from '../openCommands.ts'
import { plantEnv } from '../plantEnv.ts'

const node = await openCommands()
const { deps, views, blobs, aggregates } = node
const DAY_MS = 86_400_000
const KEPT_DAYS = termsOf.free.limits.call_retention_days
const today = clock.now()
const dayIn = (days: number): number => today + days * DAY_MS

/** Publishes an event and starts a run of it. */
const startRun = async (env_id: string, ends: boolean): Promise<string> => {
  const [stream_id, run_id] = [newId(), newId()]
  const plan: RunPlan = {
    run_id,
    stream_id,
    run_type: 'event',
    build_id: 'b',
    project_id: 'p',
    project_name: 'shop',
    target: { ns: 'a', var: 'b' },
    attempt: 1,
  }
  const publish = {
    type: 'PublishEvent',
    stream_id,
    env_id,
    event_id: newId(),
    event_type: 'x',
    data: { value: 'data' },
    source: 'api',
    create: true,
    claim: { plans: [plan], worker_id: 'w' },
    now: clock.iso(),
  } as const
  const cause = { env_id, correlation_id: 'c' }
  const stream = streamOf.stream(stream_id)
  await aggregates.streams.handle(stream, publish, cause)
  const end = {
    type: 'SucceedRun',
    run_id,
    result: { value: null },
    worker_id: 'w',
    now: clock.iso(),
  } as const
  if (ends) await aggregates.streams.handle(stream, end, cause)
  return run_id
}
const countsOf = async (env_id: string) => {
  await views.settled()
  const page = { equal: { env_id }, sort: 'order', limit: 1, offset: 0 }
  return [(await views.runs.find(page)).total, (await views.events.find(page)).total]
}
const planted = (plan: 'free' | 'starter' | 'self_host') => plantEnv(node, `o-${newId().slice(-12)}`, plan)

/** The day of an instant. */
const dayOf = (ms: number) => {
  const fromMs = Math.floor(ms / DAY_MS) * DAY_MS
  return { fromMs, toMs: fromMs + DAY_MS }
}

const expiry = suite('calls that a plan keeps no longer')

expiry('are removed from the read models, except runs that have not ended', async () => {
  const { env_id } = await planted('free')
  const open = await startRun(env_id, false)
  await startRun(env_id, true)
  await expireCalls(deps, { now: dayIn(KEPT_DAYS) })
  assert.equal(await countsOf(env_id), [2, 2])
  await expireCalls(deps, { now: dayIn(KEPT_DAYS + 1) })
  assert.equal(await countsOf(env_id), [1, 0])
  assert.ok(await views.runs.get(open))
})

expiry('still count as usage of their month, and are recorded once', async () => {
  const { env_id } = await planted('free')
  for (let n = 0; n < 3; n++) await startRun(env_id, true)
  const { org_id } = views.directory.env(env_id) ?? { org_id: '' }
  const now = dayIn(KEPT_DAYS + 1)
  const usage = async (nowMs: number) => {
    await views.settled()
    return usageOf(views, { org_id, limits: termsOf.free.limits, nowMs })
  }
  const before = await usage(today)
  assert.is(before.runs_this_period, 3)
  await expireCalls(deps, { now })
  assert.equal(await usage(today), before)
  const series = { series: { env_id }, interval: 'day', ...dayOf(today) } as const
  const { total } = await runSeriesOf(views, series)
  assert.equal([total.total_runs, total.succeeded], [3, 3])
  const head = await node.store.head()
  await expireCalls(deps, { now })
  assert.is(await node.store.head(), head)
  const facts = await Array.fromAsync(node.store.read(streamOf.calls(env_id)))
  assert.equal(
    facts.map(({ event }) => event.type),
    ['CallDayCounted', 'RunDayCounted', 'CallsExpired'],
  )
})

expiry('lose their large payloads, day by day', async () => {
  const { env_id } = await planted('free')
  const keyOn = (ms: number) => `${payloadsOf(env_id)}${isoOf(ms).slice(0, 10)}/${newId()}.json`
  const [old, kept] = [keyOn(dayIn(-KEPT_DAYS - 1)), keyOn(dayIn(-KEPT_DAYS))]
  for (const key of [old, kept]) await blobs.put(key, Buffer.from('x'))
  assert.is(await expireCalls(deps, { now: today }), 1)
  assert.is(await blobs.head(old), null)
  assert.ok(await blobs.head(kept))
})

expiry('are those of the current plan: a higher plan keeps more from then on', async () => {
  const { env_id } = await planted('free')
  await startRun(env_id, true)
  const { org_id } = views.directory.env(env_id) ?? { org_id: '' }
  await changeOrg(deps, { org: org_id, plan: 'starter' }, { correlation_id: 'c' })
  await views.settled()
  await expireCalls(deps, { now: dayIn(KEPT_DAYS + 1) })
  assert.equal(await countsOf(env_id), [1, 1])
})

expiry('do not exist where the plan keeps everything', async () => {
  const { env_id } = await planted('self_host')
  await startRun(env_id, true)
  const key = `${payloadsOf(env_id)}2020-01-01/${newId()}.json`
  await blobs.put(key, Buffer.from('x'))
  await expireCalls(deps, { now: dayIn(10_000) })
  assert.equal(await countsOf(env_id), [1, 1])
  assert.ok(await blobs.head(key))
  assert.is((await Array.fromAsync(node.store.read(streamOf.calls(env_id)))).length, 0)
})
expiry.after(() => node.close())
expiry.run()
