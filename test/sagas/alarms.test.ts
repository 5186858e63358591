import * as assert from 'uvu/assert'
import { clock } from '../../src/clock.ts'
import { Alarms, LOOK_EVERY_MS } from '../../src/sagas/alarms.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const alarm = suite('an alarm')
alarm('rings once at its time, or immediately when that is past', async () => {
  const alarms = new Alarms()
  const rung: string[] = []
  alarms.set('soon', clock.now() + 30, () => void rung.push('soon'))
  alarms.set('past', clock.now() - 1000, () => void rung.push('past'))
  assert.is(alarms.size, 2)
  await until(() => alarms.size === 0)
  assert.equal(rung, ['past', 'soon'])
  alarms.close()
})
alarm('moves when set again, does not ring when cleared, and is not set after close', async () => {
  const alarms = new Alarms()
  const rung: string[] = []
  alarms.set('a', clock.now() + 3_600_000, () => void rung.push('late'))
  alarms.set('a', clock.now() - 1, () => void rung.push('moved'))
  alarms.set('b', clock.now() - 1, () => void rung.push('cleared'))
  alarms.clear('b')
  await until(() => rung.length > 0)
  alarms.set('c', clock.now() + 3_600_000, () => void rung.push('closed'))
  alarms.close()
  alarms.set('d', clock.now() - 1, () => void rung.push('after the end'))
  await new Promise(setImmediate)
  assert.is(alarms.size, 0)
  assert.equal(rung, ['moved'])
})
/** A clock that a test sets; its alarms look at it every few milliseconds. */
const setClock = () => {
  let offset = 0
  return {
    clock: { now: () => clock.now() + offset, monotonic: clock.monotonic },
    setBy: (ms: number) => void (offset += ms),
  }
}
const HOUR = 3_600_000

alarm('rings soon after the machine wakes, when its time passed during the sleep', async () => {
  const { clock, setBy } = setClock()
  const alarms = new Alarms({ clock, lookEveryMs: 5 })
  const rung: string[] = []
  alarms.set('nightly', clock.now() + 8 * HOUR, () => void rung.push('nightly'))
  alarms.set('weekly', clock.now() + 24 * HOUR, () => void rung.push('weekly'))
  setBy(9 * HOUR)
  await until(() => rung.length > 0)
  assert.equal(rung, ['nightly'])
  assert.is(alarms.size, 1)
  alarms.close()
})
alarm('whose time cannot be read rings at once', async () => {
  const alarms = new Alarms()
  const rung: string[] = []
  alarms.set('late', clock.now() + HOUR, () => void rung.push('late'))
  alarms.set('unreadable', NaN, () => void rung.push('unreadable'))
  await until(() => rung.length > 0)
  assert.equal(rung, ['unreadable'])
  alarms.close()
})
alarm('looks at the clock at least once a minute', () => assert.ok(LOOK_EVERY_MS <= 60_000))
alarm('rings after the time that was left, when the clock is set back', async () => {
  const { clock, setBy } = setClock()
  const alarms = new Alarms({ clock, lookEveryMs: 5 })
  const rung: string[] = []
  alarms.set('soon', clock.now() + 50, () => void rung.push('soon'))
  alarms.set('late', clock.now() + HOUR, () => void rung.push('late'))
  setBy(-24 * HOUR)
  alarms.set('after', clock.now() + 60, () => void rung.push('after'))
  await until(() => rung.length === 2)
  assert.equal(rung, ['soon', 'after'])
  assert.is(alarms.size, 1)
  alarms.close()
})
alarm('rings after the time that was left, when the clock of the machine is set back', async () => {
  const alarms = new Alarms()
  const rung: string[] = []
  alarms.set('soon', clock.now() + 100, () => void rung.push('soon'))
  const machineNow = Date.now
  Date.now = () => machineNow() - HOUR
  try {
    await until(() => rung.length > 0)
    alarms.set('after', clock.now() + 10, () => void rung.push('after'))
    await until(() => rung.length > 1)
  } finally {
    Date.now = machineNow
    alarms.close()
  }
  assert.equal(rung, ['soon', 'after'])
})
alarm('of many rings in the order of time, also after many were moved and cleared', async () => {
  const alarms = new Alarms()
  const rung: number[] = []
  const begin = clock.now() + 20
  for (let round = 0; round < 5; round++)
    for (let n = 0; n < 1000; n++)
      alarms.set(`${n}`, begin + ((n * 7919) % 1000) / 10 + round, () => void rung.push((n * 7919) % 1000))
  for (let n = 0; n < 1000; n += 2) alarms.clear(`${n}`)
  await until(() => alarms.size === 0)
  assert.is(rung.length, 500)
  assert.equal(
    rung,
    rung.toSorted((a, b) => a - b),
  )
})
alarm('leaves no timer behind when turns of the event loop are long', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
  const before = timers()
  const [alarms, others] = [new Alarms(), new Alarms()]
  others.set('later', clock.now() + HOUR, () => {})
  for (let n = 0; n < 60; n++) {
    let hasRung = false
    for (const end = performance.now() + 5; performance.now() < end;); // a timer set now fires early
    alarms.set('soon', clock.now() + 0.4, () => (hasRung = true))
    await until(() => hasRung)
  }
  alarms.close()
  others.close()
  assert.is(timers(), before)
})
alarm('that becomes due while it is set waits for no negative time, of which Node would warn', () => {
  const pauses: (number | undefined)[] = []
  const alarms = new Alarms({ clock: { now: () => 0, monotonic: () => 0 } })
  const [machineNow, { setTimeout }] = [Date.now, globalThis]
  let passed = 0
  Date.now = () => machineNow() + passed++ // a millisecond ends between two looks at the clock
  globalThis.setTimeout = ((wake: () => void, ms?: number) => {
    pauses.push(ms)
    return setTimeout(wake, ms)
  }) as typeof setTimeout
  try {
    alarms.set('now', 0.5, () => {})
  } finally {
    globalThis.setTimeout = setTimeout
    Date.now = machineNow
    alarms.close()
  }
  assert.equal(
    pauses.filter((ms = 0) => ms < 0),
    [],
  )
  assert.ok(pauses.length > 0)
})
alarm.run()
