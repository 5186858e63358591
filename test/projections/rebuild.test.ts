import * as assert from 'uvu/assert'
import { silent } from '../../src/logger.ts'
import type { ReadModels } from '../../src/ports/readModels.ts'
import { nameOf, type Projection } from '../../src/projections/projection.ts'
import { Projectors } from '../../src/projections/projectors.ts'
import { rebuildRequested } from '../../src/projections/rebuilding.ts'
import { type RebuildDoc, Rebuilds, rebuilds } from '../../src/projections/rebuilds.ts'
import { SkippedFacts } from '../../src/projections/skippedFacts.ts'
import { until } from '../support/until.ts'
import { any, dump, life, newEvents, projecting } from './projectedNames.ts'

const rebuild = projecting('the rebuild of a read model')

const NAME = nameOf(any)
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
  assert.not.ok((await readModels.versions()).some(({ name }) => name.includes('~')))
})

rebuild('continues after the process has ended', async (context) => {
  const { store, readModels } = context
  await store.append('p', newEvents(life('p', 1)), 'none')
  const { rebuilding } = await started(context)
  await damage(readModels, 'p')
  const shadow = await readModels.writer({ ...any, name: `${any.name}~new` })
  const doc = { name: 'kept', renamed: 7, order: 'z' }
  const head = await store.head()
  await shadow.write([{ id: 'p', doc, cursor: head }], head) // as an earlier process has left it
  await request(readModels)
  rebuilding()
  await ended(readModels)
  assert.equal(await dump(readModels), [doc])
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
  await until(async () => !(await readModels.versions()).some(({ name }) => name.includes('~')))
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
  assert.is(await (await SkippedFacts.open(readModels, `${any.name}~new@1`)).count(), 0)
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

rebuild.run()
