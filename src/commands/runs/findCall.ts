import { payloadOf } from '../../events/payload.ts'
import { isDerived, isId, timePartOf } from '../../ids.ts'
import type { EventDoc } from '../../projections/events.ts'
import type { CommandDeps } from '../deps.ts'
import { runIdOf } from '../events/planRuns.ts'

/** Calls of one environment in one millisecond. */
const MOST_CALLS = 100

type Deps = Pick<CommandDeps, 'views' | 'payloads'>

/**
 * Finds the `svc:call` event of the environment that starts a run, for the id that `call` returned before a worker handled
 * the event; null for any other id (I7). The id derives from the event, and begins with the same time. The read models
 * must contain everything that the caller knows.
 */
export const findCall = async (deps: Deps, run_id: string, env_id: string): Promise<EventDoc | null> => {
  if (!isId(run_id) || !isDerived(run_id)) return null
  const calls = await deps.views.events.find({
    equal: { env_id },
    sort: 'call_id',
    prefix: timePartOf(run_id),
    limit: MOST_CALLS,
    offset: 0,
    totals: false,
  })
  for (const event of calls.items) if (await starts(deps, event, run_id)) return event
  return null
}

const starts = async ({ views, payloads }: Deps, event: EventDoc, run_id: string): Promise<boolean> => {
  const data = await payloads.loadLoosely(payloadOf('event_data', event))
  const { fn, project } = (data ?? {}) as { readonly fn?: unknown; readonly project?: unknown }
  const named = typeof project === 'string' ? views.directory.project(event.env_id, project) : undefined
  const deployed = views.directory.functionAt(event.env_id, String(fn), named?.project_id)
  return deployed !== undefined && runIdOf(event.event_id, deployed) === run_id
}
