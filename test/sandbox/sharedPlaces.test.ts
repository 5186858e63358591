import * as assert from 'uvu/assert'
import type { LaneRef } from '../../src/ports/runtime.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { openWorkbench, resultOf, type Workbench } from './harness.ts'

const SOURCE = {
  'main.ts': `
    import { emit, run } from 'svc'
    const own = Math.random()
    export const parent = (n) => run('main/parent', n - 1)
    export const leaf = () => 'leaf'
    export const busy = () => emit('at', 'work')
    export const busyParent = async () => { await emit('at', 'work'); return await run('main/leaf') }
    export const identity = () => own
  `,
}
const CHILD = { run_type: 'run' } as const

/** A lane of its own for each name. */
const laneOf = (build: LaneRef, name: string | number, evaluator?: string): LaneRef => ({
  ...build,
  rights: { context: [String(name)], evaluator },
})

const places = suite('lanes that wait for the place of a process')

places('do not wait for runs that only wait for their child runs, up to a limit', async () => {
  const { runtime, build, invoke } = await openWorkbench(SOURCE, { maxChildren: 1 })
  let asked = 0
  const runIn = (depth: number): Promise<unknown> =>
    resultOf(
      invoke(depth === 0 ? 'main/leaf' : 'main/parent', {
        build: laneOf(build, depth),
        args: [depth],
        run: CHILD,
        onHostCall: () => (asked++, runIn(depth - 1)),
      }),
    )
  assert.is(await runIn(1), 'leaf')
  asked = 0
  void runIn(2).catch(() => {})
  await until(() => asked === 2 && runtime.isFullFor(build.org_id))
  const inFirst = invoke('main/leaf', { build: laneOf(build, 2), run: CHILD })
  assert.is(await resultOf(inFirst), 'leaf') // meanwhile, the places were checked again
  assert.is(runtime.children, 2)
  await runtime.close()
})

/** Keeps lanes busy: each has a run, and a new one begins before the last one ends. Returns a function that ends that. */
const keepBusy = ({ invoke }: Workbench, lanes: readonly LaneRef[]) => {
  let isOver = false
  let begun = 0
  const busy = async (lane: LaneRef, target: string): Promise<void> => {
    const next: Promise<void>[] = []
    await invoke(target, {
      build: lane,
      onHostCall: (call) => {
        if (call.op === 'run') return resultOf(invoke('main/leaf', { build: lane, run: CHILD }))
        begun++
        if (!isOver) next.push(busy(lane, target))
        return new Promise((resolve) => setTimeout(() => resolve(null), 50))
      },
    })
    await Promise.all(next)
  }
  const start = (target: string) => Promise.all(lanes.map((lane) => busy(lane, target)))
  return { start, begun: () => begun, end: () => void (isOver = true) }
}

for (const target of ['main/busy', 'main/busyParent'])
  places(`get that of a build which is always busy with ${target}`, async () => {
    const bench = await openWorkbench(SOURCE, { maxChildren: 1, shareAfterMs: 50 })
    const { runtime, build, invoke } = bench
    const { start, begun, end } = keepBusy(bench, [laneOf(build, 0)])
    const ended = start(target)
    await until(() => begun() > 3)
    assert.is(await resultOf(invoke('main/leaf', { build: laneOf(build, 'late') })), 'leaf')
    const before = begun()
    await until(() => begun() > before + 3) // the busy build continues
    end()
    await ended
    await runtime.close()
  })

places('get that of evaluated code, which keeps its sessions, last', async () => {
  const bench = await openWorkbench(SOURCE, { maxChildren: 3, shareAfterMs: 50 })
  const { runtime, build, invoke } = bench
  const evaluated = laneOf(build, 'eval', 'key')
  const identity = () => resultOf(invoke('main/identity', { build: evaluated }))
  const mine = await identity()
  const { start, begun, end } = keepBusy(bench, [evaluated, laneOf(build, 0)])
  const ended = start('main/busy')
  await until(() => runtime.children === 2 && begun() > 3)
  assert.is(await resultOf(invoke('main/leaf', { build: laneOf(build, 'late') })), 'leaf')
  assert.is(await identity(), mine)
  end()
  await ended
  await runtime.close()
})

places.run()
