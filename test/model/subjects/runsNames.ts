import { runIdOf } from '../../../src/commands/events/planRuns.ts'
import { replayIdOf } from '../../../src/commands/events/replayEvent.ts'
import { scheduleIdOf } from '../../../src/commands/runs/fireTick.ts'
import { retryIdOf } from '../../../src/domain/run.ts'
import { derivedId } from '../../../src/ids.ts'
import type { Ids } from '../world.ts'
import { CHILDREN, EVENTS } from './runsSetup.ts'

/** The names of a scenario as ids of the service. */
export const namesOf = (ids: Ids, project_id: string) => {
  const eventId = (event: string): string => {
    const replayed = EVENTS[event]?.replays
    return replayed === undefined ? ids.of(`${event} event`) : replayIdOf(eventId(replayed))
  }
  const tickStream = (tick: string): string =>
    derivedId(scheduleIdOf(project_id, 'm', 'first'), Number(tick.slice('tick'.length)))
  const streamId = (name: string): string => {
    const event = EVENTS[name]
    if (name.startsWith('tick')) return tickStream(name)
    if (!event) return ids.of(`${name} stream`)
    return event.on === undefined ? ids.of(`${name} stream`) : streamId(event.on)
  }
  /** The event or request of a run, or that of its parent. */
  const causeOf = (run: string): string => {
    const name = run.replaceAll('!', '')
    const parent = CHILDREN[name]
    return parent === undefined ? (name.split('/')[0] ?? '') : causeOf(parent)
  }
  const runId = (run: string): string => {
    if (run.endsWith('!')) return retryIdOf(runId(run.slice(0, -1)))
    const [event = '', fn = ''] = run.split('/')
    if (event.startsWith('tick')) return derivedId(tickStream(event), 'run')
    if (!EVENTS[event]) return ids.of(`${event} run`)
    return runIdOf(eventId(event), { project: { project_id }, fn: { ns: 'm', var: fn } } as Parameters<
      typeof runIdOf
    >[1])
  }
  return { eventId, runId, streamId, streamOfRun: (run: string) => streamId(causeOf(run)) }
}
