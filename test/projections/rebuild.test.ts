import { once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import { START } from '../../src/events/event.ts'
import { silent } from '../../src/logger.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import { nameOf, type Projection } from '../../src/projections/projection.ts'
import { RESERVED_BYTES } from '../../src/projections/rebuildRoom.ts'
import { rebuildRequested } from '../../src/projections/rebuilding.ts'
import { type RebuildDoc, Rebuilds, rebuilds } from '../../src/projections/rebuilds.ts'
import { until } from '../support/until.ts'
import { any, dump, forward, life, newEvents, projecting, withWriter } from './projectedNames.ts'
import {
  damage,
  docOf,
  ended,
  forwardingProjectors,
  hasShadow,
  held,
  LOOK_MS,
  NAME,
  request,
  started,
} from './rebuildHarness.ts'

const rebuild = projecting('the rebuild of a read model')

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
