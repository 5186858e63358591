import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import os, { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import workerThreads, { Worker } from 'node:worker_threads'
import * as assert from 'uvu/assert'
import { openEventStore } from '../../../src/adapters/embedded/eventStore/index.ts'
import { openReadModels } from '../../../src/adapters/embedded/readModels/index.ts'
import { newId } from '../../../src/ids.ts'
import { type Logger, silent } from '../../../src/logger.ts'
import type { EventStore } from '../../../src/ports/eventStore.ts'
import type { ReadModels } from '../../../src/ports/readModels.ts'
import { openSideFile } from '../../../src/process/engines.ts'
import { openFill } from '../../../src/process/filling/fill.ts'
import type { Fill } from '../../../src/projections/fill.ts'
import { allNames, allProjections } from '../../../src/projections/index.ts'
import { nameOf } from '../../../src/projections/projection.ts'
import { Projector } from '../../../src/projections/projector.ts'
import { Projectors } from '../../../src/projections/projectors.ts'
import { rebuildRequested } from '../../../src/projections/rebuilding.ts'
import { Rebuilds } from '../../../src/projections/rebuilds.ts'
import { runs } from '../../../src/projections/runs.ts'
import { shadowOf } from '../../../src/projections/shadow.ts'
import { type SkippedFactDoc, skippedFacts } from '../../../src/projections/skippedFacts.ts'
import { suite } from '../../support/suite.ts'
import { tempDir } from '../../support/tempDir.ts'
import { until } from '../../support/until.ts'
import { life, newEvents } from '../../projections/projectedNames.ts'
import { runFacts } from '../../projections/runFacts.ts'

interface Context {
  dir: string
  store: EventStore
}

const filling = suite<Context>('read models that threads fill', { timeoutMs: 120_000 })
filling.before.each((context) => {
  const dir = tempDir()
  Object.assign(context, { dir, store: openEventStore({ dir }) })
})
filling.after.each(({ store }) => store.close())

/** Runs and projects, retention in the middle, and a fact that no fold understands. */
const appendFacts = async (store: EventStore, count: number): Promise<void> => {
  for (let n = 0; n < count; n++) {
    const start = new Date(Date.parse('2026-05-01T10:00:00.000Z') + n * 60_000).toISOString()
    const run = runFacts({ run_id: newId(), start })
    const { started } = run
    await store.append(newId(), [started, n % 3 === 0 ? run.failed(9) : run.succeeded(5)], 'none')
    if (n % 10 === 0) await store.append(newId(), newEvents(life(newId(), n % 4)), 'none')
    if (n !== Math.floor(count / 2)) continue
    const expired = newEvents([{ type: 'CallsExpired', env_id: 'env', before: start }])
    const broken = { ...started, id: newId(), metadata: { correlation_id: 'c' } }
    await store.append(newId(), [...expired, broken], 'none')
  }
}

interface Running {
  readonly projectors: Projectors
  readonly rebuildAll: () => Promise<void>
  stop(): Promise<void>
}

/** Runs the projectors until they have caught up. */
const started = async (store: EventStore, readModels: ReadModels, fill?: Fill): Promise<Running> => {
  const stopping = new AbortController()
  const { signal } = stopping
  const options = { readModels, store, logger: silent, ...(fill && { fill }) }
  const projectors = new Projectors(options)
  const running = projectors.run(signal)
  const head = await store.head()
  await Promise.all(allNames.map((name) => projectors.reach(name, head)))
  const rebuilding = rebuildRequested({ ...options, projectors, onSkipped: () => {}, lookMs: 5 }, signal)
  rebuilding.catch(() => {}) // the engines close at the end
  return {
    projectors,
    async rebuildAll() {
      const rebuilds = await Rebuilds.open(readModels)
      for (const name of allNames) await rebuilds.request(name, { verify: true })
      const ended = await until(
        async () => {
          const all = await rebuilds.all()
          return all.length === allNames.length && all.every(({ ended_at }) => ended_at) ? all : undefined
        },
        { timeoutMs: 60_000 },
      )
      for (const { name, state, differences } of ended)
        assert.equal([name, state, differences], [name, 'done', 0])
    },
    async stop() {
      stopping.abort()
      await Promise.allSettled([running, rebuilding])
    },
  }
}

/** Every last write of every read model, the checkpoints, and the facts that they lack. */
const contentOf = async (readModels: ReadModels): Promise<unknown> => {
  const all = await Promise.all(
    allProjections.map(async (projection) => {
      const writer = await readModels.writer(projection)
      const entries = await Array.fromAsync(writer.entries())
      const byId = entries.toSorted(([a], [b]) => (a < b ? -1 : 1))
      const find = { equal: { env_id: 'env' }, sort: 'order', limit: 5, offset: 0 }
      const page = projection === runs ? await writer.find(find) : null
      return [nameOf(projection), byId, page, await writer.count()]
    }),
  )
  const lacking = await Array.fromAsync(readModels.reader<SkippedFactDoc>(skippedFacts).scan())
  return [...all, lacking.map(({ read_model, id }) => `${read_model} ${id}`).toSorted()]
}

/** What the process folds without threads. */
const expectedOf = async (store: EventStore): Promise<unknown> => {
  const readModels = openReadModels({ dir: tempDir() })
  const running = await started(store, readModels)
  await running.stop()
  const content = await contentOf(readModels)
  await readModels.close()
  return content
}

const sidesIn = (dir: string): string[] => readdirSync(join(dir, 'read-models'))

filling(
  'are those that the process folds, also after later facts, a start and a rebuild',
  async (context) => {
    const { dir, store } = context
    await appendFacts(store, 60)
    let readModels = openReadModels({ dir })
    const fill = () => openFill({ dataDir: dir, store, readModels, logger: silent, leastFacts: 1 })
    let running = await started(store, readModels, fill())
    assert.is(sidesIn(dir).length, allProjections.length)
    assert.equal(await contentOf(readModels), await expectedOf(store))
    await appendFacts(store, 5)
    const head = await store.head()
    await Promise.all(allNames.map((name) => running.projectors.reach(name, head)))
    const expected = await expectedOf(store)
    assert.equal(await contentOf(readModels), expected)
    await running.stop()
    await readModels.close()

    readModels = openReadModels({ dir })
    assert.is((await readModels.source()).checkpoint, head)
    const before = sidesIn(dir)
    running = await started(store, readModels, fill())
    assert.equal(await contentOf(readModels), expected)
    await running.rebuildAll()
    assert.equal(await contentOf(readModels), expected)
    await until(() => sidesIn(dir).length === allProjections.length)
    assert.not.ok(sidesIn(dir).some((name) => before.includes(name)))
    await running.stop()
    await readModels.close()
  },
)

/** A fill of one read model that is interrupted, and the files that it leaves. */
const interrupted = async (dir: string, store: EventStore): Promise<void> => {
  const readModels = openReadModels({ dir })
  const shadow = shadowOf(runs)
  const stopped = AbortSignal.abort() // a thread that is stopped later may be complete by then
  const fill = openFill({ dataDir: dir, store, readModels, logger: silent, leastFacts: 1 })
  await fill(shadow, { signal: stopped, onPosition: () => {} })
  const folder = readModels.apart?.begin(shadow)
  assert.ok(folder) // it is not complete
  await foldedIn(folder, store)
  assert.is(readModels.apart?.begin(shadow), folder)
  await readModels.close()
}

/** Folds the log into the file of a thread, which does not complete it. */
const foldedIn = async (folder: string, store: EventStore): Promise<void> => {
  const { readModels } = await openSideFile(folder, { leaves: null })
  const projector = new Projector(shadowOf(runs), { readModels, store })
  const stop = new AbortController()
  const running = projector.run(stop.signal)
  await projector.reach(await store.head())
  stop.abort()
  await running
  await readModels.close()
}

for (const [what, change] of Object.entries({
  'and the process ends': () => {},
  'and the machine ends': (folder: string) => writeFileSync(join(folder, 'boot'), 'another start'),
  'and their file is damaged': (folder: string) =>
    writeFileSync(join(folder, 'read-models.db'), 'no database'),
  'and their folder is lost': (folder: string) => rmSync(folder, { recursive: true }),
}))
  filling(`are complete after a fill was interrupted, ${what}`, async ({ dir, store }) => {
    await appendFacts(store, 60)
    await interrupted(dir, store)
    const [side = ''] = sidesIn(dir)
    change(join(dir, 'read-models', side))
    const readModels = openReadModels({ dir })
    const fill = openFill({ dataDir: dir, store, readModels, logger: silent, leastFacts: 1 })
    const running = await started(store, readModels, fill)
    await running.rebuildAll()
    assert.equal(await contentOf(readModels), await expectedOf(store))
    await running.stop()
    await readModels.close()
  })

filling('are built again if a filled file is lost or damaged', async ({ dir, store }) => {
  await appendFacts(store, 10)
  for (const damage of [
    (folder: string) => rmSync(folder, { recursive: true }),
    (folder: string) => writeFileSync(join(folder, 'read-models.db'), 'no database'),
  ]) {
    const filled = openReadModels({ dir })
    const fill = openFill({ dataDir: dir, store, readModels: filled, logger: silent, leastFacts: 1 })
    await (await started(store, filled, fill)).stop()
    await filled.close()
    damage(join(dir, 'read-models', sidesIn(dir)[0] ?? ''))
    const discarded: unknown[] = []
    const readModels = openReadModels({ dir, onDiscarded: (what) => discarded.push(what) })
    assert.is(discarded.length, 1)
    assert.equal(sidesIn(dir), [])
    await (await started(store, readModels)).stop()
    assert.equal(await contentOf(readModels), await expectedOf(store))
    await readModels.close()
    rmSync(join(dir, 'read-models.db'))
  }
})

filling('are folded in the process if the thread fails', async ({ dir, store }) => {
  await appendFacts(store, 10)
  const readModels = openReadModels({ dir })
  const warnings: string[] = []
  const logger = { ...silent, warn: (message: string) => void warnings.push(message) }
  const fill = openFill({ dataDir: join(dir, 'elsewhere'), store, readModels, logger, leastFacts: 1 })
  const running = await started(store, readModels, fill)
  assert.is(warnings.length, allProjections.length)
  assert.ok((await readModels.reader(runs).count()) > 0)
  assert.equal(await contentOf(readModels), await expectedOf(store))
  assert.equal(sidesIn(dir), [])
  await running.stop()
  await readModels.close()
})

const withThreads = async (of: typeof Worker, work: () => Promise<void>): Promise<void> => {
  const own = Worker
  workerThreads.Worker = of
  syncBuiltinESMExports()
  try {
    await work()
  } finally {
    workerThreads.Worker = own
    syncBuiltinESMExports()
  }
}

/** Where the system refuses a further thread, the constructor of Node throws. */
const withoutThreads = (work: () => Promise<void>): Promise<void> => {
  const refused = new Error('ERR_WORKER_INIT_FAILED')
  const Refused = class {
    constructor() {
      throw refused
    }
  }
  return withThreads(Refused as unknown as typeof Worker, work)
}

/** The threads of the work. */
interface Threads {
  alive: number
  mostAlive: number
  /** The names of the read models of each. */
  readonly members: string[][]
}

const withCounted = async (work: (threads: Threads) => Promise<void>): Promise<void> => {
  const threads: Threads = { alive: 0, mostAlive: 0, members: [] }
  const Counted = class extends Worker {
    constructor(file: URL, options: { workerData: { members: readonly { name: string }[] } }) {
      super(file, options)
      threads.members.push(options.workerData.members.map(({ name }) => name))
      threads.mostAlive = Math.max(threads.mostAlive, ++threads.alive)
      this.once('exit', () => void threads.alive--)
    }
  }
  await withThreads(Counted, () => work(threads))
}

/** A machine with this many processors. */
const withProcessors = async (count: number, work: () => Promise<void>): Promise<void> => {
  const own = availableParallelism
  os.availableParallelism = () => count
  syncBuiltinESMExports()
  try {
    await work()
  } finally {
    os.availableParallelism = own
    syncBuiltinESMExports()
  }
}

const quiet = () => ({ signal: new AbortController().signal, onPosition: () => {} })

filling('wait for one of two threads if they begin one after the other', async ({ dir, store }) => {
  await appendFacts(store, 60)
  const readModels = openReadModels({ dir })
  const fill = openFill({ dataDir: dir, store, readModels, logger: silent, leastFacts: 1 })
  const shadows = allProjections.slice(0, 6).map(shadowOf)
  await withCounted(async (threads) => {
    const ended: Promise<void>[] = []
    for (const shadow of shadows) {
      ended.push(fill(shadow, quiet()))
      await nextTurn()
    }
    await Promise.all(ended)
    assert.ok(threads.mostAlive <= 2, `${threads.mostAlive} threads`)
    assert.equal(threads.members.flat().toSorted(), shadows.map(({ name }) => name).toSorted())
  })
  for (const shadow of shadows) assert.is(readModels.apart?.begin(shadow), null, shadow.name) // it is complete
  await readModels.close()
})

filling('need no thread if they are given up before one is free', async ({ dir, store }) => {
  await appendFacts(store, 60)
  const readModels = openReadModels({ dir })
  const fill = openFill({ dataDir: dir, store, readModels, logger: silent, leastFacts: 1 })
  const [first, second] = allProjections.map(shadowOf)
  if (!first || !second) throw new Error('Expected two read models')
  await withProcessors(1, () =>
    withCounted(async (threads) => {
      const filled = fill(first, quiet())
      await nextTurn()
      const stop = new AbortController()
      const given = fill(second, { ...quiet(), signal: stop.signal })
      await nextTurn()
      stop.abort()
      await given
      assert.is(threads.alive, 1)
      await filled
      assert.equal(threads.members, [[first.name]])
    }),
  )
  await readModels.close()
})

filling('can be given up before the others of their thread', async ({ dir, store }) => {
  await appendFacts(store, 3000)
  const readModels = openReadModels({ dir })
  const fill = openFill({ dataDir: dir, store, readModels, logger: silent, leastFacts: 1 })
  const [first = shadowOf(runs), ...others] = allProjections.map(shadowOf)
  await withProcessors(1, () =>
    withCounted(async (threads) => {
      const stop = new AbortController()
      const given = fill(first, { ...quiet(), signal: stop.signal })
      const filled = others.map((shadow) => fill(shadow, quiet()))
      await nextTurn()
      stop.abort()
      await given
      assert.is(threads.alive, 1)
      await readModels.drop(first, () => Promise.resolve(true))
      await Promise.all(filled)
      assert.is(threads.members.length, 1)
    }),
  )
  for (const shadow of others) assert.is(readModels.apart?.begin(shadow), null, shadow.name) // it is complete
  await readModels.close()
})

filling('are folded in the process if the system refuses a thread', async ({ dir, store }) => {
  await appendFacts(store, 10)
  const readModels = openReadModels({ dir })
  const errors: unknown[] = []
  const warn: Logger['warn'] = (_, data) => void errors.push(data?.['error'])
  const fill = openFill({ dataDir: dir, store, readModels, logger: { ...silent, warn }, leastFacts: 1 })
  await withoutThreads(async () => {
    const running = await started(store, readModels, fill)
    assert.equal(
      errors,
      allProjections.map(() => 'ERR_WORKER_INIT_FAILED'),
    )
    assert.equal(await contentOf(readModels), await expectedOf(store))
    assert.equal(sidesIn(dir), [])
    await running.stop()
  })
  await readModels.close()
})

filling('wait for room on the disk, and continue where the thread has ended', async ({ dir, store }) => {
  await appendFacts(store, 60)
  const readModels = openReadModels({ dir })
  const deps = { dataDir: dir, store, readModels, logger: silent, leastFacts: 1 }
  const shadow = shadowOf(runs)
  const options = { signal: new AbortController().signal, onPosition: () => {} }
  let stops = 0
  const onNoRoom = () => void stops++
  await openFill({ ...deps, reservedBytes: Number.MAX_SAFE_INTEGER })(shadow, { ...options, onNoRoom })
  assert.is(stops, 1)
  const sides = sidesIn(dir)
  assert.is(sides.length, 1)
  assert.ok(readModels.apart?.begin(shadow)) // it is not complete
  await openFill({ ...deps, reservedBytes: 0 })(shadow, { ...options, onNoRoom })
  assert.is(stops, 1)
  assert.equal(sidesIn(dir), sides)
  assert.is((await readModels.reader(shadow).count()) > 0, true)
  await readModels.close()
})

filling('are folded in the process if the log is short', async ({ dir, store }) => {
  await appendFacts(store, 10)
  const readModels = openReadModels({ dir })
  const fill = openFill({ dataDir: dir, store, readModels, logger: silent })
  const running = await started(store, readModels, fill)
  assert.not.ok(existsSync(join(dir, 'read-models')))
  await running.stop()
  await readModels.close()
})

filling.run()
