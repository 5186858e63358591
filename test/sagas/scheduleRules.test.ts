import { ticksOf } from '../../src/domain/cron.ts'
import { fireSchedulesCore, type Schedule } from '../../src/sagas/fireSchedules.ts'
import { suite } from '../support/suite.ts'
import { reacting } from './reacting.ts'

const MINUTE = 60_000
const rule = suite('the rules of schedules')
const NOON = Date.parse('2026-05-01T12:00:00.000Z')
const HOUR = 60 * MINUTE
const scheduleAt = (cron: string, since: number, timezone = 'UTC'): Schedule => ({
  schedule_id: cron,
  ticks: ticksOf(cron, timezone),
  since,
  scheduled: {} as Schedule['scheduled'],
})
const armed = (one: Schedule, at: number) =>
  ({ do: 'setAlarm', key: one.schedule_id, at, input: { type: 'due', schedule: one, at } }) as const

rule('a deployed schedule waits for its next tick', () => {
  const hourly = scheduleAt('0 * * * *', NOON)
  reacting(fireSchedulesCore)
    .given()
    .when({ type: 'deployed', schedules: [hourly], former: [] })
    .at(NOON + MINUTE)
    .then(armed(hourly, NOON + HOUR))
})
rule('a tick missed less than a minute ago is caught up', () => {
  const hourly = scheduleAt('0 * * * *', NOON - 24 * HOUR)
  reacting(fireSchedulesCore)
    .given()
    .when({ type: 'deployed', schedules: [hourly], former: [] })
    .at(NOON + 59_000)
    .then(armed(hourly, NOON))
})
rule('a tick missed longer ago is skipped', () => {
  const hourly = scheduleAt('0 * * * *', NOON - 24 * HOUR)
  reacting(fireSchedulesCore)
    .given()
    .when({ type: 'deployed', schedules: [hourly], former: [] })
    .at(NOON + 61_000)
    .then(armed(hourly, NOON + HOUR))
})
rule('a tick before the deploy is not fired', () => {
  const minutely = scheduleAt('* * * * *', NOON + 1000)
  reacting(fireSchedulesCore)
    .given()
    .when({ type: 'deployed', schedules: [minutely], former: [] })
    .at(NOON + 2000)
    .then(armed(minutely, NOON + MINUTE))
})
rule('a due tick is fired, and the next one is armed when it has fired', () => {
  const hourly = scheduleAt('0 * * * *', NOON)
  const tick = { schedule: hourly, at: NOON }
  reacting(fireSchedulesCore)
    .given()
    .when({ type: 'due', ...tick })
    .at(NOON)
    .then({ do: 'carryOut', key: hourly.schedule_id, command: tick })
  reacting(fireSchedulesCore)
    .given()
    .when({ type: 'fired', ...tick })
    .at(NOON + 5)
    .then(armed(hourly, NOON + HOUR))
})
rule('a machine that slept fires only the last of its missed ticks', () => {
  const minutely = scheduleAt('* * * * *', NOON - 24 * HOUR)
  reacting(fireSchedulesCore)
    .given()
    .when({ type: 'fired', schedule: minutely, at: NOON - 8 * HOUR })
    .at(NOON + 1000)
    .then(armed(minutely, NOON))
})
rule('a tick whose alarm rings after a sleep of nine hours is skipped', () => {
  const nightly = scheduleAt('0 3 * * *', NOON - 24 * HOUR)
  const tick = { type: 'due', schedule: nightly, at: NOON - 9 * HOUR } as const
  reacting(fireSchedulesCore)
    .given()
    .when(tick)
    .at(NOON)
    .then(armed(nightly, NOON + 15 * HOUR))
})
rule('a tick that was due in a short sleep fires when the machine wakes within a minute', () => {
  const nightly = scheduleAt('0 12 * * *', NOON - 24 * HOUR)
  const tick = { schedule: nightly, at: NOON }
  reacting(fireSchedulesCore)
    .given()
    .when({ type: 'due', ...tick })
    .at(NOON + MINUTE + 9000)
    .then({ do: 'carryOut', key: nightly.schedule_id, command: tick })
})
rule('after the clock was set back, a schedule waits for its next tick by the new time', () => {
  const hourly = scheduleAt('0 * * * *', NOON - 24 * HOUR)
  const tomorrow = NOON + 24 * HOUR
  reacting(fireSchedulesCore)
    .given()
    .when({ type: 'due', schedule: hourly, at: tomorrow })
    .at(NOON + 1)
    .then(armed(hourly, NOON + HOUR))
  reacting(fireSchedulesCore)
    .given()
    .when({ type: 'fired', schedule: hourly, at: tomorrow })
    .at(NOON + 1)
    .then(armed(hourly, NOON + HOUR))
})
rule('a schedule without a further tick has no alarm', () => {
  const never = { ...scheduleAt('* * * * *', NOON), ticks: { after: () => null } }
  reacting(fireSchedulesCore)
    .given()
    .when({ type: 'deployed', schedules: [never], former: [] })
    .at(NOON)
    .then()
})
rule('the schedules of the previous build are dropped first', () => {
  const [former, next] = [scheduleAt('0 * * * *', NOON), scheduleAt('30 * * * *', NOON)]
  reacting(fireSchedulesCore)
    .given()
    .when({ type: 'deployed', schedules: [next], former: [former] })
    .at(NOON)
    .then({ do: 'drop', key: former.schedule_id }, armed(next, NOON + HOUR / 2))
})
rule('a fixed hour that the clocks skip fires right after the gap', () => {
  const since = Date.parse('2026-03-28T12:00:00.000Z')
  const nightly = scheduleAt('30 2 * * *', since, 'Europe/Berlin')
  reacting(fireSchedulesCore)
    .given()
    .when({ type: 'deployed', schedules: [nightly], former: [] })
    .at(since)
    .then(armed(nightly, Date.parse('2026-03-29T01:00:00.000Z')))
})
rule.run()
