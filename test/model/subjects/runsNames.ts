import { runIdOf } from '../../../src/commands/events/planRuns.ts'
import { scheduleIdOf } from '../../../src/commands/runs/fireTick.ts'
import { retryIdOf } from '../../../src/domain/run.ts'
import { derivedId } from '../../../src/ids.ts'
import type { Ids } from '../world.ts'
import { EVENTS } from './runsSetup.ts'

/** The names of a scenario as ids of the service. */
export const namesOf = (ids: Ids, project_id: string) => {
  const eventId = (event: string): string => ids.of(`${event} event`)
  const tickStream = (tick: string): string =>
    derivedId(scheduleIdOf(project_id, 'm', 'first'), Number(tick.slice('tick'.length)))
  const streamId = (name: string): string => {
    const event = EVENTS[name]
    if (!event) return tickStream(name)
    return event.on === undefined ? ids.of(`${name} stream`) : streamId(event.on)
  }
  /** The event or tick of a run. */
  const causeOf = (run: string): string => run.replaceAll('!', '').split('/')[0] ?? ''
  const runId = (run: string): string => {
    if (run.endsWith('!')) return retryIdOf(runId(run.slice(0, -1)))
    const [event = '', fn = ''] = run.split('/')
    if (!EVENTS[event]) return derivedId(tickStream(event), 'run')
    return runIdOf(eventId(event), { project: { project_id }, fn: { ns: 'm', var: fn } } as Parameters<
      typeof runIdOf
    >[1])
  }
  return { eventId, runId, streamId, streamOfRun: (run: string) => streamId(causeOf(run)) }
}
