import * as assert from 'uvu/assert'
import { openReadModels } from '../../src/adapters/embedded/readModels/index.ts'
import { termsOf } from '../../src/plans/plans.ts'
import { callDays, type CallDayDoc } from '../../src/projections/callDays.ts'
import { type HoldingDoc, holdings } from '../../src/projections/holdings.ts'
import { fileTotals, type FileTotalDoc } from '../../src/projections/fileTotals.ts'
import type { Directory } from '../../src/projections/directory.ts'
import { type OrgDoc, orgs } from '../../src/projections/tenants.ts'
import { percentOf, periodOf, usageOf, type Usage } from '../../src/plans/usage.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const period = suite('the billing period')

period('is the calendar month, UTC', () => {
  const may = { period_start: '2026-05-01T00:00:00.000Z', period_end: '2026-06-01T00:00:00.000Z' }
  assert.equal(periodOf(Date.UTC(2026, 4, 1)), may)
  assert.equal(periodOf(Date.UTC(2026, 4, 31, 23, 59, 59, 999)), may)
})
period('rolls over at midnight, UTC, and at the end of a year', () => {
  assert.is(periodOf(Date.UTC(2026, 5, 1)).period_start, '2026-06-01T00:00:00.000Z')
  assert.equal(periodOf(Date.UTC(2026, 11, 31, 23)), {
    period_start: '2026-12-01T00:00:00.000Z',
    period_end: '2027-01-01T00:00:00.000Z',
  })
})
period.run()

const percents = suite('usage in percent (SPEC.md, Usage and limits)')
const { limits } = termsOf.free
const none: Usage = {
  runs_this_period: 0,
  file_storage_bytes: 0,
  team_members: 0,
  call_storage_bytes: 0,
  call_count: 0,
}

percents('usage_percent.runs, .file_storage, .call_storage, .team_members', () => {
  const usage = {
    runs_this_period: limits.runs_per_month / 4,
    file_storage_bytes: limits.storage_bytes / 2,
    call_storage_bytes: limits.call_storage_bytes / 8,
    team_members: 1,
    call_count: 99,
  }
  assert.equal(percentOf(usage, limits), {
    runs: 25,
    file_storage: 50,
    call_storage: 12.5,
    team_members: 50,
    has_warning: false,
  })
})
percents('may exceed 100', () =>
  assert.is(percentOf({ ...none, runs_this_period: 3 * limits.runs_per_month }, limits).runs, 300),
)
percents('usage_percent.has_warning: true when any usage exceeds 90 percent', () => {
  const exactly90: Usage = {
    runs_this_period: (limits.runs_per_month / 10) * 9,
    file_storage_bytes: Math.floor((limits.storage_bytes / 10) * 9),
    call_storage_bytes: Math.floor((limits.call_storage_bytes / 10) * 9),
    team_members: 0,
    call_count: 0,
  }
  assert.is(percentOf(exactly90, limits).has_warning, false)
  for (const field of ['runs_this_period', 'file_storage_bytes', 'call_storage_bytes'] as const) {
    const more = { ...exactly90, [field]: exactly90[field] + 1 }
    assert.is(percentOf(more, limits).has_warning, true, field)
  }
  assert.is(percentOf({ ...none, team_members: limits.team_members }, limits).has_warning, true)
})
percents('-1 means unlimited: 0 percent of it, and no warning, whatever is used', () => {
  const much = { ...none, runs_this_period: 1e9, file_storage_bytes: 1e15, team_members: 1000 }
  assert.equal(percentOf(much, termsOf.self_host.limits), {
    runs: 0,
    file_storage: 0,
    call_storage: 0,
    team_members: 0,
    has_warning: false,
  })
})
percents.run()

const counted = suite('the calls of an organization')

/** Environments with calls on some days: `[day, runs, bytes]`. */
const withDays = async (envs: Record<string, readonly (readonly [string, number, number])[]>) => {
  const readModels = openReadModels({ dir: tempDir() })
  const writer = await readModels.writer(callDays)
  const docs = Object.entries(envs).flatMap(([env_id, days]) =>
    days.map(([day, runs, bytes]): CallDayDoc => ({ env_id, day, runs, bytes })),
  )
  await writer.write(
    docs.map((doc) => ({ id: `${doc.env_id}/${doc.day}`, doc, cursor: '1' })),
    '1',
  )
  await (await readModels.writer(fileTotals)).write([], '1')
  await (await readModels.writer(holdings)).write([], '1')
  await (await readModels.writer(orgs)).write([], '1')
  const directory = {
    envsOf: (org_id: string) => (org_id === 'org' ? Object.keys(envs) : []),
    deletedEnvsOf: () => [],
  } as unknown as Directory
  const callsAt = async (time: string, plan: keyof typeof termsOf) => {
    const { runs_this_period, call_count, call_storage_bytes } = await usageOf(
      {
        directory,
        callDays: readModels.reader<CallDayDoc>(callDays),
        orgs: readModels.reader<OrgDoc>(orgs),
        fileTotals: readModels.reader<FileTotalDoc>(fileTotals),
        holdings: readModels.reader<HoldingDoc>(holdings),
      },
      { org_id: 'org', limits: termsOf[plan].limits, nowMs: Date.parse(time) },
    )
    return { runs_this_period, call_count, call_storage_bytes }
  }
  return { callsAt, close: () => readModels.close() }
}

counted('are those of all its environments', async () => {
  const { callsAt, close } = await withDays({
    a: [['2026-05-10', 1, 10]],
    b: [
      ['2026-05-10', 2, 20],
      ['2026-05-11', 4, 40],
    ],
  })
  assert.equal(await callsAt('2026-05-11T12:00:00.000Z', 'self_host'), {
    runs_this_period: 7,
    call_count: 7,
    call_storage_bytes: 70,
  })
  await close()
})

counted('of the period restart with the month, while kept runs stay counted', async () => {
  const { callsAt, close } = await withDays({
    a: [
      ['2026-05-30', 5, 50],
      ['2026-06-01', 1, 10],
    ],
  })
  assert.equal(await callsAt('2026-06-01T00:00:00.000Z', 'starter'), {
    runs_this_period: 1,
    call_count: 6,
    call_storage_bytes: 60,
  })
  await close()
})

counted('count for as many days as the plan keeps them (limits.call_retention_days)', async () => {
  const { callsAt, close } = await withDays({
    a: [
      ['2025-01-01', 1000, 1000],
      ['2026-05-02', 100, 100],
      ['2026-05-03', 10, 10],
      ['2026-05-10', 1, 1],
    ],
  })
  const at = '2026-05-10T12:00:00.000Z'
  assert.equal(await callsAt(at, 'free'), { runs_this_period: 111, call_count: 11, call_storage_bytes: 11 })
  assert.equal((await callsAt(at, 'pro')).call_count, 111)
  assert.equal((await callsAt(at, 'self_host')).call_count, 1111)
  await close()
})

counted('are summed over more days than a page of a read model has', async () => {
  const days = Array.from({ length: 250 }, (_, i) => {
    const day = new Date(Date.UTC(2026, 0, 1 + i)).toISOString().slice(0, 10)
    return [day, 1, 2] as const
  })
  const { callsAt, close } = await withDays({ a: days })
  assert.equal((await callsAt('2026-12-31T00:00:00.000Z', 'self_host')).call_storage_bytes, 500)
  await close()
})

counted.run()
