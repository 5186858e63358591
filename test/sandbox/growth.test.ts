import * as assert from 'uvu/assert'
import { Growth } from '../../src/sandbox/growth.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { openWorkbench, type Workbench } from './harness.ts'

const WAITING = {
  'main.ts': `import { emit } from 'svc'\nexport const wait = () => emit('at', process.pid)\n`,
}

/** Runs that wait until they are let go, and the processes in which they are. */
const waiting = ({ invoke }: Workbench, count: number, asked: Parameters<Workbench['invoke']>[1] = {}) => {
  const pids: number[] = []
  const { promise: end, resolve: letGo } = Promise.withResolvers<null>()
  const runs = Array.from({ length: count }, () =>
    invoke('main/wait', {
      ...asked,
      onHostCall: (call) => {
        if (call.op === 'emit') pids.push(Number(call.payload))
        return end
      },
    }),
  )
  return { pids, letGo: () => letGo(null), ended: Promise.all(runs) }
}

const lane = suite('a build whose process is full')

lane('gets more processes, so that runs that only wait do not keep others waiting', async () => {
  const bench = await openWorkbench(WAITING, { runsPerChild: 2, growAfterMs: 20, growIdle: 0 })
  const runs = waiting(bench, 6)
  await until(() => runs.pids.length === 6)
  assert.is(bench.runtime.children, 3)
  runs.letGo()
  for (const { status } of await runs.ended) assert.is(status, 'succeeded')
  await bench.runtime.close()
})

lane('uses the first process again as soon as that has room, so that the others end idle', async () => {
  const limits = { runsPerChild: 1, growAfterMs: 20, growIdle: 0, maxIdle: 1 }
  const bench = await openWorkbench(WAITING, limits)
  const runs = waiting(bench, 3)
  await until(() => runs.pids.length === 3)
  runs.letGo()
  await runs.ended
  await until(() => bench.runtime.children === 1)
  await bench.runtime.close()
})

lane('has one process for evaluated code, which keeps its sessions', async () => {
  const bench = await openWorkbench(WAITING, { runsPerChild: 1, growAfterMs: 1, growIdle: 0 })
  const build = { ...bench.build, rights: { evaluator: 'key' } }
  const first = waiting(bench, 1, { build })
  await until(() => first.pids.length === 1)
  const second = waiting(bench, 1, { build })
  const other = waiting(bench, 2) // of another lane, which grows meanwhile
  await until(() => other.pids.length === 2)
  assert.equal(second.pids, [])
  for (const { letGo, ended } of [first, second, other]) {
    letGo()
    await ended
  }
  await bench.runtime.close()
})

lane.run()

const growth = suite('one more process')

const LIMITS = { growAfterMs: 1000, growIdle: 0.5 }

growth('is due when all were full for a time and half a processor was idle', () => {
  let idle = 0
  const decides = new Growth(LIMITS, () => idle)
  assert.is(decides.isDue(0, true), false)
  idle = 499
  assert.is(decides.isDue(999, true), false)
  idle = 500
  assert.is(decides.isDue(1000, true), true)
  assert.is(decides.isDue(1050, true), false)
})

growth('is not due while the processors are busy', () => {
  const decides = new Growth(LIMITS, () => 0)
  for (let now = 0; now < 10_000; now += 50) assert.is(decides.isDue(now, true), false)
})

growth('is not due if one had room meanwhile', () => {
  let idle = 0
  const decides = new Growth(LIMITS, () => (idle += 10_000))
  for (let now = 0; now < 10_000; now += 50) assert.is(decides.isDue(now, now % 900 !== 0), false)
})

growth.run()
