import * as assert from 'uvu/assert'
import { openReadModels } from '../../src/adapters/embedded/readModels/index.ts'
import { AppError } from '../../src/errors.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import type { ReadModels } from '../../src/ports/readModels.ts'
import { PassedCheckpoints } from '../../src/projections/forgetRemovals.ts'
import type { Projection } from '../../src/projections/projection.ts'
import { Projector } from '../../src/projections/projector.ts'
import { waitingRuns } from '../../src/projections/waitingRuns.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import { any, dump, life, newEvents, projecting, withWriter } from './projectedNames.ts'
import { requestedRun, startedRun } from './waitingRun.ts'

const rule = suite('the checkpoints of before the grace')

/** Notes checkpoints, each at a time, and returns what is known to be passed at the end. */
const noted = (looks: readonly (readonly [checkpoint: string, atMs: number])[]): string | null => {
  const passed = new PassedCheckpoints(60)
  return looks.map(([checkpoint, atMs]) => passed.note(checkpoint, atMs)).at(-1) ?? null
}

rule('nothing is passed before the grace is over', () =>
  assert.is(
    noted([
      ['5', 0],
      ['6', 59],
    ]),
    null,
  ),
)

rule('the newest of those that are old enough is passed', () =>
  assert.is(
    noted([
      ['5', 0],
      ['6', 30],
      ['7', 31],
      ['8', 90],
    ]),
    '6',
  ),
)

rule('a checkpoint that does not move is as old as its first look', () =>
  assert.is(
    noted([
      ['5', 0],
      ['5', 30],
      ['5', 60],
    ]),
    '5',
  ),
)

rule('a checkpoint that moved back is that of other documents', () => {
  const restored = [
    ['5', 0],
    ['8', 1],
    ['6', 70],
  ] as const
  assert.is(noted(restored), null)
  assert.is(noted([...restored, ['9', 129]]), null)
  assert.is(noted([...restored, ['9', 130]]), '6')
})

rule.run()

const projector = projecting('a projector that forgets removals')

const forgetting = { lookMs: 5, graceMs: 0 }
const deleted = (project_id: string): DomainEvent => ({ type: 'ProjectDeleted', project_id, build_ids: [] })

const idsIn = async (readModels: ReadModels, spec: Projection): Promise<string[]> => {
  const writer = await readModels.writer(spec)
  return (await Array.fromAsync(writer.entries())).map(([id]) => id).sort()
}

projector('a run that waited leaves nothing behind', async ({ store, readModels, run }) => {
  const spec: Projection = waitingRuns
  const projector = new Projector(spec, { readModels, store, forgetting })
  void run(projector)
  await store.append('s', newEvents([requestedRun('r-1'), requestedRun('r-2')]), 'none')
  await projector.reach(await store.head())
  await store.append('s', newEvents([startedRun('r-1')]), 1)
  await projector.reach(await store.head())
  await until(async () => (await idsIn(readModels, spec)).join() === 'r-2')
})

projector('what is removed is forgotten, also after a restart, and documents stay right', async (context) => {
  const { store, stopping } = context
  const dir = tempDir()
  const project = async (work: (projector: Projector, readModels: ReadModels) => Promise<void>) => {
    const readModels = openReadModels({ dir })
    const stop = new AbortController()
    const projector = new Projector(any, { readModels, store, forgetting })
    const running = projector.run(AbortSignal.any([stop.signal, stopping.signal]))
    await work(projector, readModels)
    stop.abort()
    await running
    await readModels.close()
  }
  await project(async (projector) => {
    for (const id of ['p-0', 'p-1', 'p-2']) await store.append(id, newEvents(life(id, 2)), 'none')
    await projector.reach(await store.head())
    await store.append('p-1', newEvents([deleted('p-1')]), 2)
    await projector.reach(await store.head())
  })
  await project(async (projector, readModels) => {
    await until(async () => (await idsIn(readModels, any)).join() === 'p-0,p-2')
    const again: DomainEvent = { type: 'ProjectRenamed', project_id: 'p-1', name: 'late' }
    await store.append('p-1', newEvents([again]), 3)
    await store.append('p-0', newEvents([{ ...again, project_id: 'p-0' }]), 2)
    await projector.reach(await store.head())
    const docs = (await dump(readModels)).map(({ name, renamed }) => [name, renamed])
    assert.equal(docs, [
      ['late', 3],
      ['n1', 2],
    ])
    await until(async () => (await idsIn(readModels, any)).join() === 'p-0,p-2')
  })
})

projector('a removal stays during the grace', async ({ store, readModels, run }) => {
  const projector = new Projector(any, { readModels, store, forgetting: { lookMs: 1 } })
  void run(projector)
  for (const id of ['p-0', 'p-1']) {
    await store.append(id, newEvents(life(id, 0)), 'none')
    await projector.reach(await store.head())
    await store.append(id, newEvents([deleted(id)]), 0)
    await projector.reach(await store.head())
  }
  assert.equal(await idsIn(readModels, any), ['p-0', 'p-1'])
})

projector('an outage while it forgets is followed by another attempt', async ({ store, readModels, run }) => {
  let failures = 0
  const failing = withWriter(readModels, (collection) => ({
    forgetRemovals: async (upTo) => {
      if (failures++ < 2) throw new AppError('unavailable', 'down')
      return collection.forgetRemovals(upTo)
    },
  }))
  const projector = new Projector(any, { readModels: failing, store, forgetting })
  void run(projector)
  await store.append('p-0', newEvents([...life('p-0', 0)]), 'none')
  await projector.reach(await store.head())
  await store.append('p-0', newEvents([deleted('p-0')]), 0)
  await until(async () => failures > 2 && (await idsIn(readModels, any)).length === 0)
})

projector('a server forgets only removals that may come back', async ({ store, readModels, run }) => {
  const onServer = (spec: Projection) => {
    const seen = { forgotten: 0, refusesLate: new Set<boolean>() }
    const server = withWriter(readModels, (collection) => ({
      isRemote: true,
      write: async (writes, checkpoint, options) => {
        seen.refusesLate.add(options?.refuseLate !== undefined)
        await collection.write(writes, checkpoint, options)
      },
      forgetRemovals: async () => {
        seen.forgotten++
        return 0
      },
    }))
    const projector = new Projector(spec, { readModels: server, store, forgetting })
    void run(projector)
    return { projector, seen }
  }
  const keeping = onServer(any)
  const forgets = onServer(waitingRuns)
  await store.append('p-0', newEvents([...life('p-0', 0), deleted('p-0')]), 'none')
  await store.append('s', newEvents([requestedRun('r-1')]), 'none')
  for (const { projector } of [keeping, forgets]) await projector.reach(await store.head())
  await until(() => forgets.seen.forgotten > 0)
  assert.equal(keeping.seen, { forgotten: 0, refusesLate: new Set([false]) })
  assert.equal(forgets.seen.refusesLate, new Set([true]))
})

projector.run()
