import { Cron } from 'croner'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import * as assert from 'uvu/assert'
import { ticksOf } from '../../src/domain/cron.ts'
import { randomOf, SEED } from '../support/randomOf.ts'
import { suite } from '../support/suite.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const NOW = Date.parse('2026-05-01T12:00:00Z')

/** Processor time, milliseconds. */
const cpuMsOf = (work: () => void): number => {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

const cost = suite('the cost of a schedule', { timeoutMs: 60_000 })
for (const [cron, zone] of [
  ['* * 1-6,1W,2W,3W * +0-6L', 'Africa/Casablanca'],
  ['* * * 1-6 * +0-6L', 'UTC'],
  ['* * 1-7 * +0-6#5', 'America/Santiago'],
  ['0 0 30 2 *', 'UTC'],
  ['0 */2 31W 2,4,6,9,11 *', 'Europe/Berlin'],
] as const) {
  cost(`is small for ${cron} in ${zone}, which never ticks`, () => {
    const { after } = ticksOf(cron, zone)
    const ms = cpuMsOf(() => {
      for (let n = 0; n < 20; n++) assert.is(after(NOW + n), null)
    })
    assert.ok(ms < 300, `20 searches took ${ms} ms of the processor`)
  })
}
cost('is small for a day that comes once in 28 years, in a zone with two changes of the clock a year', () => {
  const { after } = ticksOf('0 */2 29 2 +MON', 'America/New_York')
  const ms = cpuMsOf(() => {
    for (let n = 0; n < 100; n++) assert.is(after(NOW + n), Date.parse('2044-02-29T05:00:00Z'))
  })
  assert.ok(ms < 300, `100 searches took ${ms} ms of the processor`)
})
cost('is small for each second of an hour that has just been repeated', () => {
  const { after } = ticksOf('* * 1 * * *', 'America/New_York')
  const repeated = Date.parse('2026-11-01T06:00:00Z')
  const ms = cpuMsOf(() => {
    for (let n = 0; n < 50; n++) assert.is(after(repeated + n), Date.parse('2026-11-02T06:00:00Z'))
  })
  assert.ok(ms < 300, `50 searches took ${ms} ms of the processor`)
})
cost('is a few kilobytes of memory: a node has the schedules of all deployed builds', () => {
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  const schedules = Array.from({ length: 1000 }, (_, n) =>
    ticksOf(`${n % 60} ${Math.floor(n / 60)} 1-${1 + (n % 28)} * 1-5`, 'Europe/Berlin'),
  )
  collectGarbage()
  const each = (process.memoryUsage().heapUsed - before) / schedules.length
  assert.ok(each < 8 << 10, `${each} bytes of each schedule`)
})
cost('is bounded by the length of its expression', () => {
  const minutes = (count: number) => `${Array.from({ length: count }, (_, n) => n % 60).join(',')} * * * *`
  assert.type(ticksOf(minutes(300), 'UTC').after, 'function')
  assert.throws(() => ticksOf(minutes(400), 'UTC'), /at most 1024 characters, got \d+/)
})
cost.run()

const same = suite(`a search for the next tick (SVC_TEST_SEED=${SEED})`, { timeoutMs: 60_000 })
same('finds what a search of each day finds', () => {
  const random = randomOf(SEED)
  const one = (all: readonly string[]): string => all[random(all.length)] ?? '*'
  for (let round = 0; round < 60; round++) {
    const day = one(['*', '?', 'L', 'LW', '29', '30', '31', '15W', '1W,31W', '1-7', '*/9', '13,L'])
    const month = one(['*', '*', '2', '4,FEB', '1-6/5', 'JUN-AUG'])
    const weekday = one(['*', '*', 'MON', '1-5', '5L', '0#5', '+FRI', '+1#2', '6,7', '+6L'])
    const cron = `${random(60)} ${one(['*/7', '5-9', '0', '23'])} ${one(['*', '3', '1,22'])} ${day} ${month} ${weekday}`
    const from = new Date(NOW + random(1e9) * 40)
    const expected = new Cron(cron, { mode: '6-part', timezone: 'UTC' }).nextRun(from)
    assert.is(
      ticksOf(cron, 'UTC').after(from.getTime()),
      expected?.getTime() ?? null,
      `${cron}, ${from.toISOString()}`,
    )
  }
})
same.run()
