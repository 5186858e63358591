import { getPriority } from 'node:os'
import * as assert from 'uvu/assert'
import { childrenFor } from '../../src/sandbox/limits.ts'
import type { LaneRef } from '../../src/ports/runtime.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { openWorkbench, resultOf } from './harness.ts'

const fair = suite('the children of several organizations')

/** Lanes of an organization: each has a child of its own. */
const lanesOf = (build: LaneRef, org_id: string, count: number): LaneRef[] =>
  Array.from({ length: count }, (_, n) => ({ ...build, org_id, env_id: `${org_id} ${n}` }))

const sleeping = { args: [60_000], timeoutMs: 120_000 }

fair('leave a place to a newcomer, although one of them fills all it gets with sleeping runs', async () => {
  const { runtime, build, invoke } = await openWorkbench('ok', { maxChildren: 6 })
  for (const lane of lanesOf(build, 'greedy', 8))
    void invoke('orders.handlers/later', { ...sleeping, build: lane }).catch(() => {})
  await until(() => runtime.isFullFor('greedy'))
  const before = runtime.children
  assert.ok(before < 6, `${before} of 6 places are taken by one organization`)
  for (const org_id of ['newcomer', 'another']) {
    const [lane = build] = lanesOf(build, org_id, 1)
    assert.is(await resultOf(invoke('orders.handlers/add', { args: [1, 2], build: lane })), 3)
    assert.not(runtime.isFullFor(org_id))
  }
  await runtime.close()
})

fair('end first where an organization has the most, when a place is needed', async () => {
  const { runtime, build, invoke } = await openWorkbench('ok', { maxChildren: 3 })
  const identityOf = (lane: LaneRef) => resultOf(invoke('orders.handlers/identity', { build: lane }))
  const [small = build] = lanesOf(build, 'small', 1)
  const [large = build, second = build] = lanesOf(build, 'large', 2)
  const mine = await identityOf(small) // idle for the longest time
  const before = [await identityOf(large), await identityOf(second)]
  await identityOf(lanesOf(build, 'third', 1)[0] ?? build)
  assert.is(await identityOf(small), mine)
  assert.is.not(await identityOf(large), before[0])
  await runtime.close()
})

fair('that are idle and beyond the limit end where an organization has the most', async () => {
  const { runtime, build, invoke } = await openWorkbench('ok', { maxIdle: 2 })
  const identityOf = (lane: LaneRef) => resultOf(invoke('orders.handlers/identity', { build: lane }))
  const [small = build] = lanesOf(build, 'small', 1)
  const mine = await identityOf(small)
  await Promise.all(lanesOf(build, 'large', 3).map(identityOf))
  await until(() => runtime.children <= 2)
  assert.is(await identityOf(small), mine)
  await runtime.close()
})

fair('get less of a busy processor than the service, and less with each further child', async () => {
  const { runtime, build, invoke } = await openWorkbench({
    'main.ts': `import os from 'node:os'\nexport const niceness = () => os.getPriority()\n`,
  })
  const own = getPriority()
  const found: unknown[] = []
  for (const lane of [...lanesOf(build, 'large', 2), ...lanesOf(build, 'small', 1)])
    found.push(await resultOf(invoke('main/niceness', { build: lane })))
  assert.equal(
    found,
    [5, 6, 5].map((nicer) => Math.min(19, own + nicer)),
  )
  await runtime.close()
})

fair('are as many as fit into three quarters of the memory', () => {
  const GiB = 1 << 30
  assert.equal(
    [1, 4, 8, 64].map((n) => childrenFor(n * GiB)),
    [4, 7, 15, 32],
  )
})

fair('count a run that waits for several child runs once', async () => {
  const { runtime, invoke } = await openWorkbench(
    {
      'main.ts': `
        import { emit, run } from 'svc'
        export const parent = async () => { await Promise.all(Array.from({ length: 10 }, () => run('main/child'))) }
        export const working = () => emit('at', 'work')
      `,
    },
    { runsPerChild: 1, growAfterMs: 600_000 }, // a second process could work at the same time
  )
  const { promise: childrenEnd, resolve: endChildren } = Promise.withResolvers<null>()
  let asked = 0
  const parent = invoke('main/parent', { onHostCall: () => (asked++, childrenEnd) })
  await until(() => asked === 10)
  const working = { now: 0, most: 0 }
  const work = async () => {
    working.most = Math.max(working.most, ++working.now)
    await new Promise((resolve) => setTimeout(resolve, 50))
    working.now--
    return null
  }
  await Promise.all(Array.from({ length: 4 }, () => invoke('main/working', { onHostCall: work })))
  assert.is(working.most, 1)
  endChildren(null)
  assert.is((await parent).status, 'succeeded')
  await runtime.close()
})

fair.run()
