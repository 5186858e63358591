import { envIdOf, type Recorded } from '../events/event.ts'
import type { PayloadRef } from '../events/scalars.ts'
import type { Projection } from './projection.ts'

/** What the runs of an environment came to on one day, UTC, by when the log stored it. */
export type CallDayDoc = {
  readonly env_id: string
  /** `2026-05-01` */
  readonly day: string
  readonly runs: number
  /** JSON that was kept for them, in the log or in the blobs. */
  readonly bytes: number
}

/** Whose calls, by day: a plan keeps calls for so many days, and what is older no longer counts. */
export const callDays: Projection<CallDayDoc> = {
  name: 'call_days',
  version: 2,
  indexes: [{ equal: ['env_id'], sort: 'day' }],
  handles: [
    'EventPublished',
    'RunRequested',
    'RunStarted',
    'StreamDataEmitted',
    'RunLogged',
    'RunSucceeded',
    'RunFailed',
  ],
  idsOf: (recorded) => [`${envIdOf(recorded)}/${dayOf(recorded.at)}`],

  evolve(doc, recorded) {
    const { event, at } = recorded
    const { runs, bytes } = doc ?? { runs: 0, bytes: 0 }
    return {
      env_id: envIdOf(recorded),
      day: dayOf(at),
      runs: event.type === 'RunStarted' ? runs + 1 : runs,
      bytes: bytes + bytesOf(recorded),
    }
  },
}

const dayOf = (time: string): string => time.slice(0, 10)

const bytesOf = ({ event }: Recorded): number => {
  switch (event.type) {
    case 'EventPublished':
      return sizeOf(event.event_data, event.event_data_ref)
    case 'RunRequested':
      return sizeOf(event.input?.value, event.input?.value_ref) + (event.input?.sealed?.length ?? 0)
    case 'StreamDataEmitted':
      return sizeOf(event.payload, event.payload_ref)
    case 'RunLogged':
      return sizeOf(event.lines)
    case 'RunSucceeded':
      return sizeOf(event.result, event.result_ref)
    case 'RunFailed':
      return sizeOf(event.error)
    default:
      return 0
  }
}

const sizeOf = (value: unknown, ref?: PayloadRef): number =>
  ref?.size ?? (value === undefined ? 0 : Buffer.byteLength(JSON.stringify(value)))
