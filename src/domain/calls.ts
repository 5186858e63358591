import type { EventOf } from '../events/index.ts'
import { type Decider, type Folded, foreign } from './decider.ts'

/** The days of an environment that were counted and expired. Days sort as text; an empty text is before all. */
interface Calls {
  readonly counted: string
  readonly expired: string
  /** The `order` up to which the documents of the expired days were removed; null: all of them. */
  readonly removedUpTo: string | null
  /** The last day whose runs were counted. */
  readonly runsCounted: string
}

export type CallsCommand =
  | ({ readonly type: 'CountDay' } & Omit<EventOf<'CallDayCounted'>, 'type'>)
  | ({ readonly type: 'CountRuns' } & Omit<EventOf<'RunDayCounted'>, 'type'>)
  | ({ readonly type: 'ExpireCalls' } & Omit<EventOf<'CallsExpired'>, 'type'>)

type CallsEvent = EventOf<'CallDayCounted' | 'RunDayCounted' | 'CallsExpired'>

/** Each day of an environment is counted once, in order, and expires once, in one fact or in several. */
export const calls: Decider<Calls, CallsCommand, CallsEvent> = {
  initial: () => ({ counted: '', expired: '', removedUpTo: null, runsCounted: '' }),

  decide(command, { counted, expired, removedUpTo, runsCounted }) {
    switch (command.type) {
      case 'CountDay': {
        const { type: _, ...day } = command
        return day.day > counted ? [{ type: 'CallDayCounted', ...day }] : []
      }
      case 'CountRuns': {
        const { type: _, ...day } = command
        return day.day > runsCounted ? [{ type: 'RunDayCounted', ...day }] : []
      }
      case 'ExpireCalls': {
        const { type: _, ...expiry } = command
        const { before, up_to } = expiry
        const continues =
          before === expired && removedUpTo !== null && (up_to === undefined || up_to > removedUpTo)
        return before > expired || continues ? [{ type: 'CallsExpired', ...expiry }] : []
      }
      default:
        return command satisfies never
    }
  },

  evolve(state, { event }: Folded<CallsEvent>) {
    switch (event.type) {
      case 'CallDayCounted':
        return { ...state, counted: event.day }
      case 'RunDayCounted':
        return { ...state, runsCounted: event.day }
      case 'CallsExpired':
        return { ...state, expired: event.before, removedUpTo: event.up_to ?? null }
      default:
        return foreign(event)
    }
  },
}
