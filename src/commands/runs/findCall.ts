import { isoOf } from '../../clock.ts'
import { CALL } from '../../events/eventType.ts'
import { payloadOf } from '../../events/payload.ts'
import { isDerived, isId, timeOf } from '../../ids.ts'
import { everyDoc } from '../../loops/everyDoc.ts'
import type { EventDoc } from '../../projections/events.ts'
import type { CommandDeps } from '../deps.ts'
import { runIdOf } from '../events/planRuns.ts'

/** The clock of the event store may differ from that of the node that made the id, milliseconds. */
const BEFORE_MS = 5000
const AFTER_MS = 60_000
/** Calls of that time that are looked at. */
const MOST_CALLS = 10_000

type Deps = Pick<CommandDeps, 'views' | 'payloads'>

/**
 * Finds the `svc:call` event of the environment that starts a run, for the id that `call` returned before a worker handled
 * the event; null for any other id (I7). The id derives from the event, and begins with the same time. The read models
 * must contain everything that the caller knows.
 */
export const findCall = async (deps: Deps, run_id: string, env_id: string): Promise<EventDoc | null> => {
  if (!isId(run_id) || !isDerived(run_id)) return null
  const time = timeOf(run_id)
  const calls = everyDoc(deps.views.events, {
    id: 'event_id',
    equal: { env_id, event_type: CALL },
    sort: 'order',
    from: isoOf(time - BEFORE_MS),
    before: isoOf(time + AFTER_MS),
  })
  let left = MOST_CALLS
  for await (const event of calls) {
    if (left-- === 0) return null
    if (timeOf(event.event_id) !== time || !(await starts(deps, event, run_id))) continue
    return event
  }
  return null
}

const starts = async ({ views, payloads }: Deps, event: EventDoc, run_id: string): Promise<boolean> => {
  const data = await payloads.loadLoosely(payloadOf('event_data', event))
  const { fn, project } = (data ?? {}) as { readonly fn?: unknown; readonly project?: unknown }
  const named = typeof project === 'string' ? views.directory.project(event.env_id, project) : undefined
  const deployed = views.directory.functionAt(event.env_id, String(fn), named?.project_id)
  return deployed !== undefined && runIdOf(event.event_id, deployed) === run_id
}
