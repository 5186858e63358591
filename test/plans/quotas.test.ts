import * as assert from 'uvu/assert'
import { AppError, type ErrorCode, isAppError } from '../../src/errors.ts'
import type { Plan } from '../../src/events/org.ts'
import { termsOf } from '../../src/plans/plans.ts'
import type { CallDayDoc } from '../../src/projections/callDays.ts'
import type { Views } from '../../src/projections/views.ts'
import { Quotas } from '../../src/plans/quotas.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

/** An organization with one environment, its usage in the read models, and the number of looks at that usage. */
const tenant = (plan: Plan, used: { runs?: number; bytes?: number; files?: number } = {}) => {
  const state = {
    runs: 0,
    bytes: 0,
    files: 0,
    plan,
    looks: 0,
    laterMs: 0,
    settle: () => Promise.resolve(),
    ...used,
  }
  const views = {
    directory: {
      env: (env_id: string) => (env_id === 'env' ? { org_id: 'org', plan: state.plan } : undefined),
      envsOf: () => ['env'],
      deletedEnvsOf: () => [],
    },
    settled: () => state.settle(),
    callDays: {
      getMany: () => Promise.resolve(new Map()),
      find: () => {
        state.looks++
        const { runs, bytes } = state
        const today: CallDayDoc = { env_id: 'env', day: new Date().toISOString().slice(0, 10), runs, bytes }
        return Promise.resolve({ items: [today], total: 1 })
      },
    },
    orgs: { get: () => Promise.resolve(null) },
    holdings: { find: () => Promise.resolve({ items: [], total: 0 }) },
    fileTotals: {
      getMany: () => Promise.resolve(new Map([['env', { env_id: 'env', bytes: state.files }]])),
    },
  } as unknown as Views
  return { state, quotas: new Quotas(views, { monotonic: () => state.laterMs }) }
}

const refusal = async (asked: Promise<unknown>): Promise<ErrorCode | null> => {
  try {
    await asked
    return null
  } catch (error) {
    if (isAppError(error)) return error.code
    throw error
  }
}

const { runs_per_month, call_storage_bytes } = termsOf.free.limits

const data = suite('live data under a plan')

data('is allowed until limits.call_storage_bytes is reached, however many runs there were', async () => {
  const { quotas, state } = tenant('free', { runs: runs_per_month, bytes: call_storage_bytes - 1 })
  assert.is(await refusal(quotas.checkData('env') ?? Promise.resolve()), null)
  state.bytes = call_storage_bytes
  assert.is(await refusal(quotas.checkData('env') ?? Promise.resolve()), 'quota_exceeded')
})

data('is not even looked at without a limit', () => {
  assert.is(tenant('self_host').quotas.checkData('env'), null)
})
data.run()

const runs = suite('a run under a plan')

runs('is allowed until limits.runs_per_month is reached', async () => {
  const { state, quotas } = tenant('free', { runs: runs_per_month - 1 })
  assert.is(await refusal(quotas.checkRun('env')), null)
  state.runs++
  assert.is(await refusal(quotas.checkRun('env')), 'quota_exceeded')
})

runs('is allowed until limits.call_storage_bytes is reached', async () => {
  const { state, quotas } = tenant('free', { bytes: call_storage_bytes - 1 })
  assert.is(await refusal(quotas.checkRun('env')), null)
  state.bytes++
  assert.is(await refusal(quotas.checkRun('env')), 'quota_exceeded')
})

runs('is allowed again with a higher plan, at once', async () => {
  const { state, quotas } = tenant('free', { runs: runs_per_month })
  assert.is(await refusal(quotas.checkRun('env')), 'quota_exceeded')
  state.plan = 'starter'
  assert.is(await refusal(quotas.checkRun('env')), null)
})

runs('without limits reads nothing (Q1)', async () => {
  const { state, quotas } = tenant('self_host', { runs: 1e9, bytes: 1e15 })
  for (let i = 0; i < 10; i++) await quotas.checkRun('env')
  assert.is(state.looks, 0)
})

runs('far from the limit reads usage at most once a second, and waits only for the first read', async () => {
  const { state, quotas } = tenant('free', { runs: 1 })
  await quotas.checkRun('env')
  assert.is(state.looks, 1)
  for (let i = 0; i < 100; i++) await quotas.checkRun('env')
  assert.is(state.looks, 1)

  let letGo = () => {}
  state.settle = () => new Promise((resolve) => (letGo = resolve))
  state.laterMs = 1001
  await quotas.checkRun('env')
  await quotas.checkRun('env')
  assert.is(state.looks, 1)
  letGo()
  await until(() => state.looks === 2)
})

runs('many checks at once near the limit share one look at the read models', async () => {
  const { state, quotas } = tenant('free', { runs: runs_per_month - 1 })
  await Promise.all(Array.from({ length: 50 }, () => quotas.checkRun('env')))
  assert.is(state.looks, 1)
})

runs('is neither refused nor delayed by read models that are behind or unavailable (Q3)', async () => {
  const { state, quotas } = tenant('free', { runs: runs_per_month })
  state.settle = () => Promise.reject(new AppError('unavailable', 'down'))
  assert.is(await refusal(quotas.checkRun('env')), null)
  state.settle = () => new Promise(() => {})
  assert.is(await refusal(quotas.checkRun('env')), null)
})

runs('is refused by the last known usage while read models are unavailable', async () => {
  const { state, quotas } = tenant('free', { runs: runs_per_month })
  await refusal(quotas.checkRun('env'))
  state.settle = () => Promise.reject(new AppError('unavailable', 'down'))
  assert.is(await refusal(quotas.checkRun('env')), 'quota_exceeded')
})

runs('of an unknown environment is not refused', async () => {
  const { quotas } = tenant('free', { runs: runs_per_month })
  assert.is(await refusal(quotas.checkRun('elsewhere')), null)
})

runs.run()

const files = suite('a file under a plan')
const { storage_bytes } = termsOf.free.limits

files('has room until limits.storage_bytes is reached', async () => {
  const { quotas } = tenant('free', { files: storage_bytes - 10 })
  assert.is(await refusal(quotas.checkRoom('env', 10)), null)
  assert.is(await refusal(quotas.checkRoom('env', 11)), 'quota_exceeded')
})

files('that shrinks has room always', async () => {
  const { quotas } = tenant('free', { files: storage_bytes + 10 })
  assert.is(await refusal(quotas.checkRoom('env', -5)), null)
  assert.is(await refusal(quotas.checkRoom('env', 0)), null)
  assert.is(await refusal(quotas.checkRoom('env', 1)), 'quota_exceeded')
})

files('does not affect calls, and calls do not affect files', async () => {
  const { quotas } = tenant('free', { runs: runs_per_month })
  assert.is(await refusal(quotas.checkRoom('env', 10)), null)
  const full = tenant('free', { files: storage_bytes })
  assert.is(await refusal(full.quotas.checkRun('env')), null)
})

files.run()

const room = suite('reserved room')

room('counts for concurrent requests until it is released, and afterwards by the read models', async () => {
  const { state, quotas } = tenant('free', { files: storage_bytes - 100 })
  const [a, b] = [quotas.roomFor('env'), quotas.roomFor('env')]
  const outcomes = await Promise.all([refusal(a.cover(60)), refusal(b.cover(60))])
  assert.equal(outcomes, [null, 'quota_exceeded'])
  state.files += 60
  a.release()
  assert.is(await refusal(quotas.roomFor('env').cover(41)), 'quota_exceeded')
  assert.is(await refusal(quotas.roomFor('env').cover(40)), null)
})

room('that was released and stored counts once', async () => {
  const { state, quotas } = tenant('free', { files: storage_bytes - 100 })
  for (let i = 0; i < 10; i++) {
    const one = quotas.roomFor('env')
    await one.cover(10)
    state.files += 10
    one.release()
  }
  assert.is(await refusal(quotas.roomFor('env').cover(1)), 'quota_exceeded')
})

room('of a hundred requests at once is never more than there is', async () => {
  const { quotas } = tenant('free', { files: storage_bytes - 100 })
  const outcomes = await Promise.all(
    Array.from({ length: 100 }, () => refusal(quotas.roomFor('env').cover(7))),
  )
  assert.is(outcomes.filter((code) => code === null).length, 14)
})

room('that was released counts until a look that began later', async () => {
  const { state, quotas } = tenant('free', { files: storage_bytes - 100 })
  const first = quotas.roomFor('env')
  await first.cover(60)
  let letGo = () => {}
  state.settle = () => new Promise((resolve) => (letGo = resolve))
  const second = quotas.roomFor('env').cover(60) // its look begins before the first is stored
  await until(() => letGo !== undefined)
  first.release()
  state.files += 60
  state.settle = () => Promise.resolve()
  letGo()
  assert.is(await refusal(second), 'quota_exceeded')
})

room('grows with content of unknown size, ahead if the plan has room', async () => {
  const { quotas } = tenant('free', { files: storage_bytes - 100 })
  const unknown = quotas.roomFor('env')
  await unknown.cover(10, 50)
  assert.is(await refusal(quotas.roomFor('env').cover(41)), 'quota_exceeded')
  await unknown.cover(60, 50)
  await unknown.cover(100, 50)
  assert.is(await refusal(unknown.cover(101, 50)), 'quota_exceeded')
  unknown.release()
})

room('of content that is replaced is free for one writer at a time', async () => {
  const { quotas } = tenant('free', { files: storage_bytes - 10 })
  const replaced = { id: 'path', bytes: 50 }
  const first = quotas.roomFor('env', replaced)
  await first.cover(60)
  assert.is(await refusal(quotas.roomFor('env', replaced).cover(11)), 'quota_exceeded')
  first.release()
  assert.is(await refusal(quotas.roomFor('env', replaced).cover(50)), null)
})

room('is not counted without a limit (Q1)', async () => {
  const { state, quotas } = tenant('self_host', { files: 1e15 })
  await quotas.roomFor('env').cover(1e12)
  await quotas.dataFor('env').cover(1e12)
  assert.is(state.looks, 0)
})

room('for data of runs is apart from room for files', async () => {
  const { quotas } = tenant('free', { files: storage_bytes, bytes: call_storage_bytes - 5 })
  assert.is(await refusal(quotas.dataFor('env').cover(5)), null)
  assert.is(await refusal(quotas.dataFor('env').cover(6)), 'quota_exceeded')
})

room.run()

const counts = suite('numbers under a plan')

counts('are checked by one request of an organization at a time', async () => {
  const { quotas } = tenant('free')
  let projects = termsOf.free.counts.projects - 3
  const create = () =>
    quotas.inTurn('env', async () => {
      const known = projects
      await Promise.resolve()
      quotas.checkCount('env', 'projects', known + 1)
      await Promise.resolve()
      projects = known + 1
    })
  const outcomes = await Promise.all(Array.from({ length: 10 }, () => refusal(create())))
  assert.is(outcomes.filter((code) => code === null).length, 3)
  assert.is(projects, termsOf.free.counts.projects)
})

counts('are finite in every plan, and a higher plan allows no less', () => {
  const plans = [termsOf.free, termsOf.starter, termsOf.pro, termsOf.scale]
  for (const [i, { counts: most }] of plans.entries())
    for (const [name, count] of Object.entries(most)) {
      assert.ok(Number.isSafeInteger(count))
      const below = plans[i - 1]?.counts as Readonly<Record<string, number>> | undefined
      assert.ok(count >= (below?.[name] ?? 0), name)
    }
  for (const count of Object.values(termsOf.self_host.counts)) assert.ok(Number.isSafeInteger(count))
})

counts.run()
