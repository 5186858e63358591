import * as assert from 'uvu/assert'
import type { DomainEvent } from '../../src/events/index.ts'
import type { Projection } from '../../src/projections/projection.ts'
import { Projector } from '../../src/projections/projector.ts'
import { until } from '../support/until.ts'
import { any, begins, dump, forward, life, newEvents, withWriter, projecting } from './projectedNames.ts'

const projector = projecting('a projector that meets what is stored')

const both = [
  ['', any],
  [', begun without a look', begins],
] as const

for (const [how, spec] of both) {
  projector(
    `redelivery changes nothing, whatever part comes again${how}`,
    async ({ store, readModels, stopping }) => {
      const cursors: string[] = ['']
      for (let i = 0; i < 10; i++) {
        cursors.push((await store.append(`p-${i}`, newEvents(life(`p-${i}`, i)), 'none')).cursor)
        if (i % 3 === 0) {
          const gone: DomainEvent = { type: 'ProjectDeleted', project_id: `p-${i}`, build_ids: [] }
          cursors.push((await store.append(`p-${i}`, newEvents([gone]), i)).cursor)
        }
      }
      const last = cursors.at(-1) ?? ''
      const runFrom = async (from?: string) => {
        // A crash between the documents and the checkpoint leaves documents that are ahead of it.
        const behind = withWriter(readModels, ({ checkpoint }) => ({
          checkpoint: async () => from ?? (await checkpoint()),
        }))
        const stop = new AbortController()
        const projector = new Projector(spec, { readModels: behind, store })
        const running = projector.run(AbortSignal.any([stop.signal, stopping.signal]))
        await projector.reach(last)
        stop.abort()
        await running
      }
      await runFrom()
      const docs = await dump(readModels)
      assert.equal(
        docs.map(({ renamed }) => renamed),
        [1, 2, 4, 5, 7, 8],
      )
      for (const cursor of cursors) {
        await runFrom(cursor)
        assert.equal(await dump(readModels), docs, `after ${cursor || 'the start'}`)
      }
    },
  )
}

for (const [how, spec] of both) {
  projector(
    `one that lags behind its twin does not fold onto documents that are newer (P4)${how}`,
    async ({ store, readModels, stopping }) => {
      for (const id of ['p-0', 'p-1', 'p-2']) await store.append(id, newEvents(life(id, 0)), 'none')
      const twin = new Projector(any, { readModels, store })
      const twinStop = new AbortController()
      const twinRunning = twin.run(AbortSignal.any([twinStop.signal, stopping.signal]))
      await twin.reach(await store.head())
      let goOn = () => {}
      const held = new Promise<void>((resolve) => (goOn = resolve))
      let waits = false
      const slow = forward(store, async function* (options) {
        for await (const batch of store.subscribe(options)) {
          if (batch.events.length > 0) {
            waits = true
            await held
          }
          yield batch
        }
      })
      const lagging = new Projector(spec, { readModels, store: slow })
      void lagging.run(stopping.signal)
      await lagging.reach(twin.position)
      const rename = (project_id: string, name: string): DomainEvent => ({
        type: 'ProjectRenamed',
        project_id,
        name,
      })
      const gone: DomainEvent = { type: 'ProjectDeleted', project_id: 'p-2', build_ids: [] }
      await store.append('p-0', newEvents([rename('p-0', 'a'), rename('p-0', 'b')]), 0)
      await store.append('p-2', newEvents([gone]), 0)
      const { cursor } = await store.append('p-4', newEvents(life('p-4', 3)), 'none')
      await twin.reach(cursor)
      await until(() => waits)
      const docs = await dump(readModels)
      assert.equal(
        docs.map(({ name, renamed }) => [name, renamed]),
        [
          ['b', 2],
          ['n', 0],
          ['n2', 3],
        ],
      )
      goOn()
      await lagging.reach(cursor)
      assert.equal(await dump(readModels), docs)

      // It has kept what the twin stored, so the next facts are folded correctly without the twin.
      twinStop.abort()
      await twinRunning
      await store.append('p-4', newEvents([rename('p-4', 'd')]), 3)
      const { cursor: later } = await store.append('p-0', newEvents([rename('p-0', 'c')]), 2)
      await lagging.reach(later)
      assert.equal(
        (await dump(readModels)).map(({ name, renamed }) => [name, renamed]),
        [
          ['c', 3],
          ['n', 0],
          ['d', 4],
        ],
      )
    },
  )
}

projector(
  'folds and writes nothing that the stored documents already contain (P4)',
  async ({ store, readModels, stopping }) => {
    const { cursor: born } = await store.append('p', newEvents(life('p', 0)), 'none')
    const renames = await store.append('p', newEvents(life('p', 3).slice(1)), 0)
    const gone: DomainEvent = { type: 'ProjectDeleted', project_id: 'q', build_ids: [] }
    const removed = await store.append('q', newEvents([...life('q', 1), gone]), 'none')
    const ahead = new Projector(any, { readModels, store })
    const stop = new AbortController()
    const running = ahead.run(stop.signal)
    await ahead.reach(removed.cursor)
    stop.abort()
    await running

    const folded: string[] = []
    const written: string[] = []
    const watched: Projection = {
      ...any,
      evolve: (doc, recorded, id) => {
        folded.push(`${id} ${recorded.revision}`)
        return any.evolve(doc, recorded, id)
      },
    }
    const late = withWriter(readModels, ({ write }) => ({
      checkpoint: () => Promise.resolve(born),
      write: (writes, checkpoint) => {
        written.push(...writes.map(({ id }) => id))
        return write(writes, checkpoint)
      },
    }))
    const projector = new Projector(watched, { readModels: late, store })
    void projector.run(stopping.signal)
    await projector.reach(removed.cursor)
    assert.ok(renames.cursor > born)
    assert.equal(folded, [])
    assert.equal(written, [])
    const last: DomainEvent = { type: 'ProjectRenamed', project_id: 'p', name: 'last' }
    await projector.reach((await store.append('p', newEvents([last]), 3)).cursor)
    assert.equal(folded, ['p 4'], 'what is new is folded, once')
    assert.equal(
      (await dump(readModels)).map(({ name, renamed }) => [name, renamed]),
      [['last', 4]],
    )
  },
)

projector.run()
