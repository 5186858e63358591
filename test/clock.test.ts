import * as assert from 'uvu/assert'
import { clock, virtualClock } from '../src/clock.ts'
import { Alarms } from '../src/sagas/alarms.ts'
import { suite } from './support/suite.ts'
import { until } from './support/until.ts'

const HOUR = 3_600_000

const stopped = suite('a stopped clock')
stopped.after.each(() => virtualClock.set(null))

stopped('rings an alarm when it is moved to its time, and not before', async () => {
  virtualClock.set(0)
  assert.is(clock.iso(), '1970-01-01T00:00:00.000Z')
  const alarms = new Alarms({ lookEveryMs: 1 })
  const rung: string[] = []
  alarms.set('a', HOUR, () => void rung.push(`a ${clock.now()}`))
  alarms.set('b', 2 * HOUR, () => void rung.push(`b ${clock.now()}`))
  alarms.set('past', -1, () => void rung.push('past'))
  await until(() => rung.length > 0)
  await new Promise((resolve) => setTimeout(resolve, 20))
  virtualClock.set(HOUR - 1)
  assert.equal(rung, ['past'])
  virtualClock.set(HOUR)
  assert.equal(rung, ['past', `a ${HOUR}`])
  virtualClock.set(3 * HOUR)
  assert.equal(rung, ['past', `a ${HOUR}`, `b ${3 * HOUR}`])
  alarms.close()
})

stopped('runs again from the time of the machine', () => {
  virtualClock.set(0)
  virtualClock.set(null)
  assert.ok(clock.now() > Date.parse('2020-01-01'))
})

stopped.run()
