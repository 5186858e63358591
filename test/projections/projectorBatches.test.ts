import { once } from 'node:events'
import * as assert from 'uvu/assert'
import { AppError } from '../../src/errors.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import { silent } from '../../src/logger.ts'
import { keepGoing } from '../../src/loops/keepGoing.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import { Projector } from '../../src/projections/projector.ts'
import {
  any,
  begins,
  dump,
  forward,
  life,
  newEvents,
  names,
  withWriter,
  type NameDoc,
  projecting,
} from './projectedNames.ts'

const projector = projecting('the batches of a projector')

/** The log, an event a page; `caughtUp` at the first page and at the last. After `held` pages it keeps its reader waiting. */
const pageByPage = (store: EventStore, { held = Infinity } = {}): EventStore =>
  forward(store, async function* ({ signal, ...options }) {
    const events = await Array.fromAsync(store.read('p'))
    for (const [i, recorded] of events.entries()) {
      if (i === held) await once(signal, 'abort')
      if (signal.aborted) return
      const { cursor } = recorded
      yield { events: [recorded], cursor, caughtUp: i === 0 || i === events.length - 1 }
    }
    yield* store.subscribe({ ...options, signal, after: await store.head() })
  })

projector('a document that begins with a fact is not read first', async ({ store, readModels, run }) => {
  const asked: string[] = []
  const watched = withWriter(readModels, ({ stored }) => ({
    stored: (ids) => {
      asked.push(...ids)
      return stored(ids)
    },
  }))
  await store.append('p', newEvents(life('p', 2)), 'none')
  const renamed: DomainEvent = { type: 'ProjectRenamed', project_id: 'unknown', name: 'x' }
  const { cursor } = await store.append('q', newEvents([renamed, ...life('unknown', 0)]), 'none')
  const projector = new Projector(begins, { readModels: watched, store })
  void run(projector)
  await projector.reach(cursor)
  assert.equal(asked, ['unknown'])
  assert.equal(
    (await dump(readModels)).map(({ name, renamed }) => [name, renamed]),
    [
      ['n1', 2],
      ['n', 0],
    ],
  )
})

projector(
  'combines pages of the log into one write while it is behind',
  async ({ store, readModels, run }) => {
    const writes: number[] = []
    const counting = withWriter(readModels, ({ write }) => ({
      write: (documents, checkpoint) => {
        for (const { doc } of documents) writes.push((doc as NameDoc).renamed)
        return write(documents, checkpoint)
      },
    }))
    const { cursor } = await store.append('p', newEvents(life('p', 9)), 'none')
    const projector = new Projector(any, { readModels: counting, store: pageByPage(store) })
    void run(projector)
    await projector.reach(cursor)
    assert.equal(writes, [0, 4, 8, 9])
  },
)

projector(
  'reach: a reader does not wait for pages after its own position',
  async ({ store, readModels, run }) => {
    await store.append('p', newEvents(life('p', 9)), 'none')
    const [, second] = await Array.fromAsync(store.read('p'))
    const projector = new Projector(any, { readModels, store: pageByPage(store, { held: 2 }) })
    void run(projector)
    await projector.reach(second?.cursor ?? '')
    assert.is((await readModels.reader<NameDoc>(names).get('p'))?.renamed, 1)
  },
)

projector(
  'a batch that changes no document is not written, and readers do not wait for it',
  async ({ store, readModels, run }) => {
    let writes = 0
    const counting = withWriter(readModels, ({ write }) => ({
      write: (...written) => {
        writes++
        return write(...written)
      },
    }))
    const projector = new Projector({ ...any, idsOf: () => [] }, { readModels: counting, store })
    void run(projector)
    await projector.reach((await store.append('p', newEvents(life('p', 0)), 'none')).cursor)
    const before = writes
    for (let n = 1; n <= 5; n++)
      await projector.reach((await store.append(`p${n}`, newEvents(life(`p${n}`, 1)), 'none')).cursor)
    assert.is(writes, before)
  },
)

projector(
  'stores a batch in parts when the engine does not store it as a whole',
  async ({ store, readModels, stopping }) => {
    const most = 20
    let largest = 0
    const slow = withWriter(readModels, ({ write }) => ({
      write: async (documents, ...more) => {
        if (documents.length > most) throw new AppError('unavailable', 'too slow for so many')
        largest = Math.max(largest, documents.length)
        await write(documents, ...more)
      },
    }))
    const lives = Array.from({ length: 20 * most }, (_, n) => life(`p${n}`, 0))
    const { cursor } = await store.append('p', newEvents(lives.flat()), 'none')
    const projector = new Projector(any, { readModels: slow, store })
    const { signal } = stopping
    void keepGoing('the projector', (until) => projector.run(until), { signal, logger: silent })
    await projector.reach(cursor)
    assert.is((await dump(readModels)).length, lives.length)
    assert.ok(largest > 1, 'the parts are single facts')
  },
)

projector(
  'reach: a reader does not wait for the parts after its own position',
  async ({ store, readModels, run }) => {
    const second = Promise.withResolvers<void>()
    let writes = 0
    const stuck = withWriter(readModels, ({ write }) => ({
      write: async (documents, ...more) => {
        if (documents.length > 1 && ++writes === 2) {
          second.resolve()
          await new Promise(() => {}) // a server that has stopped
        }
        await write(documents, ...more)
      },
    }))
    const projector = new Projector(any, { readModels: stuck, store })
    void run(projector)
    await projector.reach((await store.append('p', newEvents(life('p', 0)), 'none')).cursor)
    const lives = Array.from({ length: 600 }, (_, n) => life(`p${n}`, 0))
    await store.append('q', newEvents(lives.flat()), 'none')
    await second.promise
    const [first] = await Array.fromAsync(store.read('q'))
    await projector.reach(first?.cursor ?? '')
    assert.is((await readModels.reader<NameDoc>(names).get('p0'))?.renamed, 0)
  },
)

projector.run()
