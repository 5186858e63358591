import { isoOf } from '../../clock.ts'
import { bySystem } from '../../events/actor.ts'
import type { RunInput, RunPlan } from '../../events/run.ts'
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

/** The part of a run that a tick and a start by hand have in common. */
export const tickPlan = (
  scheduled: Deployed,
  ids: { readonly run_id: string; readonly stream_id: string },
): RunPlan => {
  const { retry } = scheduled.fn
  return {
    ...ids,
    run_type: 'schedule',
    ...placeOf(scheduled),
    ...(retry && retry.attempts > 0 && { retry }),
    attempt: 1,
  }
}

/** The input of a scheduled function. `scheduled_time`: ISO 8601. */
export const tickInput = ({ fn }: Pick<Deployed, 'fn'>, scheduled_time: string): RunInput => ({
  kind: 'tick',
  value: { cron: fn.schedule?.cron, scheduled_time },
})

interface Tick {
  readonly scheduled: Deployed
  /** Milliseconds since 1970. */
  readonly tick: number
}

const streamIdOf = ({ scheduled: { fn, project }, tick }: Tick): string =>
  derivedId(scheduleIdOf(project.project_id, fn.ns, fn.var), tick)

/** Whether a node has fired the tick. */
export const hasFired = ({ aggregates }: Pick<TickDeps, 'aggregates'>, tick: Tick): Promise<boolean> =>
  aggregates.streams.read(streamOf.stream(streamIdOf(tick)), (_, revision) => revision >= 0)

/**
 * Requests the run of a schedule (SPEC.md, Schedule) for one tick. The ids derive from
 * schedule and tick, so each tick fires once, even if several nodes request it. Rejects with `quota_exceeded`.
 */
export const fireTick = async (
  { aggregates, quotas, tracer }: TickDeps,
  { scheduled, tick }: Tick,
): Promise<void> => {
  const { fn, project } = scheduled
  const { env_id } = project
  await quotas.checkRun(env_id)
  const schedule_id = scheduleIdOf(project.project_id, fn.ns, fn.var)
  const stream_id = streamIdOf({ scheduled, tick })
  const span = tracer?.begin('tick', { kind: 'producer', attributes: { 'svc.schedule_id': schedule_id } })
  await aggregates.streams.handle(
    streamOf.stream(stream_id),
    {
      type: 'RequestRun',
      env_id,
      create: true,
      plan: {
        ...tickPlan(scheduled, { run_id: derivedId(stream_id, 'run'), stream_id }),
        requested_at: isoOf(tick),
        ...(span && { traceparent: span.traceparent }),
      },
      input: tickInput(scheduled, isoOf(tick)),
    },
    { env_id, correlation_id: schedule_id, ...bySystem('schedules') },
  )
  span?.end()
}
