import * as assert from 'uvu/assert'
import type { FunctionSpec } from '../../src/events/project.ts'
import { newId } from '../../src/ids.ts'
import { silent } from '../../src/logger.ts'
import { FunctionRates } from '../../src/plans/functionRates.ts'
import type { RateLimiter } from '../../src/ports/rateLimiter.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { nothingStored } from './mortalNodes.ts'
import { type Node, openNode } from '../support/openNode.ts'
import { MINUTE, clockInMinute, everyMinute, deployed, requestedIn, saga } from './schedules.ts'

const schedule = suite<{ node: Node }>('a schedule among many')
schedule.before.each(async (context) => {
  context.node = await openNode()
})
schedule.after.each(({ node }) => node.close())

const namesIn = (count: number): FunctionSpec[] =>
  Array.from({ length: count }, (_, n) => ({ ...everyMinute, var: `f${n}` }))

schedule('leaves turns of the event loop to others when a thousand are due at once', async ({ node }) => {
  const { directory } = await deployed(namesIn(1000), 10 * MINUTE)
  let [inTurn, most, fired] = [0, 0, 0]
  const head = () => {
    most = Math.max(most, ++inTurn)
    fired++
    return nothingStored.head()
  }
  saga({ ...node, store: { head }, directory })
  while (fired < 1000) {
    inTurn = 0
    await new Promise(setImmediate)
  }
  assert.ok(most <= 32, `${most} ticks began in a turn`)
})

schedule('counts for the rate of the plan, once for all nodes', async ({ node }) => {
  const { directory } = await deployed(namesIn(8), 10 * MINUTE, newId(), undefined, 'free')
  const counted: string[] = []
  let [asked, begun] = [0, 0]
  const limiter: RateLimiter = {
    async take(key, { burst }) {
      asked++
      const allowed = counted.length < burst
      if (allowed) counted.push(key)
      return { allowed, remaining: 0, retryAfterMs: allowed ? 0 : 31_000, resetMs: 0 }
    },
    close: () => Promise.resolve(),
  }
  const warned: unknown[] = []
  const logger = { ...silent, warn: (...line: unknown[]) => void warned.push(line) }
  const shown = clockInMinute()
  const start = () =>
    saga({
      ...node,
      shown,
      store: { head: () => (begun++, nothingStored.head()) },
      directory,
      logger,
      functionRates: new FunctionRates({ limiter, directory }),
    })
  const alarms = start()
  await until(() => asked === 8 && alarms.size === 8)
  assert.is((await requestedIn(node)).length, 5)
  assert.equal(
    counted,
    Array.from({ length: 5 }, () => 'org/tick'),
  )
  assert.is(warned.length, 1, 'all are skipped for one reason')
  assert.match(JSON.stringify(warned), /A tick was skipped.*5 of these per second/)
  counted.length = begun = 0
  const others = start()
  await until(() => begun === 8 && others.size === 8)
  assert.is(counted.length, 3, 'ticks that another node has fired do not count')
  assert.is((await requestedIn(node)).length, 8)
})

schedule('is armed while requests continue, in a build with a thousand of them', async ({ node }) => {
  const functions = Array.from({ length: 1000 }, (_, n): FunctionSpec => ({
    ns: 'jobs',
    var: `f${n}`,
    schedule: { cron: `${n % 60} 3 ${1 + Math.floor(n / 60)} 12 +MON`, timezone: 'Europe/Berlin' },
  }))
  const { directory } = await deployed(functions, 10 * MINUTE)
  let turns = 0
  const alarms = saga({ ...node, store: nothingStored, directory })
  while (alarms.size < functions.length) {
    turns += 1
    await new Promise(setImmediate)
  }
  assert.ok(turns > 5, `in ${turns} turns of the event loop`)
})

schedule.run()
