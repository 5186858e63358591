import { envIdOf } from '../events/event.ts'
import type { Projection } from './projection.ts'

/** A run that was requested and that no worker has claimed. */
export type WaitingRunDoc = {
  readonly run_id: string
  readonly env_id: string
  readonly stream_id: string
}

/** The runs that only wait, so that they can be cancelled: `runs` contains a run from its start on. */
export const waitingRuns: Projection<WaitingRunDoc> = {
  name: 'waitingRuns',
  version: 1,
  indexes: [],
  isBrief: true,
  forgetsRemovals: true,
  handles: ['RunRequested', 'RunStarted', 'RunFailed', 'RunCancelled'],
  begins: ({ event }) => event.type === 'RunRequested',
  idsOf({ event }) {
    switch (event.type) {
      case 'RunRequested':
        return event.returned_by === undefined ? [event.run_id] : [] // `runs` contains it
      case 'RunStarted': // the first run of a handler was not requested
        return event.event_id !== undefined && event.attempt === 1 ? [] : [event.run_id]
      case 'RunFailed':
        return event.started_revision === null ? [event.run_id] : []
      case 'RunCancelled':
        return event.was === 'requested' ? [event.run_id] : []
      default:
        return []
    }
  },
  evolve(_doc, recorded) {
    const { event } = recorded
    if (event.type !== 'RunRequested') return null
    return { run_id: event.run_id, env_id: envIdOf(recorded), stream_id: event.stream_id }
  },
}
