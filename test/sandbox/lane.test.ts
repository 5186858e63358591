import * as assert from 'uvu/assert'
import { FairPlaces } from '../../src/loops/fairPlaces.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { hasFrozenChild, openWorkbench, resultOf } from './harness.ts'

const ORG = 'acme'

const lane = suite('the runs that wait for a process')

lane(
  'begin before later ones if the process was frozen while their input was loaded: they hold places',
  async () => {
    const places = new FairPlaces({ total: 2, perFree: Infinity })
    const { runtime, invoke } = await openWorkbench('ok', { runsPerChild: 2 })
    await resultOf(invoke('orders.handlers/nothing'))
    const begun: number[] = []
    let frozen: Promise<boolean> | undefined
    const runs = Array.from({ length: 6 }, async (_, n) => {
      const outcome = invoke('orders.handlers/add', {
        loadInput: async () => {
          await places.take(ORG)
          if (n < 2) await (frozen ??= until(hasFrozenChild))
          return { kind: 'args', args: [n, n] }
        },
        onStart: () => begun.push(n),
      })
      const result = await resultOf(outcome)
      places.giveBack(ORG)
      return result
    })
    assert.equal(await Promise.all(runs), [0, 2, 4, 6, 8, 10])
    assert.equal(new Set(begun.slice(0, 2)), new Set([0, 1]))
    await runtime.close()
  },
)

/** Parents that each wait for a child run, which the host starts. */
const PARENTS = {
  'main.ts': `
    import { run } from 'svc'
    export const parent = () => run('main/child')
    export const child = () => 'grown'
  `,
}
const CHILD = { run_type: 'run' } as const

lane(
  'begin before their own parents do, also if as many parents wait for them as a process accepts',
  async () => {
    const { runtime, invoke } = await openWorkbench(PARENTS, { runsPerChild: 1, maxChildren: 1 })
    const asked: Promise<void>[] = []
    const { promise: allAsked, resolve } = Promise.withResolvers<void>()
    const parents = Array.from({ length: 15 }, () =>
      invoke('main/parent', {
        onHostCall: () => {
          if (asked.push(allAsked) === 10) resolve()
          return allAsked.then(() => resultOf(invoke('main/child', { run: CHILD })))
        },
      }),
    )
    for (const parent of parents) assert.is(await resultOf(parent), 'grown')
    await runtime.close()
  },
)

lane.run()
