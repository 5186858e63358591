import { nextTickOf, schedulesOf } from '../commands/schedules/schedules.ts'
import { derivedId } from '../ids.ts'
import type { Node } from '../process/roles/node.ts'
import type { Activity } from './activity.ts'

/** What becomes due at an instant. */
export interface Due {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly ticks: readonly { readonly name: string; readonly run_id: string }[]
  /** The failed runs whose retry is due. */
  readonly retries: readonly string[]
}

/** The first ticks and retries after `now` and until `end`; null if there are none. */
export const nextDue = (
  { views }: Pick<Node, 'views'>,
  { retries }: Pick<Activity, 'retries'>,
  { now, end }: { readonly now: number; readonly end: number },
): Due | null => {
  const ticks = [...views.directory.projects()].flatMap(schedulesOf).flatMap((schedule) => {
    const { schedule_id, fn } = schedule
    const at = nextTickOf(schedule, now)
    if (at === null || at > end) return []
    const stream_id = derivedId(schedule_id, at)
    return [{ at, name: `${fn.ns}/${fn.var}`, run_id: derivedId(stream_id, 'run') }]
  })
  const waiting = [...retries].filter(([, at]) => at <= end)
  const first = Math.min(...ticks.map(({ at }) => at), ...waiting.map(([, at]) => at))
  if (first === Infinity) return null
  return {
    at: Math.max(first, now),
    ticks: ticks.filter(({ at }) => at === first),
    retries: waiting.filter(([, at]) => at <= first).map(([run_id]) => run_id),
  }
}
