import { isoOf } from '../../clock.ts'
import { bySystem } from '../../events/actor.ts'
import { streamOf } from '../../events/streams.ts'
import { derivedId } from '../../ids.ts'
import type { Deployed } from '../../projections/wiring.ts'
import type { CommandDeps } from '../deps.ts'
import { placeOf } from '../events/planRuns.ts'

export interface TickDeps {
  readonly aggregates: Pick<CommandDeps['aggregates'], 'streams'>
  readonly quotas: Pick<CommandDeps['quotas'], 'checkRun'>
  readonly tracer?: CommandDeps['tracer']
}

/** The id of a schedule. It survives redeploys while the function keeps its namespace and name. */
export const scheduleIdOf = (project_id: string, ns: string, name: string): string =>
  derivedId('schedule', project_id, ns, name)

/**
 * Requests the run of a schedule (SPEC.md, Schedule) for one tick (milliseconds since 1970). The ids derive from
 * schedule and tick, so each tick fires once, even if several nodes request it. Rejects with `quota_exceeded`.
 */
export const fireTick = async (
  { aggregates, quotas, tracer }: TickDeps,
  { scheduled, tick }: { readonly scheduled: Deployed; readonly tick: number },
): Promise<void> => {
  const { fn, project } = scheduled
  const { env_id } = project
  await quotas.checkRun(env_id)
  const schedule_id = scheduleIdOf(project.project_id, fn.ns, fn.var)
  const stream_id = derivedId(schedule_id, tick)
  const span = tracer?.begin('tick', { kind: 'producer', attributes: { 'svc.schedule_id': schedule_id } })
  await aggregates.streams.handle(
    streamOf.stream(stream_id),
    {
      type: 'RequestRun',
      env_id,
      create: true,
      plan: {
        run_id: derivedId(stream_id, 'run'),
        stream_id,
        run_type: 'schedule',
        ...placeOf(scheduled),
        ...(fn.retry && fn.retry.attempts > 0 && { retry: fn.retry }),
        attempt: 1,
        requested_at: isoOf(tick),
        ...(span && { traceparent: span.traceparent }),
      },
      input: { kind: 'tick', value: { cron: fn.schedule?.cron, scheduled_time: isoOf(tick) } },
    },
    { env_id, correlation_id: schedule_id, ...bySystem('schedules') },
  )
  span?.end()
}
