import { clock, isoOf } from '../../clock.ts'
import type { EnvCause } from '../../events/event.ts'
import type { RunPlan } from '../../events/run.ts'
import { timeOf } from '../../ids.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { orRequested, storeRequest } from '../runs/requestRun.ts'
import { tickInput, tickPlan } from '../runs/fireTick.ts'
import { scheduleFor } from './schedules.ts'

/** A run that waits for a worker. */
export interface RequestedRun {
  readonly run_id: string
  readonly stream_id: string
  /** ISO 8601. */
  readonly requested_at: string
}

/**
 * Starts the function of a schedule now, with the input of a tick. A pause does not prevent it. Resolves when the request
 * is durable; a repetition with the same ids starts nothing. Rejects with `not_found` or `quota_exceeded`.
 */
export const runSchedule = async (
  deps: Pick<CommandDeps, 'aggregates' | 'views' | 'quotas'>,
  at: { readonly project: string; readonly schedule_id: string },
  { cause, newId }: Caller,
): Promise<RequestedRun> => {
  const ids = { run_id: newId('run'), stream_id: newId('stream') }
  const requested_at = isoOf(timeOf(ids.run_id)) // a repetition has the same input
  const scheduled = await orRequested(deps, admitted(deps, at, cause), { cause, newId })
  if (scheduled) {
    const plan: RunPlan = {
      ...tickPlan(scheduled, ids),
      requested_at,
      ...(cause.traceparent !== undefined && { traceparent: cause.traceparent }),
    }
    await storeRequest(deps, { plan, input: tickInput(scheduled, requested_at), cause, now: clock.iso() })
  }
  return { ...ids, requested_at }
}

const admitted = async (
  { views, quotas }: Pick<CommandDeps, 'views' | 'quotas'>,
  at: { readonly project: string; readonly schedule_id: string },
  { env_id }: EnvCause,
): Promise<ReturnType<typeof scheduleFor>> => {
  await views.settled('builds')
  const scheduled = scheduleFor(views.directory, env_id, at)
  await quotas.checkRun(env_id)
  return scheduled
}
