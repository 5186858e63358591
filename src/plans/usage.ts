import { isoOf } from '../clock.ts'
import { everyDoc } from '../loops/everyDoc.ts'
import { UNLIMITED, type UsageLimits } from './plans.ts'
import type { CallDayDoc } from '../projections/callDays.ts'
import type { Views } from '../projections/views.ts'
import type { Collection } from '../ports/readModels.ts'

/** The usage of an organization in all its environments (SPEC.md, Usage and limits). */
export interface Usage {
  readonly runs_this_period: number
  readonly file_storage_bytes: number
  readonly team_members: number
  readonly call_storage_bytes: number
  readonly call_count: number
}

/** The read models that contain usage. A caller that needs everything in the log settles them first. */
export const usageModels = ['callDays', 'fileTotals', 'holdings', 'orgs'] as const

/** Returns the calendar month in UTC of a moment (milliseconds since 1970). `period_end` is the start of the next. */
export const periodOf = (ms: number): { readonly period_start: string; readonly period_end: string } => {
  const now = new Date(ms)
  const monthAt = (ahead: number) => isoOf(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + ahead))
  return { period_start: monthAt(0), period_end: monthAt(1) }
}

/** Returns the usage in the read models at a moment (milliseconds since 1970). */
export const usageOf = async (
  {
    directory,
    callDays,
    fileTotals,
    holdings,
    orgs,
  }: Pick<Views, 'directory' | (typeof usageModels)[number]>,
  { org_id, limits, nowMs }: { org_id: string; limits: UsageLimits; nowMs: number },
): Promise<Usage> => {
  const monthFrom = dayOf(periodOf(nowMs).period_start)
  const planKeepsFrom = keptFromOf(limits, nowMs)
  let [runs_this_period, call_count, call_storage_bytes] = [0, 0, 0]
  const env_ids = [...directory.envsOf(org_id)]
  const deleted = new Set(directory.deletedEnvsOf(org_id)) // their runs of this month were used
  const expired = await callDays.getMany(env_ids)
  for (const env_id of [...env_ids, ...deleted]) {
    const expiredBefore = expired.get(env_id)?.expired_before ?? '' // perhaps by a lower plan
    const keptFrom = expiredBefore > planKeepsFrom ? expiredBefore : planKeepsFrom
    const isDeleted = deleted.has(env_id)
    const from = keptFrom < monthFrom && !isDeleted ? keptFrom : monthFrom
    let days = 0
    for await (const { day, runs, bytes } of daysOf(callDays, env_id, from)) {
      days++
      if (day >= monthFrom) runs_this_period += runs
      if (day < keptFrom || isDeleted) continue
      call_count += runs
      call_storage_bytes += bytes
    }
    if (isDeleted && days === 0) directory.forgetUsage(env_id) // the usage is read every second
  }
  const team_members = (await orgs.get(org_id))?.team_members ?? 0
  let file_storage_bytes = 0
  for (const { bytes } of (await fileTotals.getMany(env_ids)).values()) file_storage_bytes += bytes
  for (const env_id of env_ids)
    for (const kind of ['builds', 'parts'] as const)
      for await (const { bytes } of everyDoc(holdings, {
        id: 'holder',
        equal: { env_id, kind },
        sort: 'holder',
      }))
        file_storage_bytes += bytes
  return { runs_this_period, file_storage_bytes, team_members, call_storage_bytes, call_count }
}

/** Returns the usage in percent of the limits, 0 if unlimited. More than 90 percent is a warning. */
export const percentOf = (usage: Usage, limits: UsageLimits) => {
  const percents = {
    runs: percent(usage.runs_this_period, limits.runs_per_month),
    file_storage: percent(usage.file_storage_bytes, limits.storage_bytes),
    call_storage: percent(usage.call_storage_bytes, limits.call_storage_bytes),
    team_members: percent(usage.team_members, limits.team_members),
  }
  return { ...percents, has_warning: Object.values(percents).some((value) => value > 90) }
}

const percent = (used: number, limit: number): number => (limit === UNLIMITED ? 0 : (used * 100) / limit)

const DAY_MS = 86_400_000
const dayOf = (time: string): string => time.slice(0, 10)

/** Returns the first day whose calls the plan keeps; an empty string, which sorts first, when it keeps all. */
export const keptFromOf = ({ call_retention_days }: UsageLimits, nowMs: number): string =>
  call_retention_days === UNLIMITED ? '' : dayOf(isoOf(nowMs - call_retention_days * DAY_MS))

const daysOf = (callDays: Collection<CallDayDoc>, env_id: string, from: string) =>
  everyDoc(callDays, { id: 'day', equal: { env_id }, sort: 'day', from })
