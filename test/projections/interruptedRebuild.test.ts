import * as assert from 'uvu/assert'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import { AppError, isAppError } from '../../src/errors.ts'
import { silent } from '../../src/logger.ts'
import type { Doc, ReadModels } from '../../src/ports/readModels.ts'
import { nameOf, type Projection } from '../../src/projections/projection.ts'
import { rebuildRequested } from '../../src/projections/rebuilding.ts'
import { type RebuildDoc, Rebuilds } from '../../src/projections/rebuilds.ts'
import { forgetSkipped, SkippedFacts } from '../../src/projections/skippedFacts.ts'
import { engineUrl } from '../support/engines.ts'
import { type Context, opened } from '../support/mongoReadModels.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import {
  any,
  dump,
  type Engines,
  failingAfterExchange,
  life,
  newEvents,
  projecting,
  withWriter,
} from './projectedNames.ts'
import {
  damage,
  ended,
  forwardingProjectors,
  hasShadow,
  held,
  LOOK_MS,
  NAME,
  request,
  shadow,
  started,
} from './rebuildHarness.ts'

const rebuild = projecting('a rebuild that is interrupted or skips facts')

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

/** Works on the requested rebuilds with other read models or projectors, until the test stops it. */
const rebuildOn = (
  { store, stopping }: Pick<Engines, 'store' | 'stopping'>,
  given: Pick<Parameters<typeof rebuildRequested>[0], 'readModels' | 'projectors'>,
): Promise<void> =>
  rebuildRequested({ ...given, store, logger: silent, onSkipped: () => {}, lookMs: LOOK_MS }, stopping.signal)

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
  'begins again if the process has ended when it had dropped what a replacement left',
  async (context) => {
    const { store, readModels } = context
    await store.append('p', newEvents(life('p', 1)), 'none')
    const { projectors } = await started(context)
    await damage(readModels, 'p')
    await leave(context, { state: 'replacing' })
    let drops = 0
    const ending: ReadModels = {
      ...withWriter(readModels, () => ({})),
      async drop(...dropped) {
        await readModels.drop(...dropped)
        if (++drops === 1) throw new AppError('unavailable', 'the process has ended')
      },
    }
    void rebuildOn(context, { readModels: ending, projectors }).catch(() => {})
    assert.is((await ended(readModels)).state, 'done')
    assert.is(drops, 1)
    assert.equal(
      (await dump(readModels)).map(({ name }) => name),
      ['n0'],
    )
  },
)

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

rebuild(
  'ends with its loop, so that a second one never replaces the documents by nothing',
  async (context) => {
    const { store, readModels } = context
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
    await request(readModels)
    const ending = rebuildOn(context, {
      readModels: failing,
      projectors: forwardingProjectors(projectors, reads),
    }).catch((error: unknown) => error)
    await until(() => reads.waiting.size === 1)
    isDown = true
    assert.ok(isAppError(await ending, 'unavailable'))
    assert.is(reads.waiting.size, 0)
    isDown = false
    reads.release()
    void rebuildOn(context, { readModels: failing, projectors }).catch(() => {})
    assert.is((await ended(readModels)).state, 'done')
    assert.is((await dump(readModels)).length, 1)
  },
)

rebuild('continues when its progress cannot be stored', async (context) => {
  const { store, readModels } = context
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
  void rebuildOn(context, {
    readModels: failing,
    projectors: forwardingProjectors(projectors, reads),
  }).catch(() => {})
  await until(() => writes >= 5)
  reads.release()
  assert.is((await ended(readModels)).state, 'done')
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
    const { store, readModels } = context
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
    void rebuildOn(context, { readModels: failing, projectors }).catch(() => {})
    assert.is((await ended(readModels)).state, 'done')
    await projectors.reach(NAME, await store.head())
    assert.is(await skipped.count(), lacks === 'former' ? 1 : 2)
    assert.is(await (await SkippedFacts.open(readModels, nameOf(shadow))).count(), 0)
  })

rebuild.run()

const server = engineUrl('mongodb')
if (server) {
  const nodes = suite<Engines & Context>('a rebuild on a node that was stopped')
  nodes.before.each(async (context) => {
    const store = openEventStore({ dir: tempDir() })
    Object.assign(context, { store, stopping: new AbortController(), ...(await opened(server)) })
  })
  nodes.after.each(async ({ store, stopping, close }) => {
    stopping.abort()
    await close()
    await store.close()
  })

  nodes('never replaces documents that another node has brought further', async (context) => {
    const { store, readModels, openAnother } = context
    await store.append('p', newEvents(life('p', 1)), 'none')
    const resumed = Promise.withResolvers<void>()
    let isStopped = false
    const stopped = withWriter(readModels, ({ write }) => ({
      async write(all, ...rest) {
        if (all[0]?.doc?.['state'] === 'replacing' && !isStopped) {
          isStopped = true
          await resumed.promise
        }
        return write(all, ...rest)
      },
    }))
    const first = await started({ ...context, readModels: stopped })
    await request(readModels)
    first.rebuilding()
    await until(() => isStopped)

    const other = await openAnother()
    const { projectors } = await started({ ...context, readModels: other })
    await store.append('q', newEvents(life('q', 2)), 'none')
    await projectors.reach(NAME, await store.head())
    const complete = await dump(other)
    assert.is(complete.length, 2)
    await until(async () => (await other.reader(any).checkpoint()) === (await store.head()))
    resumed.resolve()
    await ended(other)
    assert.equal(await dump(other), complete)
    assert.is(await other.reader(any).count(), 2)
  })

  nodes.run()
}
