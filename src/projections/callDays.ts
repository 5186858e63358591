import { envIdOf, type Recorded } from '../events/event.ts'
import { type Payload, payloadOf } from '../events/payload.ts'
import { NOTHING, type Projection } from './projection.ts'

/** The runs of an environment on one day in UTC. The time of their stored facts decides the day. */
export type CallDayDoc = {
  readonly env_id: string
  /** `2026-05-01`; empty in the document of what has expired, which counts nothing. */
  readonly day: string
  readonly runs: number
  /** Bytes of JSON stored for them, in the log or in the blobs. */
  readonly bytes: number
  /** Only in the document of what has expired, whose id is `env_id`: earlier days are removed, whatever the plan keeps. */
  readonly expired_before?: string
}

/** Calls per environment and day: a plan keeps calls for a number of days, and older ones no longer count. */
export const callDays: Projection<CallDayDoc> = {
  name: 'call_days',
  version: 4,
  indexes: [{ equal: ['env_id'], sort: 'day' }],
  handles: [
    'EventPublished',
    'RunRequested',
    'RunStarted',
    'StreamDataEmitted',
    'RunLogged',
    'RunSucceeded',
    'RunFailed',
    'CallDayCounted',
    'CallsExpired',
    'OrgDeleted',
  ],
  idsOf(recorded) {
    const { event, at } = recorded
    if (event.type === 'OrgDeleted') return []
    if (event.type === 'CallsExpired') return [event.env_id]
    return [idOf(event.type === 'CallDayCounted' ? event : { env_id: envIdOf(recorded), day: dayOf(at) })]
  },
  /** The runs of a deleted environment count until its organization is deleted. */
  clears: ({ event }) =>
    event.type === 'OrgDeleted'
      ? event.env_ids.map((env_id) => ({ equal: { env_id }, sort: 'day', id: idOf }))
      : NOTHING,

  evolve(doc, recorded) {
    const { event, at } = recorded
    if (event.type === 'CallDayCounted') {
      const { env_id, day, runs, bytes } = event
      return { env_id, day, runs, bytes } // in a rebuild, some facts of the day may have expired
    }
    if (event.type === 'CallsExpired')
      return { env_id: event.env_id, day: '', runs: 0, bytes: 0, expired_before: event.before }
    const { runs, bytes } = doc ?? { runs: 0, bytes: 0 }
    return {
      env_id: envIdOf(recorded),
      day: dayOf(at),
      runs: event.type === 'RunStarted' && !event.reclaimed && !event.replaces_lost ? runs + 1 : runs,
      bytes: bytes + bytesOf(recorded),
    }
  },
}

const idOf = ({ env_id, day }: Pick<CallDayDoc, 'env_id' | 'day'>): string =>
  day === '' ? env_id : `${env_id}/${day}`

const dayOf = (time: string): string => time.slice(0, 10)

const bytesOf = ({ event }: Recorded): number => {
  switch (event.type) {
    case 'EventPublished':
      return sizeOf(payloadOf('event_data', event))
    case 'RunRequested':
      return (
        sizeOf(payloadOf('value', event.input ?? {})) +
        (event.input?.sealed?.length ?? 0) +
        (event.input?.body_ref?.size ?? 0)
      )
    case 'StreamDataEmitted':
      return sizeOf(payloadOf('payload', event))
    case 'RunLogged':
      return sizeOf({ value: event.lines })
    case 'RunSucceeded':
      return sizeOf(payloadOf('result', event))
    case 'RunFailed':
      return sizeOf({ value: event.error })
    default:
      return 0
  }
}

const sizeOf = ({ value, ref }: Payload): number =>
  ref?.size ?? (value === undefined ? 0 : Buffer.byteLength(JSON.stringify(value)))
