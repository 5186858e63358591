import Type from 'typebox'
import { fact, Id, record, Text } from './scalars.ts'

/**
 * What `call_days` has about a day that is over. The facts of the day may expire before the usage of its month has ended, so
 * a rebuild takes the numbers from here. `day`: such as `2026-05-01`, in UTC.
 */
export const CallDayCounted = fact('CallDayCounted', {
  env_id: Id,
  day: Text,
  runs: Type.Integer(),
  bytes: Type.Integer(),
})

/**
 * The statistics of the runs that started on a day, before the plan keeps them no longer: their facts may expire, so a
 * rebuild takes the numbers from here. By type of run: `n` has the numbers by status, `d` those by bucket of duration.
 */
export const RunDayCounted = fact('RunDayCounted', {
  env_id: Id,
  day: Text,
  tallies: Type.Record(
    Type.String(),
    record({ n: Type.Array(Type.Integer()), d: Type.Record(Type.String(), Type.Integer()) }),
  ),
})

/**
 * The plan keeps no runs and events that began before this day. `up_to`: the read models have many of them, so this fact
 * removes only those before this `order`, and another fact follows.
 */
export const CallsExpired = fact('CallsExpired', { env_id: Id, before: Text, up_to: Type.Optional(Text) })
