import Type from 'typebox'
import { fact, Id } from './scalars.ts'

/**
 * What `call_days` has about a day that is over. The facts of the day may expire before the usage of its month has ended, so
 * a rebuild takes the numbers from here. `day`: such as `2026-05-01`, in UTC.
 */
export const CallDayCounted = fact('CallDayCounted', {
  env_id: Id,
  day: Type.String(),
  runs: Type.Integer(),
  bytes: Type.Integer(),
})

/** The plan keeps no runs and events that began before this day. */
export const CallsExpired = fact('CallsExpired', { env_id: Id, before: Type.String() })
