import * as assert from 'uvu/assert'
import { messageOf } from '../../src/errors.ts'
import { silent } from '../../src/logger.ts'
import type { ReadModels } from '../../src/ports/readModels.ts'
import { nameOf, type Projection } from '../../src/projections/projection.ts'
import { Projectors } from '../../src/projections/projectors.ts'
import { rebuildRequested } from '../../src/projections/rebuilding.ts'
import { type RebuildDoc, Rebuilds } from '../../src/projections/rebuilds.ts'
import { serveEarlier } from '../../src/projections/serveEarlier.ts'
import { forgetSkipped, SkippedFacts } from '../../src/projections/skippedFacts.ts'
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

const earlier = projecting('documents of an earlier version')

/** The fold of the next build marks its documents. */
const raised: Projection = {
  ...any,
  version: 2,
  evolve(doc, recorded, id) {
    const next = any.evolve(doc, recorded, id)
    return next && { ...next, folded_by: 2 }
  },
}
const NAME = nameOf(raised)

/** Folds the log with one build until it has caught up, and stops it. */
const folded = async ({ store, readModels }: Engines, projection: Projection): Promise<void> => {
  const stop = new AbortController()
  const projectors = new Projectors({ store, readModels, logger: silent, projections: [projection] })
  const running = projectors.run(stop.signal)
  await projectors.reach(nameOf(projection), await store.head())
  stop.abort()
  await running
}

const namesOf = async (readModels: ReadModels, projection = raised) =>
  (await dump(readModels, projection)).map(({ name, renamed, folded_by = 1 }) => [name, renamed, folded_by])

const rebuildOf = async (readModels: ReadModels, name = NAME): Promise<RebuildDoc | null> =>
  (await Rebuilds.open(readModels)).get(name)

const serve = (
  readModels: ReadModels,
  projection = raised,
  namesRead: () => Promise<ReadonlySet<string>> = () => Promise.resolve(new Set()),
) => serveEarlier({ readModels, logger: silent, namesRead, projections: [projection] })

const versionsOf = async (readModels: ReadModels) =>
  (await readModels.versions()).flatMap(({ name, version }) => (name === any.name ? [version] : []))

earlier('are served and continued until those of the new version are built', async (context) => {
  const { store, readModels, stopping } = context
  await store.append('p', newEvents(life('p', 2)), 'none')
  await folded(context, any)
  await serve(readModels)
  assert.equal(await namesOf(readModels), [['n1', 2, 1]])
  assert.equal(await versionsOf(readModels), [2])
  const projectors = new Projectors({ store, readModels, logger: silent, projections: [raised] })
  void projectors.run(stopping.signal)
  const { cursor } = await store.append('q', newEvents(life('q', 0)), 'none')
  await projectors.reach(NAME, cursor)
  assert.equal(await namesOf(readModels), [
    ['n1', 2, 1],
    ['n', 0, 2],
  ])
  const deps = { readModels, store, projectors, logger: silent, onSkipped: () => {}, lookMs: 5 }
  void rebuildRequested(deps, stopping.signal).catch(() => {})
  const { state, from_version } = await until(async () => {
    const doc = await rebuildOf(readModels)
    return doc?.ended_at ? doc : undefined
  })
  assert.equal({ state, from_version }, { state: 'done', from_version: 1 })
  assert.equal(await namesOf(readModels), [
    ['n1', 2, 2],
    ['n', 0, 2],
  ])
})

earlier('are served if their indexes differ, also to queries for which they have none', async (context) => {
  const { store, readModels, stopping } = context
  await store.append('p', newEvents(life('p', 1)), 'none')
  await store.append('q', newEvents(life('q', 2)), 'none')
  await folded(context, any)
  const indexed = { ...raised, indexes: [{ equal: ['name'], sort: 'order', counted: true }] }
  await serve(readModels, indexed)
  assert.equal(await versionsOf(readModels), [2])
  const projectors = new Projectors({ store, readModels, logger: silent, projections: [indexed] })
  void projectors.run(stopping.signal)
  const { cursor } = await store.append('r', newEvents(life('r', 2)), 'none')
  await projectors.reach(NAME, cursor)
  const foldedBy = async () => {
    const query = { equal: { name: 'n1' }, sort: 'order', limit: 10, offset: 0 }
    const { items, total } = await readModels.reader(indexed).find(query)
    return [total, ...items.map(({ folded_by = 1 }) => folded_by)]
  }
  assert.equal(await foldedBy(), [2, 1, 2])
  const deps = { readModels, store, projectors, logger: silent, onSkipped: () => {}, lookMs: 5 }
  void rebuildRequested(deps, stopping.signal).catch(() => {})
  await until(async () => (await rebuildOf(readModels))?.ended_at)
  assert.equal(await foldedBy(), [2, 2, 2])
})

earlier('have the indexes of the new version once they were rebuilt', async (context) => {
  const { store, readModels, stopping } = context
  await store.append('p', newEvents(life('p', 1)), 'none')
  await folded(context, any)
  await serve(readModels, { ...raised, indexes: [] })
  const projectors = new Projectors({
    store,
    readModels,
    logger: silent,
    projections: [{ ...raised, indexes: [] }],
  })
  void projectors.run(stopping.signal)
  const deps = { readModels, store, projectors, logger: silent, onSkipped: () => {}, lookMs: 5 }
  void rebuildRequested(deps, stopping.signal).catch(() => {})
  await until(async () => (await rebuildOf(readModels))?.ended_at)
  assert.is((await rebuildOf(readModels))?.state, 'done')
  await readModels.writer({ ...raised, indexes: [] })
  const refused = await readModels.writer(raised).then(() => null, messageOf)
  assert.match(refused ?? '', 'raise its version')
})

earlier('are not served if the new version would misread them', async (context) => {
  const { store, readModels } = context
  await store.append('p', newEvents(life('p', 1)), 'none')
  await folded(context, any)
  await serve(readModels, { ...raised, servesFrom: 2 })
  assert.equal(await versionsOf(readModels), [1])
})

earlier('of two versions ago are served only if the new version says so', async (context) => {
  const { store, readModels } = context
  await store.append('p', newEvents(life('p', 1)), 'none')
  await folded(context, any)
  await serve(readModels) // the rebuild of version 2 does not begin
  const third = { ...raised, version: 3 }
  await serve(readModels, third)
  assert.equal(await versionsOf(readModels), [2])
  await serve(readModels, { ...third, servesFrom: 1 })
  assert.equal(await versionsOf(readModels), [3])
  assert.is((await rebuildOf(readModels, nameOf(third)))?.from_version, 1)
})

for (const step of ['writer', 'request', 'replace', 'none'] as const)
  earlier(`are continued by the next start if the process ends after ${step}`, async (context) => {
    const { store, readModels } = context
    await store.append('p', newEvents(life('p', 1)), 'none')
    await folded(context, any)
    const ended = new Error('the process ends')
    const ending: ReadModels = {
      ...withWriter(readModels, () => ({})),
      async writer(spec) {
        const writer = await readModels.writer(spec)
        if (step === 'writer' && nameOf(spec) === NAME) throw ended
        return writer as never
      },
      async replace(version, by, isUnread) {
        if (step === 'request') throw ended
        const isReplaced = await readModels.replace(version, by, isUnread)
        if (step === 'replace') throw ended
        return isReplaced
      },
    }
    await serve(ending).catch((error: unknown) => assert.is(error, ended))
    await serve(readModels)
    assert.equal(await namesOf(readModels), [['n0', 1, 1]])
    const { state, from_version } = (await rebuildOf(readModels)) ?? {}
    assert.equal({ state, from_version }, { state: 'waiting', from_version: 1 })
  })

earlier('are left to a living node that reads them', async (context) => {
  const { store, readModels } = context
  await store.append('p', newEvents(life('p', 1)), 'none')
  await folded(context, any)
  const namesRead = () => Promise.resolve(new Set([nameOf(any)]))
  await serve(readModels, raised, namesRead)
  assert.equal(await versionsOf(readModels), [1])
  assert.is(await rebuildOf(readModels), null)
})

earlier('are left to a node that begins to read them meanwhile', async (context) => {
  const { store, readModels } = context
  await store.append('p', newEvents(life('p', 1)), 'none')
  await folded(context, any)
  const reads: string[] = []
  const starting: ReadModels = {
    ...withWriter(readModels, () => ({})),
    async replace(version, by, isUnread) {
      reads.push(nameOf(any))
      return readModels.replace(version, by, isUnread)
    },
  }
  await serve(starting, raised, () => Promise.resolve(new Set(reads)))
  assert.equal(await namesOf(readModels, any), [['n0', 1, 1]])
  assert.equal(await namesOf(readModels), [])
  assert.is((await rebuildOf(readModels))?.state, 'done')
})

earlier('are rebuilt at the next start if the rebuild has failed', async (context) => {
  const { store, readModels } = context
  await store.append('p', newEvents(life('p', 1)), 'none')
  await folded(context, any)
  await serve(readModels)
  await (await Rebuilds.open(readModels)).change(NAME, { state: 'failed', error: 'a defect' })
  await serve(readModels)
  const { state, from_version } = (await rebuildOf(readModels)) ?? {}
  assert.equal({ state, from_version }, { state: 'waiting', from_version: 1 })
})

earlier('lack the facts that they lacked before, also after an interruption', async (context) => {
  const { store, readModels } = context
  const broken: Projection = {
    ...any,
    evolve() {
      throw new Error('a defect')
    },
  }
  await store.append('p', newEvents(life('p', 0)), 'none')
  await folded(context, broken)
  const failing = failingAfterExchange(readModels, () => forgetSkipped(readModels))
  assert.is(await serve(failing).catch(messageOf), 'down')
  await serve(readModels)
  assert.equal(await versionsOf(readModels), [2])
  assert.is(await (await SkippedFacts.open(readModels, NAME)).count(), 1)
})

earlier('of a new installation do not exist', async ({ readModels }) => {
  await serve(readModels)
  assert.equal(await versionsOf(readModels), [])
  assert.is(await rebuildOf(readModels), null)
})

earlier('lose the position that was reported of them before they serve another version', async (context) => {
  const { store, readModels } = context
  await store.append('p', newEvents(life('p', 0)), 'none')
  await folded(context, any)
  const forgotten: unknown[] = []
  const forget = async (name: string) => {
    forgotten.push(name, (await readModels.versions()).map(nameOf).includes(name))
  }
  await serveEarlier({ readModels, logger: silent, forget, projections: [raised] })
  assert.equal(await versionsOf(readModels), [2])
  assert.equal(forgotten, [nameOf(any), true])
})

earlier.run()
