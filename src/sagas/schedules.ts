import { clock, isoOf } from '../clock.ts'
import type { Aggregates } from '../domain/aggregates.ts'
import { isAppError, messageOf } from '../errors.ts'
import { streamOf } from '../events/streams.ts'
import { derivedId } from '../ids.ts'
import type { Logger } from '../logger.ts'
import type { Deployed, Directory } from '../projections/directory.ts'
import type { Quotas } from '../plans/quotas.ts'
import type { Alarms } from './alarms.ts'
import { type Ticks, ticksOf } from '../domain/cron.ts'
import { placeOf } from '../commands/planRuns.ts'

/** A tick that nobody could fire in time still fires when a node comes back this soon. */
const CATCH_UP_MS = 60_000

interface Deps {
  readonly aggregates: Pick<Aggregates, 'streams'>
  readonly directory: Directory
  readonly quotas: Pick<Quotas, 'checkRun'>
  readonly alarms: Alarms
  readonly logger: Logger
}

/** The same over redeploys, as long as the function keeps its place. */
export const scheduleIdOf = (project_id: string, ns: string, name: string): string =>
  derivedId('schedule', project_id, ns, name)

/**
 * Fires the cron schedules of the deployed builds. Every node may: the stream of a tick has an id derived
 * from schedule and instant, so the second append finds it taken and the tick fires once.
 */
export const schedules = async (deps: Deps, signal: AbortSignal): Promise<void> => {
  const armed = new Map<string, Set<string>>()
  const rearm = (project_id: string): void => {
    const before = armed.get(project_id)
    for (const key of before ?? []) deps.alarms.clear(key)
    before?.clear()
    const keys = new Set<string>()
    for (const scheduled of scheduledOf(deps.directory, project_id)) {
      try {
        arm(deps, scheduled, keys)
      } catch (error) {
        deps.logger.warn('A schedule cannot be armed', { project_id, error: messageOf(error) })
      }
    }
    if (keys.size > 0) armed.set(project_id, keys)
    else armed.delete(project_id)
  }
  const stop = deps.directory.onChange(rearm)
  for (const { project_id } of deps.directory.projects()) rearm(project_id)
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
  stop()
}

const scheduledOf = (directory: Directory, project_id: string): Deployed[] => {
  for (const project of directory.projects()) {
    const build = project.deployed
    if (project.project_id !== project_id || !build) continue
    return build.functions.filter((fn) => fn.schedule).map((fn) => ({ project, build, fn }))
  }
  return []
}

const arm = (deps: Deps, scheduled: Deployed, keys: Set<string>): void => {
  const { project, build, fn } = scheduled
  const { cron, timezone } = fn.schedule ?? { cron: '', timezone: 'UTC' }
  const ticks: Ticks = ticksOf(cron, timezone)
  const schedule_id = scheduleIdOf(project.project_id, fn.ns, fn.var)
  const key = `tick:${schedule_id}`
  keys.add(key)
  const armAfter = (ms: number): void => {
    const tick = ticks.after(ms)
    if (tick === null) return
    deps.alarms.set(key, tick, () => {
      fire(deps, scheduled, schedule_id, tick).catch((error: unknown) => {
        if (!keys.has(key)) return // another build was deployed meanwhile
        if (isAppError(error, 'quota_exceeded')) {
          deps.logger.warn('A tick was left out', { schedule_id, error: error.message })
          return
        }
        deps.logger.warn('A tick could not be stored and is tried again', {
          schedule_id,
          error: messageOf(error),
        })
        deps.alarms.set(key, clock.now() + 500, () => armAfter(tick - 1))
      })
      armAfter(Math.max(tick, clock.now() - CATCH_UP_MS)) // a machine that slept does not make up for its night
    })
  }
  armAfter(Math.max(clock.now() - CATCH_UP_MS, Date.parse(build.since)))
}

const fire = async (
  { aggregates, quotas }: Deps,
  deployed: Deployed,
  schedule_id: string,
  tick: number,
): Promise<void> => {
  const { project, fn } = deployed
  await quotas.checkRun(project.env_id)
  const stream_id = derivedId(schedule_id, tick)
  const run_id = derivedId(stream_id, 'run')
  await aggregates.streams.handle(
    streamOf.stream(stream_id),
    {
      type: 'RequestRun',
      env_id: project.env_id,
      create: true,
      plan: {
        run_id,
        stream_id,
        run_type: 'schedule',
        ...placeOf(deployed),
        ...(fn.retry && fn.retry.attempts > 0 && { retry: fn.retry }),
        attempt: 1,
      },
      input: { kind: 'tick', value: { cron: fn.schedule?.cron, scheduled_time: isoOf(tick) } },
    },
    { env_id: project.env_id, correlation_id: schedule_id },
  )
}
