import { once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import { START } from '../../src/events/event.ts'
import { AppError, isAppError } from '../../src/errors.ts'
import { silent } from '../../src/logger.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import type { Doc, ReadModels } from '../../src/ports/readModels.ts'
import { nameOf, type Projection } from '../../src/projections/projection.ts'
import { Projectors } from '../../src/projections/projectors.ts'
import { RESERVED_BYTES } from '../../src/projections/rebuildRoom.ts'
import { rebuildRequested } from '../../src/projections/rebuilding.ts'
import { type RebuildDoc, Rebuilds, rebuilds } from '../../src/projections/rebuilds.ts'
import { shadowOf } from '../../src/projections/shadow.ts'
import { forgetSkipped, SkippedFacts } from '../../src/projections/skippedFacts.ts'
import { until } from '../support/until.ts'
import {
  any,
  dump,
  failingAfterExchange,
  forward,
  life,
  newEvents,
  projecting,
  withWriter,
} from './projectedNames.ts'

const rebuild = projecting('the rebuild of a read model')

const NAME = nameOf(any)
const shadow = shadowOf(any)
const LOOK_MS = 5

type Engines = Pick<Parameters<Parameters<typeof rebuild>[1]>[0], 'store' | 'readModels' | 'stopping'>

/** Projectors that have caught up, and what rebuilds for them. */
const started = async (
  { store, readModels, stopping }: Engines,
  projections: readonly Projection[] = [any],
) => {
  const projectors = new Projectors({ store, readModels, logger: silent, projections })
  void projectors.run(stopping.signal)
  await Promise.all(projections.map(async (each) => projectors.reach(nameOf(each), await store.head())))
  const deps = { readModels, store, projectors, logger: silent, onSkipped: () => {}, lookMs: LOOK_MS }
  return { projectors, rebuilding: () => void rebuildRequested(deps, stopping.signal).catch(() => {}) } // the engines close at the end
}

/** The projectors with other reads of the log for rebuilds. */
const forwardingProjectors = (projectors: Projectors, reads: Pick<EventStore, 'subscribe'>) => ({
  reads: { subscribe: reads.subscribe.bind(reads), expect: () => () => {} },
  pausing: projectors.pausing.bind(projectors),
  projectionOf: projectors.projectionOf.bind(projectors),
  reach: projectors.reach.bind(projectors),
})

const hasShadow = async (readModels: ReadModels): Promise<boolean> =>
  (await readModels.versions()).some(({ name }) => name === shadow.name)

const docOf = async (readModels: ReadModels): Promise<RebuildDoc | null> =>
  readModels.reader<RebuildDoc>(rebuilds).get(NAME)

const ended = (readModels: ReadModels): Promise<RebuildDoc> =>
  until(async () => {
    const doc = await docOf(readModels)
    return doc?.ended_at ? doc : undefined
  })

const request = async (readModels: ReadModels, verify = false): Promise<void> =>
  (await Rebuilds.open(readModels)).request(NAME, { verify })

/** Changes a document as a defect of an earlier build did. */
const damage = async (readModels: ReadModels, id: string): Promise<void> => {
  const writer = await readModels.writer(any)
  const [stored] = (await writer.stored([id])).values()
  const doc = { ...stored?.doc, name: 'damaged' }
  await writer.write([{ id, doc, cursor: `${stored?.cursor ?? ''}x` }], '')
}

rebuild('replaces documents that differ from the log', async (context) => {
  const { store, readModels } = context
  await store.append('p', newEvents(life('p', 3)), 'none')
  const { rebuilding } = await started(context)
  await damage(readModels, 'p')
  await request(readModels)
  rebuilding()
  const { state, differences } = await ended(readModels)
  assert.equal({ state, differences }, { state: 'done', differences: null })
  assert.equal(
    (await dump(readModels)).map(({ name, renamed }) => [name, renamed]),
    [['n2', 3]],
  )
})

rebuild('reports the documents that differ', async (context) => {
  const { store, readModels } = context
  await store.append('p', newEvents(life('p', 1)), 'none')
  await store.append('q', newEvents(life('q', 1)), 'none')
  const { rebuilding } = await started(context)
  await damage(readModels, 'q')
  await request(readModels, true)
  rebuilding()
  const { differences, first_differences } = await ended(readModels)
  assert.is(differences, 1)
  assert.equal(
    first_differences.map(({ id, before, after }) => [id, before?.['name'], after?.['name']]),
    [['q', 'damaged', 'n0']],
  )
})

rebuild('finds no difference in documents that follow the log', async (context) => {
  const { store, readModels } = context
  for (let n = 0; n < 20; n++) await store.append(`p${n}`, newEvents(life(`p${n}`, 2)), 'none')
  const { rebuilding } = await started(context)
  await request(readModels, true)
  rebuilding()
  assert.is((await ended(readModels)).differences, 0)
  assert.is((await dump(readModels)).length, 20)
})

rebuild('loses no event that arrives meanwhile, and readers see each position', async (context) => {
  const { store, readModels, stopping } = context
  const { projectors, rebuilding } = await started(context)
  rebuilding()
  let written = 0
  for (let round = 0; round < 5; round++) {
    await request(readModels, true)
    do {
      const { cursor } = await store.append(`p${written}`, newEvents(life(`p${written}`, 1)), 'none')
      written++
      await projectors.reach(NAME, cursor, stopping.signal)
      assert.is((await dump(readModels)).length, written)
      assert.ok(projectors.position(NAME) >= cursor)
    } while (!(await docOf(readModels))?.ended_at)
    assert.is((await docOf(readModels))?.differences, 0)
  }
  assert.not.ok(await hasShadow(readModels))
})

/** What a rebuild of an earlier process has left: documents that differ from the log, and the state of the rebuild. */
const leave = async ({ readModels, store }: Engines, change: Partial<RebuildDoc>): Promise<Doc> => {
  const left = await readModels.writer(shadow)
  const doc = { name: 'kept', renamed: 7, order: 'z' }
  const head = await store.head()
  await left.write([{ id: 'p', doc, cursor: head }], head)
  await request(readModels)
  await (await Rebuilds.open(readModels)).change(NAME, change)
  return doc
}

rebuild('continues after the process has ended', async (context) => {
  const { store, readModels } = context
  await store.append('p', newEvents(life('p', 1)), 'none')
  const { rebuilding } = await started(context)
  await damage(readModels, 'p')
  const doc = await leave(context, { state: 'building' })
  rebuilding()
  await ended(readModels)
  assert.equal(await dump(readModels), [doc])
})

for (const state of ['waiting', 'replacing'] as const)
  rebuild(`begins again if the process has ended while it was ${state}`, async (context) => {
    const { store, readModels } = context
    await store.append('p', newEvents(life('p', 1)), 'none')
    const { rebuilding } = await started(context)
    await damage(readModels, 'p')
    const found = state === 'waiting' ? null : 3
    await leave(context, { state, verify: found !== null, differences: found })
    rebuilding()
    const doc = await ended(readModels)
    assert.equal([doc.state, doc.differences], ['done', found])
    assert.equal(
      (await dump(readModels)).map(({ name }) => name),
      ['n0'],
    )
  })

rebuild(
  'is done if the process has ended after the replacement, with the differences found',
  async (context) => {
    const { store, readModels } = context
    await store.append('p', newEvents(life('p', 1)), 'none')
    const { rebuilding } = await started(context)
    await damage(readModels, 'p')
    await request(readModels, true)
    await (await Rebuilds.open(readModels)).change(NAME, { state: 'replacing', differences: 3 })
    rebuilding()
    const { state, differences } = await ended(readModels)
    assert.equal({ state, differences }, { state: 'done', differences: 3 })
    assert.equal(
      (await dump(readModels)).map(({ name }) => name),
      ['damaged'],
    )
    assert.not.ok(await hasShadow(readModels))
  },
)

/** Reads of the log that wait until they are released, or until they end. */
const held = (reads: Pick<EventStore, 'subscribe'>) => {
  const released = Promise.withResolvers<void>()
  const waiting = new Set<AbortSignal>()
  return {
    waiting,
    release: () => released.resolve(),
    async *subscribe(options: Parameters<EventStore['subscribe']>[0]) {
      waiting.add(options.signal)
      await Promise.race([released.promise, once(options.signal, 'abort')])
      waiting.delete(options.signal)
      if (!options.signal.aborted) yield* reads.subscribe(options)
    },
  }
}

rebuild(
  'ends with its loop, so that a second one never replaces the documents by nothing',
  async (context) => {
    const { store, readModels, stopping } = context
    await store.append('p', newEvents(life('p', 1)), 'none')
    const { projectors } = await started(context)
    const reads = held(projectors.reads)
    let isDown = false
    const failing = withWriter(readModels, ({ scan }) => ({
      scan() {
        if (isDown) throw new AppError('unavailable', 'down')
        return scan()
      },
    }))
    const deps = {
      readModels: failing,
      store,
      projectors: forwardingProjectors(projectors, reads),
      logger: silent,
      onSkipped: () => {},
      lookMs: LOOK_MS,
    }
    await request(readModels)
    const ending = rebuildRequested(deps, stopping.signal).catch((error: unknown) => error)
    await until(() => reads.waiting.size === 1)
    isDown = true
    assert.ok(isAppError(await ending, 'unavailable'))
    assert.is(reads.waiting.size, 0)
    isDown = false
    reads.release()
    void rebuildRequested(deps, stopping.signal).catch(() => {})
    assert.is((await ended(readModels)).state, 'done')
    assert.is((await dump(readModels)).length, 1)
  },
)

rebuild('is verified if a later request asks for it', async (context) => {
  const { store, readModels, stopping } = context
  await store.append('p', newEvents(life('p', 1)), 'none')
  const { projectors } = await started(context)
  await damage(readModels, 'p')
  const reads = held(projectors.reads)
  const deps = { readModels, store, logger: silent, onSkipped: () => {}, lookMs: LOOK_MS }
  await request(readModels)
  void rebuildRequested(
    { ...deps, projectors: forwardingProjectors(projectors, reads) },
    stopping.signal,
  ).catch(() => {})
  await until(() => reads.waiting.size === 1)
  await request(readModels, true)
  reads.release()
  assert.is((await ended(readModels)).differences, 1)
})

rebuild('is verified by another rebuild if that was requested while it ended', async (context) => {
  const { store, readModels, stopping } = context
  await store.append('p', newEvents(life('p', 1)), 'none')
  const { projectors } = await started(context)
  let isRequested = false
  const slow = withWriter(readModels, ({ write }) => ({
    async write(all, ...rest) {
      if ((all[0]?.doc as Partial<RebuildDoc> | undefined)?.state === 'done' && !isRequested) {
        isRequested = true
        await request(readModels, true)
      }
      return write(all, ...rest)
    },
  }))
  const deps = { readModels: slow, store, projectors, logger: silent, onSkipped: () => {}, lookMs: LOOK_MS }
  await request(readModels)
  void rebuildRequested(deps, stopping.signal).catch(() => {})
  const { state, differences } = await ended(readModels)
  assert.equal({ state, differences }, { state: 'done', differences: 0 })
})

rebuild('reads the log once for read models that are requested together', async (context) => {
  const { store, readModels, stopping } = context
  await store.append('p', newEvents(life('p', 1)), 'none')
  const other = { ...any, name: 'others' }
  let reads = 0
  const counting = forward(store, (options) => {
    if ((options.after ?? START) === START) reads++
    return store.subscribe(options)
  })
  const { projectors } = await started({ ...context, store: counting }, [any, other])
  let turns = 0
  const slow = withWriter(readModels, ({ checkpoint }) => ({
    async checkpoint() {
      for (let left = ++turns; left > 0; left--) await nextTurn()
      return checkpoint()
    },
  }))
  const before = reads
  for (const each of [any, other])
    await (await Rebuilds.open(readModels)).request(nameOf(each), { verify: false })
  const deps = { readModels: slow, store, logger: silent, onSkipped: () => {}, lookMs: LOOK_MS }
  void rebuildRequested({ ...deps, projectors }, stopping.signal).catch(() => {})
  await until(async () => {
    const docs = await Array.fromAsync(readModels.reader<RebuildDoc>(rebuilds).scan())
    return docs.length === 2 && docs.every(({ state }) => state === 'done')
  })
  assert.is(reads - before, 1)
})

rebuild('continues when its progress cannot be stored', async (context) => {
  const { store, readModels, stopping } = context
  await store.append('p', newEvents(life('p', 1)), 'none')
  const { projectors } = await started(context)
  const reads = held(projectors.reads)
  let writes = 0
  const failing = withWriter(readModels, ({ write }) => ({
    async write(all, ...rest) {
      const doc = all[0]?.doc as Partial<RebuildDoc> | undefined
      if (doc?.state === 'building' && ++writes > 1 && writes < 5) throw new AppError('unavailable', 'down')
      return write(all, ...rest)
    },
  }))
  await request(readModels)
  const deps = { readModels: failing, store, logger: silent, onSkipped: () => {}, lookMs: LOOK_MS }
  void rebuildRequested(
    { ...deps, projectors: forwardingProjectors(projectors, reads) },
    stopping.signal,
  ).catch(() => {})
  await until(() => writes >= 5)
  reads.release()
  assert.is((await ended(readModels)).state, 'done')
})

rebuild('a failed rebuild leaves the former documents in place', async (context) => {
  const { store, readModels } = context
  let isBroken = false
  const breaking: Projection = {
    ...any,
    decidesAccess: true,
    evolve(doc, recorded, id) {
      if (isBroken) throw new Error('a defect')
      return any.evolve(doc, recorded, id)
    },
  }
  await store.append('p', newEvents(life('p', 1)), 'none')
  const { rebuilding } = await started(context, [breaking])
  isBroken = true
  await request(readModels)
  rebuilding()
  const { state, error } = await ended(readModels)
  assert.is(state, 'failed')
  assert.match(error ?? '', 'a defect')
  assert.is((await dump(readModels)).length, 1)
  await until(async () => !(await hasShadow(readModels)))
})

rebuild('facts that it skips take the place of those that were skipped before', async (context) => {
  const { store, readModels } = context
  const skipping: Projection = {
    ...any,
    evolve(doc, recorded, id) {
      if (recorded.event.type === 'ProjectRenamed') throw new Error('a defect')
      return any.evolve(doc, recorded, id)
    },
  }
  await store.append('p', newEvents(life('p', 1)), 'none')
  const { rebuilding } = await started(context, [skipping])
  const skipped = await SkippedFacts.open(readModels, NAME)
  assert.is(await skipped.count(), 1)
  await request(readModels)
  rebuilding()
  await ended(readModels)
  assert.is(await skipped.count(), 1)
  assert.is(await (await SkippedFacts.open(readModels, nameOf(shadow))).count(), 0)
})

for (const lacks of ['new', 'former'])
  rebuild(`facts that the ${lacks} documents lack are known after an interruption`, async (context) => {
    const { store, readModels, stopping } = context
    let isBroken = lacks === 'former'
    const broken: Projection = {
      ...any,
      evolve(doc, recorded, id) {
        if (isBroken && recorded.event.type === 'ProjectRenamed') throw new Error('a defect')
        return any.evolve(doc, recorded, id)
      },
    }
    await store.append('p', newEvents(life('p', 1)), 'none')
    const { projectors } = await started(context, [broken])
    const skipped = await SkippedFacts.open(readModels, NAME)
    assert.is(await skipped.count(), lacks === 'former' ? 1 : 0)
    isBroken = lacks === 'new'
    const look = async () => {
      await forgetSkipped(readModels)
      isBroken = true
      await store.append('q', newEvents(life('q', 1)), 'none') // its projector records a fact after the exchange
    }
    await request(readModels)
    const failing = failingAfterExchange(readModels, look)
    const deps = {
      readModels: failing,
      store,
      projectors,
      logger: silent,
      onSkipped: () => {},
      lookMs: LOOK_MS,
    }
    void rebuildRequested(deps, stopping.signal).catch(() => {})
    assert.is((await ended(readModels)).state, 'done')
    await projectors.reach(NAME, await store.head())
    assert.is(await skipped.count(), lacks === 'former' ? 1 : 2)
    assert.is(await (await SkippedFacts.open(readModels, nameOf(shadow))).count(), 0)
  })

rebuild('of a read model that this build does not have fails', async (context) => {
  const { readModels } = context
  const { rebuilding } = await started(context)
  await (await Rebuilds.open(readModels)).request('unknown@1', { verify: false })
  rebuilding()
  const doc = await until(async () => {
    const found = await readModels.reader<RebuildDoc>(rebuilds).get('unknown@1')
    return found?.ended_at ? found : undefined
  })
  assert.is(doc.state, 'failed')
})

const MIB = 1 << 20

rebuild('waits while only the reserve of the disk is left, and the log takes writes', async (context) => {
  const { store, readModels } = context
  await store.append('p', newEvents(life('p', 1)), 'none')
  const { projectors, rebuilding } = await started(context)
  let free = RESERVED_BYTES - 1
  Object.assign(readModels, { freeBytes: () => free })
  await request(readModels)
  rebuilding()
  const { state, error } = await until(async () => {
    const doc = await docOf(readModels)
    return doc?.error ? doc : undefined
  })
  assert.is(state, 'building')
  assert.match(
    error ?? '',
    /^The disk has 128 MiB free; the rebuild waits for 128 MiB and leaves 128 MiB to the log/,
  )
  assert.not.ok(await hasShadow(readModels))
  const { cursor } = await store.append('q', newEvents(life('q', 1)), 'none')
  await projectors.reach(NAME, cursor)
  assert.is((await dump(readModels)).length, 2)
  free = RESERVED_BYTES
  const done = await ended(readModels)
  assert.equal([done.state, done.error], ['done', null])
})

rebuild(
  'stops before it uses the reserve of the disk, and continues when there is more room',
  async (context) => {
    const { store, readModels, stopping } = context
    await store.append('p', newEvents(life('p', 1)), 'none')
    const { projectors } = await started(context)
    let free = 200 * MIB
    Object.assign(readModels, { freeBytes: () => free })
    const subscribe: EventStore['subscribe'] = async function* (options) {
      if (free !== 200 * MIB) return yield* store.subscribe(options)
      free = 100 * MIB
      await once(options.signal, 'abort')
    }
    const deps = { readModels, store, logger: silent, onSkipped: () => {}, lookMs: LOOK_MS }
    await request(readModels)
    void rebuildRequested(
      { ...deps, projectors: forwardingProjectors(projectors, { subscribe }) },
      stopping.signal,
    ).catch(() => {})
    await until(async () => /waits for 160 MiB/.test((await docOf(readModels))?.error ?? ''))
    free = 159 * MIB
    await until(async () => /has 159 MiB free/.test((await docOf(readModels))?.error ?? ''))
    free = 160 * MIB
    assert.is((await ended(readModels)).state, 'done')
  },
)

rebuild.run()
