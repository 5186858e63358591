import * as assert from 'uvu/assert'
import { openReadModels } from '../../../src/adapters/embedded/readModels/index.ts'
import { isoOf, clock } from '../../../src/clock.ts'
import { publishEvent } from '../../../src/commands/events/publishEvent.ts'
import { Idempotency } from '../../../src/commands/idempotency.ts'
import { expireCalls } from '../../../src/commands/orgs/expireCalls.ts'
import { deleteEnv } from '../../../src/commands/orgs/deleteEnv.ts'
import { createEnv } from '../../../src/commands/orgs/createEnv.ts'
import { createOrg } from '../../../src/commands/orgs/createOrg.ts'
import { removeCalls } from '../../../src/commands/orgs/removeCalls.ts'
import { purgeEnv } from '../../../src/commands/orgs/purgeEnv.ts'
import { renewRetention } from '../../../src/commands/orgs/renewRetention.ts'
import { changeOrg } from '../../../src/commands/orgs/changeOrg.ts'
import { payloadsOf } from '../../../src/content/payloads.ts'
import { byRun } from '../../../src/events/actor.ts'
import type { Plan } from '../../../src/events/org.ts'
import type { RunPlan } from '../../../src/events/run.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { newId } from '../../../src/ids.ts'
import { silent } from '../../../src/logger.ts'
import { retentionOf, termsOf } from '../../../src/plans/plans.ts'
import { usageOf } from '../../../src/plans/usage.ts'
import { Projectors } from '../../../src/projections/projectors.ts'
import { runSeriesOf } from '../../../src/projections/runSeries.ts'
import type { RunDoc } from '../../../src/projections/runs.ts'
import { openViews } from '../../../src/projections/views.ts'
import { forwarding } from '../../support/forwarding.ts'
import { suite } from '../../support/suite.ts'
import { tempDir } from '../../support/tempDir.ts'
import { until } from '../../support/until.ts'
import { openCommands } from '../openCommands.ts'
import { plantEnv } from '../plantEnv.ts'

/** It is noon in the middle of a month, so that neither a day nor a month ends during these tests. */
const { now: realNow } = clock
const setClock = (ms: number): void => {
  const ahead = ms - realNow()
  clock.now = () => realNow() + ahead
}
setClock(Date.UTC(2026, 4, 15, 12))

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

/** The read models, built from the log as it is now. */
const openViewsAnew = async () => {
  const { store, payloads } = node
  const readModels = openReadModels({ dir: tempDir() })
  const ending = new AbortController()
  const progress = new Projectors({ store, readModels, logger: silent })
  void progress.run(ending.signal)
  const built = await openViews({ store, readModels, payloads, progress, logger: silent }, ending.signal)
  return {
    views: built,
    async close() {
      ending.abort()
      await readModels.close()
    },
  }
}
const planted = (plan: 'free' | 'starter' | 'self_host') => plantEnv(node, `o-${newId().slice(-12)}`, plan)

/** The time from one sweep to the next. */
const SWEEPS_MS = 6 * 3600_000

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

expiry('are removed in steps, between which other environments are read', async () => {
  const [{ env_id }, other] = [await planted('free'), await planted('free')]
  for (let n = 0; n < 5; n++) await startRun(env_id, true)
  await startRun(other.env_id, true)
  await views.settled()
  const left: number[] = []
  const observed: typeof views = {
    ...views,
    async reach(...args) {
      await views.reach(...args)
      assert.equal(await countsOf(other.env_id), [1, 1])
      left.push((await countsOf(env_id))[0] ?? 0)
    },
  }
  const before = isoOf(dayIn(1)).slice(0, 10)
  const cause = { env_id, correlation_id: 'c' }
  const remove = () => removeCalls({ aggregates, views: observed }, { env_id, before }, cause, 2)
  await remove()
  assert.equal(left, [3, 1])
  assert.equal(await countsOf(env_id), [0, 0])
  const facts = () => Array.fromAsync(node.store.read(streamOf.calls(env_id)))
  const upTo = (await facts()).map(({ event }) => event.type === 'CallsExpired' && event.up_to !== undefined)
  assert.equal(upTo, [true, true, false])
  await remove()
  assert.is((await facts()).length, 3, 'a repetition adds nothing')
  const rebuilt = await openViewsAnew()
  await rebuilt.views.settled()
  assert.is(
    (await rebuilt.views.runs.find({ equal: { env_id }, sort: 'order', limit: 1, offset: 0 })).total,
    0,
  )
  await rebuilt.close()
})

expiry('whose removal was interrupted are removed by the next sweep', async () => {
  const { env_id } = await planted('free')
  for (let n = 0; n < 3; n++) await startRun(env_id, true)
  await views.settled()
  const cause = { env_id, correlation_id: 'c' }
  const [, second] = (await views.runs.find({ equal: { env_id }, sort: 'order', limit: 2, offset: 0 })).items
  const day = { env_id, before: isoOf(dayIn(1)).slice(0, 10) }
  const part = { type: 'ExpireCalls', ...day, up_to: second?.order ?? '' } as const
  await aggregates.calls.handle(streamOf.calls(env_id), part, cause)
  assert.is((await countsOf(env_id))[0], 2)
  await expireCalls(deps, { now: dayIn(KEPT_DAYS + 1) })
  assert.equal(await countsOf(env_id), [0, 0])
})

expiry('leave the audit with their deleted environment, also if a run wrote after its removal', async () => {
  const { env_id } = await planted('self_host')
  const write = async (path: string) => {
    const content = {
      key: newId(),
      size: 1,
      etag: '"e"',
      content_type: 'text/plain',
      storage_backend: 'disk',
    }
    const file = { file_id: newId(), path, ...content }
    const store = { type: 'StoreFile', file, run_id: 'r', now: clock.iso(), demand() {} } as const
    const cause = { env_id, correlation_id: 'c', ...byRun('r') }
    await aggregates.files.handle(streamOf.file(env_id, path), store, cause)
  }
  const left = async () => {
    await views.settled()
    const found = { equal: { env_id }, sort: 'expiring', from: '', limit: 9, offset: 0 } as const
    return [
      (await views.audit.find(found)).items.length,
      (await views.auditLinks.find(found)).items.length > 0,
    ]
  }
  await write('a')
  assert.equal(await left(), [1, true])
  await deleteEnv(deps, { env_id }, { correlation_id: 'c' })
  await purgeEnv(deps, { env_id, final: false })
  assert.equal(await left(), [0, false])
  await purgeEnv(deps, { env_id, final: true })
  await write('late')
  assert.equal(await left(), [1, true])
  await expireCalls(deps, { now: dayIn(1) })
  assert.equal(await left(), [0, false])
})

expiry('are removed although their runs have not ended, when the facts of these have expired', async () => {
  const { env_id } = await planted('free')
  const [open, again] = [await startRun(env_id, false), await startRun(env_id, false)]
  await views.settled()
  const { stream_id = '' } = (await views.runs.get(again)) ?? {}
  const stream = streamOf.stream(stream_id)
  const cause = { env_id, correlation_id: 'c' }
  await aggregates.streams.handle(stream, { type: 'ReturnRun', run_id: again, worker_id: 'w' }, cause)
  const claim = { type: 'ClaimRun', run_id: again, worker_id: 'v', now: isoOf(dayIn(1)) } as const
  await aggregates.streams.handle(stream, claim, cause) // its facts of this claim are kept for longer
  const left = async (days: number) => {
    await expireCalls(deps, { now: dayIn(KEPT_DAYS + days) })
    await views.settled()
    const found = await views.runs.getMany([open, again])
    return [open, again].map((run_id) => found.has(run_id))
  }
  const expiresMs = (retentionOf('free') ?? 0) * 1000
  assert.ok(dayIn(KEPT_DAYS + 3) > today + expiresMs)
  assert.equal(await left(1), [true, true])
  assert.equal(await left(2), [true, true])
  assert.equal(await left(3), [false, true])
  assert.equal(await left(4), [false, false])
})

expiry(
  'have their retention set before their documents are removed: a restored log has lost that of cut streams',
  async () => {
    const { env_id } = await planted('free')
    const run_id = await startRun(env_id, true)
    await views.settled()
    const { stream_id = '' } = (await views.runs.get(run_id)) ?? {}
    const set: [string, number | null][] = []
    const store = forwarding(node.store, {
      expire: (stream, seconds) => Promise.resolve(void set.push([stream, seconds])),
      scavenge: () => Promise.resolve(0),
    })
    await expireCalls({ ...deps, store }, { now: dayIn(KEPT_DAYS) })
    assert.not.ok(set.some(([stream]) => stream === streamOf.stream(stream_id)))
    await expireCalls({ ...deps, store }, { now: dayIn(KEPT_DAYS + 1) })
    for (const stream of [streamOf.stream(stream_id), streamOf.runLog(run_id)])
      assert.equal(
        set.filter(([name]) => name === stream),
        [[stream, (KEPT_DAYS + 1.5) * 86_400]],
      )
  },
)

expiry('still count as usage of their month, and are recorded once', async () => {
  const { env_id } = await planted('free')
  for (let n = 0; n < 3; n++) await startRun(env_id, true)
  const { org_id } = views.directory.env(env_id) ?? { org_id: '' }
  const now = dayIn(KEPT_DAYS + 1)
  const usage = async () => {
    await views.settled()
    return usageOf(views, { org_id, limits: termsOf.free.limits, nowMs: now })
  }
  const before = await usage()
  assert.is(before.runs_this_period, 3)
  await expireCalls(deps, { now })
  assert.equal(await usage(), before)
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

expiry(
  'are not counted again by a plan that keeps more, nor when the read models are built again',
  async () => {
    const { env_id } = await planted('free')
    for (let n = 0; n < 3; n++) await startRun(env_id, true)
    const { org_id } = views.directory.env(env_id) ?? { org_id: '' }
    const expiredAt = dayIn(KEPT_DAYS + 1)
    const used = async ({ views }: Pick<typeof node, 'views'>, plan: Plan) => {
      await views.settled()
      const usage = await usageOf(views, { org_id, limits: termsOf[plan].limits, nowMs: expiredAt })
      return [usage.runs_this_period, usage.call_count, usage.call_storage_bytes]
    }
    assert.equal((await used(node, 'starter')).slice(0, 2), [3, 3])
    await expireCalls(deps, { now: expiredAt })
    const rebuilt = await openViewsAnew()
    for (const each of [node, rebuilt])
      for (const plan of ['free', 'starter', 'self_host', 'free'] as const)
        assert.equal(await used(each, plan), [3, 0, 0], plan)
    await rebuilt.close()
  },
)

expiry('count as before when the log has lost their facts and the read models are built again', async () => {
  const { env_id } = await planted('free')
  for (let n = 0; n < 3; n++) await startRun(env_id, true)
  const { org_id } = views.directory.env(env_id) ?? { org_id: '' }
  const now = dayIn(KEPT_DAYS + 1)
  const used = async ({ views }: Pick<typeof node, 'views'>) => {
    await views.settled()
    const { total } = await runSeriesOf(views, {
      series: { env_id },
      interval: 'day',
      ...dayOf(today),
    })
    const usage = await usageOf(views, { org_id, limits: termsOf.free.limits, nowMs: now })
    return { usage, runs: total.total_runs, succeeded: total.succeeded }
  }
  const before = await used(node)
  const streams = new Set<string>()
  for await (const { events, caughtUp } of node.store.subscribe({ env_id, signal: node.signal })) {
    for (const { stream } of events) if (stream.startsWith('stream-')) streams.add(stream)
    if (caughtUp) break
  }
  assert.is(streams.size, 3)
  await expireCalls(deps, { now })
  for (const stream of streams) {
    await node.store.expire(stream, 0)
    await until(() => node.store.isExpired(stream))
  }
  assert.ok(((await node.store.scavenge?.()) ?? 0) >= 9)
  assert.equal(await used(node), before)
  const rebuilt = await openViewsAnew()
  assert.equal(await used(rebuilt), before)
  assert.equal(before.usage.runs_this_period, 3)
  await rebuilt.close()
})

expiry('count as failed when their facts expire before they end, also in a rebuild', async () => {
  const { env_id } = await planted('free')
  await startRun(env_id, true)
  const run_id = await startRun(env_id, false)
  await views.settled('runs')
  const { stream_id = '' } = (await views.runs.get(run_id)) ?? {}
  const counts = async ({ views }: Pick<typeof node, 'views'>) => {
    await views.settled()
    const series = { series: { env_id }, interval: 'day', ...dayOf(today) } as const
    const { total, points } = await runSeriesOf(views, series)
    for (const { running, failed } of points) assert.equal([running, failed], [total.running, total.failed])
    return [total.total_runs, total.succeeded, total.running, total.failed]
  }
  assert.equal(await counts(node), [2, 1, 1, 0])
  await expireCalls(deps, { now: dayIn(KEPT_DAYS + 1) })
  assert.equal(await counts(node), [2, 1, 1, 0], 'the run may still end')
  await expireCalls(deps, { now: dayIn(KEPT_DAYS + 4) })
  assert.equal(await counts(node), [2, 1, 0, 1])
  assert.is(await views.runs.get(run_id), null)
  const early = await openViewsAnew()
  assert.equal(await counts(early), [2, 1, 0, 1])
  await early.close()
  await node.store.expire(streamOf.stream(stream_id), 0)
  await until(() => node.store.isExpired(streamOf.stream(stream_id)))
  await node.store.scavenge?.()
  const late = await openViewsAnew()
  assert.equal(await counts(late), [2, 1, 0, 1])
  await late.close()
})

expiry(
  'of a deleted environment count as usage of their month when the log has lost their facts',
  async () => {
    const { env_id } = await planted('free')
    const { org_id } = views.directory.env(env_id) ?? { org_id: '' }
    const run_id = await startRun(env_id, true)
    await views.settled()
    const { stream_id = '' } = (await views.runs.get(run_id)) ?? {}
    await deleteEnv(deps, { env_id }, { correlation_id: 'c' })
    await purgeEnv({ ...deps, runtime: null }, { env_id, final: true })
    await expireCalls(deps, { now: dayIn(1) })
    const head = await node.store.head()
    await expireCalls(deps, { now: dayIn(1) })
    assert.is(await node.store.head(), head, 'each day is recorded once')
    await node.store.expire(streamOf.stream(stream_id), 0)
    await until(() => node.store.isExpired(streamOf.stream(stream_id)))
    await node.store.scavenge?.()
    const rebuilt = await openViewsAnew()
    for (const { views } of [node, rebuilt]) {
      await views.settled()
      const usage = await usageOf(views, { org_id, limits: termsOf.free.limits, nowMs: today })
      assert.equal([usage.runs_this_period, usage.call_count], [1, 0])
    }
    await rebuilt.close()
  },
)

expiry('of environments that were deleted in earlier months are read once', async () => {
  const slug = `o-${newId().slice(-12)}`
  const cause = { correlation_id: 'c' }
  const { org_id } = await createOrg(deps, { slug, plan: 'free' }, cause)
  const deleted: string[] = []
  for (const name of ['a', 'b', 'c']) {
    const { env_id } = await createEnv(deps, { org: slug, name }, cause)
    await views.settled()
    await startRun(env_id, true)
    await views.settled()
    await deleteEnv(deps, { env_id }, cause)
    await purgeEnv({ ...deps, runtime: null }, { env_id, final: true })
    deleted.push(env_id)
  }
  await views.settled()
  const read: string[] = []
  const [find, readCalls] = [
    views.callDays.find.bind(views.callDays),
    aggregates.calls.read.bind(aggregates.calls),
  ]
  Object.assign(views.callDays, {
    find: (...args: Parameters<typeof find>) => {
      read.push(String(args[0].equal['env_id']))
      return find(...args)
    },
  })
  Object.assign(aggregates.calls, {
    read: (...args: Parameters<typeof readCalls>) => {
      read.push(args[0])
      return readCalls(...args)
    },
  })
  const limits = termsOf.free.limits
  const isOfDeleted = (name: string) => deleted.some((env_id) => name.includes(env_id))
  const readsOf = async (work: () => Promise<unknown>): Promise<number> => {
    read.length = 0
    await work()
    return read.filter(isOfDeleted).length
  }
  const runsAt = async (nowMs: number): Promise<number> =>
    (await usageOf(views, { org_id, limits, nowMs })).runs_this_period
  assert.equal([await runsAt(today), await runsAt(today)], [3, 3])
  assert.is(await runsAt(dayIn(31)), 0)
  assert.is(await readsOf(() => runsAt(dayIn(31))), 0, 'the usage')
  const recorded = new Set<string>()
  const sweepAt = (now: number) => readsOf(() => expireCalls(deps, { now, recorded }))
  assert.ok((await sweepAt(dayIn(1))) > 0)
  assert.ok((await sweepAt(dayIn(1))) > 0, 'the days are kept')
  assert.ok((await sweepAt(dayIn(31))) > 0)
  assert.is(await sweepAt(dayIn(31)), 0, 'the sweep')
  Object.assign(views.callDays, { find })
  Object.assign(aggregates.calls, { read: readCalls })
})

expiry('keep their facts until their documents are removed and their numbers recorded', async () => {
  const { env_id } = await planted('free')
  const { org_id } = views.directory.env(env_id) ?? { org_id: '' }
  const began = dayOf(today).fromMs
  const isNoLongerKept = began + (KEPT_DAYS + 1) * DAY_MS
  const state = async ({ views }: Pick<typeof node, 'views'>) => {
    await views.settled()
    const { total } = await runSeriesOf(views, { series: { env_id }, interval: 'day', ...dayOf(began) })
    const page = { equal: { env_id }, sort: 'order', limit: 9, offset: 0 }
    return { runs: (await views.runs.find(page)).items, events: (await views.events.find(page)).items, total }
  }
  try {
    setClock(began)
    await startRun(env_id, true)
    await renewRetention(deps, { org_id, now: clock.now() })
    const before = await state(node)
    const run = before.runs[0] as RunDoc
    assert.is(before.total.total_runs, 1)

    const lastKept = isNoLongerKept - 1
    setClock(lastKept)
    await expireCalls(deps, { now: lastKept }) // the clock runs, so the day ends at once
    for (const ms of [lastKept, isNoLongerKept + SWEEPS_MS]) {
      setClock(ms)
      await node.store.scavenge?.()
      const rebuilt = await openViewsAnew()
      assert.equal(await state(rebuilt), before, isoOf(ms))
      await rebuilt.close()
      const [first] = await Array.fromAsync(node.store.read(streamOf.stream(run.stream_id), { limit: 1 }))
      assert.is(first?.revision, 0, 'a past state needs the first fact')
    }

    const rebuilt = await openViewsAnew()
    await expireCalls({ ...deps, views: rebuilt.views }, { now: clock.now() })
    setClock(isNoLongerKept + DAY_MS)
    assert.ok(await node.store.isExpired(streamOf.stream(run.stream_id)))
    await node.store.scavenge?.()
    const last = await openViewsAnew()
    for (const each of [rebuilt, last])
      assert.equal(await state(each), { runs: [], events: [], total: before.total })
    await rebuilt.close()
    await last.close()
  } finally {
    setClock(today)
  }
})

expiry('are recorded before a plan that keeps less lets their facts expire', async () => {
  const { env_id } = await planted('self_host')
  const { org_id } = views.directory.env(env_id) ?? { org_id: '' }
  const day = dayOf(today)
  const counted = async ({ views }: Pick<typeof node, 'views'>) => {
    await views.settled()
    const { limits } = termsOf.free
    const { runs_this_period } = await usageOf(views, { org_id, limits, nowMs: today })
    const { total } = await runSeriesOf(views, { series: { env_id }, interval: 'day', ...day })
    return [runs_this_period, total.total_runs, total.succeeded]
  }
  try {
    await startRun(env_id, true)
    setClock(dayIn(20))
    await changeOrg(deps, { org: org_id, plan: 'free' }, { correlation_id: 'c' })
    await views.settled()
    const [run] = (await views.runs.find({ equal: { env_id }, sort: 'order', limit: 1, offset: 0 })).items
    await renewRetention(deps, { org_id, now: clock.now() })
    assert.ok(await node.store.isExpired(streamOf.stream(run?.stream_id ?? '')))
    await node.store.scavenge?.()
    const rebuilt = await openViewsAnew()
    for (const each of [node, rebuilt]) assert.equal(await counted(each), [1, 1, 1])
    await rebuilt.close()
  } finally {
    setClock(today)
  }
})

expiry('lose their large payloads, day by day', async () => {
  const { env_id } = await planted('free')
  const keyOn = (ms: number) => `${payloadsOf(env_id)}${isoOf(ms).slice(0, 10)}/${newId()}.json`
  const [old, kept] = [keyOn(dayIn(-KEPT_DAYS - 1)), keyOn(dayIn(-KEPT_DAYS))]
  const undated = `${payloadsOf(env_id)}${newId()}.json`
  for (const key of [old, kept, undated]) await blobs.put(key, Buffer.from('x'))
  assert.is(await expireCalls(deps, { now: today }), 1)
  assert.is(await blobs.head(old), null)
  assert.ok(await blobs.head(kept))
  assert.ok(await blobs.head(undated), 'without a day it has no period')
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

expiry('leave no large reply for an Idempotency-Key, also where the plan keeps everything', async () => {
  const { env_id, caller } = await planted('self_host')
  const { cause } = caller
  const idempotency = new Idempotency({ ...deps, logger: silent, holder: 'here', isGone: () => false })
  const event = { event_type: 'a', event_data: 'x'.repeat(100_000), source: 'api' }
  const asked = { key: 'key', scope: [env_id], request: event, cause }
  const { value } = await idempotency.once(asked, (ids) => publishEvent(deps, event, { cause, newId: ids }))
  const keys = async () => (await Array.fromAsync(blobs.list(''))).filter(({ key }) => key.includes(env_id))
  const before = await keys()
  await expireCalls(deps, { now: dayIn(1) })
  assert.equal((await idempotency.once(asked, () => Promise.reject(new Error('Done')))).value, value)
  await expireCalls(deps, { now: dayIn(3) })
  const left = await keys()
  assert.is(before.length - left.length, 1)
  assert.is(left.filter(({ key }) => key.startsWith(payloadsOf(env_id))).length, 1, 'the data of the event')
})
expiry.after(() => node.close())
expiry.run()
