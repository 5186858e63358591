import * as assert from 'uvu/assert'
import { openReadModels } from '../../src/adapters/embedded/readModels/index.ts'
import { PermanentError } from '../../src/errors.ts'
import type { Recorded } from '../../src/events/event.ts'
import type { ReadModels } from '../../src/ports/readModels.ts'
import type { Projection } from '../../src/projections/projection.ts'
import { Projector } from '../../src/projections/projector.ts'
import { type SkippedFactDoc, skippedFacts } from '../../src/projections/skippedFacts.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import { any, dump, life, newEvents, projecting, withWriter } from './projectedNames.ts'

const isBad = ({ event }: Recorded): boolean => 'name' in event && event.name.startsWith('bad')

/** A fold with a defect. */
const broken: Projection = {
  ...any,
  evolve(doc, recorded, id) {
    if (isBad(recorded)) throw new TypeError('no such field')
    return any.evolve(doc, recorded, id)
  },
}

const renamed = (project_id: string, ...names: readonly string[]) =>
  newEvents(names.map((name) => ({ type: 'ProjectRenamed', project_id, name })))

const skippedIn = async (readModels: ReadModels): Promise<SkippedFactDoc[]> =>
  Array.fromAsync(readModels.reader<SkippedFactDoc>(skippedFacts).scan())

const skipping = projecting('a fact on which a fold fails')

skipping('is recorded, and the read model continues without it', async ({ store, readModels, run }) => {
  const reported: string[] = []
  const projector = new Projector(broken, {
    readModels,
    store,
    onSkipped: (name, error) => reported.push(`${name}: ${String(error)}`),
  })
  void run(projector)
  await store.append('p', newEvents(life('p', 1)), 'none')
  const [bad] = renamed('p', 'bad')
  if (!bad) throw new Error('unreachable')
  const { cursor } = await store.append('p', [bad, ...renamed('p', 'good')], 1)
  await projector.reach(cursor)
  assert.equal(
    (await dump(readModels)).map(({ name, renamed: count }) => [name, count]),
    [['good', 2]],
  )
  const [skipped, ...others] = await skippedIn(readModels)
  assert.equal(others, [])
  assert.equal(
    [skipped?.read_model, skipped?.type, skipped?.id, skipped?.stream, skipped?.revision, skipped?.error],
    ['names@1', 'ProjectRenamed', bad.id, 'p', 2, 'no such field'],
  )
  assert.is(reported.length, 1)
  assert.match(reported[0] ?? '', `names@1: AppError: The fact ProjectRenamed v1, id ${bad.id}`)
})

skipping('is tried again with the documents as they are stored', async ({ store, readModels, run }) => {
  let failures = 0
  const shaky: Projection = {
    ...any,
    evolve(doc, recorded, id) {
      if (isBad(recorded) && ++failures === 1) throw new TypeError('a document in memory was wrong')
      return any.evolve(doc, recorded, id)
    },
  }
  const projector = new Projector(shaky, { readModels, store })
  void run(projector)
  await store.append('p', newEvents(life('p', 0)), 'none')
  await projector.reach((await store.append('p', renamed('p', 'bad'), 0)).cursor)
  assert.is((await dump(readModels))[0]?.['name'], 'bad')
  assert.equal(await skippedIn(readModels), [])
})

skipping(
  'is not lost when the process ends before the batch is stored',
  async ({ store, readModels, run }) => {
    let fails = true
    const dying = withWriter(readModels, ({ write }) => ({
      write: (writes, ...rest) =>
        fails && writes.some(({ id }) => id === 'p')
          ? Promise.reject(new Error('killed'))
          : write(writes, ...rest),
    }))
    const { cursor } = await store.append('p', [...newEvents(life('p', 0)), ...renamed('p', 'bad')], 'none')
    await run(new Projector(broken, { readModels: dying, store })).catch(() => {})
    assert.is((await skippedIn(readModels)).length, 1)
    fails = false
    const next = new Projector(broken, { readModels, store })
    void run(next)
    await next.reach(cursor)
    assert.is((await skippedIn(readModels)).length, 1, 'once, although it was found twice')
  },
)

skipping(
  'is folded by a later version, which is built from all facts',
  async ({ store, readModels, run }) => {
    const { cursor } = await store.append('p', [...newEvents(life('p', 0)), ...renamed('p', 'bad')], 'none')
    const first = new Projector(broken, { readModels, store })
    void run(first)
    await first.reach(cursor)
    const mended: Projection = { ...any, version: 2 }
    const next = new Projector(mended, { readModels, store })
    void run(next)
    await next.reach(cursor)
    assert.is((await dump(readModels, mended))[0]?.['name'], 'bad')
    assert.equal(
      (await skippedIn(readModels)).map(({ read_model }) => read_model),
      ['names@1'],
    )
  },
)

skipping(
  'is no longer listed when its read model was built again',
  async ({ store, readModels, stopping }) => {
    const { cursor } = await store.append('p', [...newEvents(life('p', 0)), ...renamed('p', 'bad')], 'none')
    const end = new AbortController()
    const first = new Projector(broken, { readModels, store })
    const running = first.run(end.signal)
    await first.reach(cursor)
    end.abort()
    await running
    const fresh = openReadModels({ dir: tempDir() })
    const record = await fresh.writer<SkippedFactDoc>(skippedFacts)
    for (const doc of await skippedIn(readModels))
      await record.write([{ id: `${doc.read_model} ${doc.cursor}`, doc, cursor: '0000000000000007' }], '')
    const mended = new Projector(any, { readModels: fresh, store })
    const mending = mended.run(stopping.signal)
    await mended.reach(cursor)
    assert.equal(await skippedIn(fresh), [])
    stopping.abort()
    await mending
    await fresh.close()
  },
)

skipping('stops a read model that decides access', async ({ store, readModels, run }) => {
  await store.append('p', [...newEvents(life('p', 0)), ...renamed('p', 'bad')], 'none')
  const error: unknown = await run(
    new Projector({ ...broken, decidesAccess: true }, { readModels, store }),
  ).catch((thrown: unknown) => thrown)
  assert.instance(error, PermanentError)
  assert.equal(await skippedIn(readModels), [])
})

skipping('stops a read model that lacks a hundred already', async ({ store, readModels, run }) => {
  const names = Array.from({ length: 101 }, (_, i) => `bad${i}`)
  await store.append('p', [...newEvents(life('p', 0)), ...renamed('p', ...names)], 'none')
  const error: unknown = await run(new Projector(broken, { readModels, store })).catch(
    (thrown: unknown) => thrown,
  )
  assert.instance(error, PermanentError)
  await until(async () => (await skippedIn(readModels)).length === 100)
})

skipping.run()
