import { once } from 'node:events'
import * as assert from 'uvu/assert'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import { openReadModels } from '../../src/adapters/embedded/readModels/index.ts'
import { AppError } from '../../src/errors.ts'
import type { NewEvent } from '../../src/events/event.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import { newId } from '../../src/ids.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import type { Doc, ReadModels, Write } from '../../src/ports/readModels.ts'
import type { Projection } from '../../src/projections/projection.ts'
import { orderOf } from '../../src/projections/projection.ts'
import { Projector } from '../../src/projections/projector.ts'
import { forwarding } from '../support/forwarding.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

type NameDoc = { readonly name: string; readonly renamed: number; readonly order: string }

/** A small projection that counts, so that an event folded twice shows. */
const names: Projection<NameDoc> = {
  name: 'names',
  version: 1,
  indexes: [{ equal: [], sort: 'order', counted: true }],
  handles: ['ProjectCreated', 'ProjectRenamed', 'ProjectDeleted'],
  idsOf: ({ event }) => ('project_id' in event ? [event.project_id ?? ''] : []),
  evolve(doc, recorded) {
    const { event } = recorded
    if (event.type === 'ProjectCreated') return { name: event.name, renamed: 0, order: orderOf(recorded) }
    if (event.type === 'ProjectRenamed') return doc && { ...doc, name: event.name, renamed: doc.renamed + 1 }
    return null
  },
}
const any = names as unknown as Projection
/** The same, of which the first fact is folded without a look at what is stored. */
const begins = { ...any, begins: ['ProjectCreated'] } as Projection
const both = [
  ['', any],
  [', begun without a look', begins],
] as const

const newEvents = (facts: readonly DomainEvent[]): NewEvent[] =>
  facts.map((event) => ({ id: newId(), event, metadata: { env_id: 'env', correlation_id: 'c' } }))
const life = (project_id: string, renames: number): DomainEvent[] => [
  { type: 'ProjectCreated', project_id, name: 'n' },
  ...Array.from({ length: renames }, (_, i) => ({
    type: 'ProjectRenamed' as const,
    project_id,
    name: `n${i}`,
  })),
]

interface Context {
  store: EventStore
  readModels: ReadModels
  stopping: AbortController
  /** Runs a projector until the end of the test. */
  run(projector: Projector): Promise<void>
}

const projector = suite<Context>('a projector', { timeoutMs: 30_000 })
projector.before.each((context) => {
  const stopping = new AbortController()
  const run = (projector: Projector) => projector.run(stopping.signal)
  Object.assign(context, {
    store: openEventStore({ dir: tempDir() }),
    readModels: openReadModels({ dir: tempDir() }),
    stopping,
    run,
  })
})
projector.after.each(async ({ store, readModels, stopping }) => {
  stopping.abort()
  await store.close()
  await readModels.close()
})

/** The store with another way to subscribe. */
const forward = (store: EventStore, subscribe: EventStore['subscribe']): EventStore =>
  forwarding(store, { subscribe })

/** The read models with another way to write. */
const writing = (
  readModels: ReadModels,
  around: (write: () => Promise<void>, documents: readonly Write[]) => Promise<void>,
): ReadModels => ({
  reader: (spec) => readModels.reader(spec),
  goLive: (spec) => readModels.goLive(spec),
  close: () => readModels.close(),
  async writer(spec) {
    const collection = await readModels.writer(spec)
    const write: typeof collection.write = (documents, checkpoint) =>
      around(() => collection.write(documents, checkpoint), documents)
    return { ...collection, write } as never
  },
})

const dump = async (readModels: ReadModels, spec: Projection = any): Promise<Doc[]> =>
  (await Array.fromAsync(readModels.reader(spec).scan())).sort((a, b) =>
    String(a['order']) < String(b['order']) ? -1 : 1,
  )

projector('reach: what was appended is seen (I2)', async ({ store, readModels, run }) => {
  const projector = new Projector(any, { readModels, store })
  void run(projector)
  for (let i = 0; i < 50; i++) {
    const { cursor } = await store.append(`p-${i}`, newEvents(life(`p-${i}`, 1)), 'none')
    await projector.reach(cursor)
    assert.equal((await readModels.reader<NameDoc>(names).get(`p-${i}`))?.name, 'n0')
  }
})

projector('reach: events that are not for it move it too', async ({ store, readModels, run }) => {
  const projector = new Projector(any, { readModels, store })
  void run(projector)
  for (let i = 0; i < 5; i++) {
    const { cursor } = await store.append(
      `s-${i}`,
      newEvents([{ type: 'StreamCreated', stream_id: 's' }]),
      'none',
    )
    await projector.reach(cursor)
    assert.ok(projector.position >= cursor)
  }
})

projector(
  'reach: waits for a projector that is not there yet, and for one that broke',
  async ({ store, readModels, stopping, run }) => {
    let broken = false
    const failing = writing(readModels, (write) =>
      broken ? Promise.reject(new AppError('unavailable', 'down')) : write(),
    )
    const projector = new Projector(any, { readModels: failing, store })
    const first = projector.reach((await store.append('p', newEvents(life('p', 0)), 'none')).cursor)
    const running = run(projector)
    await first
    broken = true
    const renames = newEvents(life('p', 3).slice(1))
    let reached = false
    const reaching = projector
      .reach((await store.append('p', renames, 0)).cursor)
      .then(() => (reached = true))
    await running.then(
      () => assert.unreachable('expected it to break'),
      (error: AppError) => assert.is(error.code, 'unavailable'),
    )
    assert.not.ok(reached)
    broken = false
    void run(projector)
    await reaching
    assert.equal(
      (await dump(readModels)).map(({ renamed }) => renamed),
      [3],
    )
    stopping.abort()
  },
)

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

projector('a document that begins with a fact is not looked for', async ({ store, readModels, run }) => {
  const asked: string[] = []
  const watched: ReadModels = {
    ...writing(readModels, (write) => write()),
    async writer(spec) {
      const collection = await readModels.writer(spec)
      const stored: typeof collection.stored = (ids) => (asked.push(...ids), collection.stored(ids))
      return { ...collection, stored } as never
    },
  }
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

projector('behind, some pages of the log are one write', async ({ store, readModels, run }) => {
  const writes: number[] = []
  const counting = writing(readModels, (write, documents) => {
    for (const { doc } of documents) writes.push((doc as NameDoc).renamed)
    return write()
  })
  const { cursor } = await store.append('p', newEvents(life('p', 9)), 'none')
  const projector = new Projector(any, { readModels: counting, store: pageByPage(store) })
  void run(projector)
  await projector.reach(cursor)
  assert.equal(writes, [0, 4, 8, 9])
})

projector('reach: nobody waits for pages that come after theirs', async ({ store, readModels, run }) => {
  await store.append('p', newEvents(life('p', 9)), 'none')
  const [, second] = await Array.fromAsync(store.read('p'))
  const projector = new Projector(any, { readModels, store: pageByPage(store, { held: 2 }) })
  void run(projector)
  await projector.reach(second?.cursor ?? '')
  assert.is((await readModels.reader<NameDoc>(names).get('p'))?.renamed, 1)
})

projector('goes on where it was after a restart', async ({ store, readModels, stopping }) => {
  const first = new Projector(any, { readModels, store })
  const stop = new AbortController()
  const running = first.run(stop.signal)
  await first.reach((await store.append('p', newEvents(life('p', 5)), 'none')).cursor)
  stop.abort()
  await running
  const { cursor } = await store.append(
    'p',
    newEvents([{ type: 'ProjectRenamed', project_id: 'p', name: 'last' }]),
    5,
  )
  const from: (string | undefined)[] = []
  const watched = forward(store, (options) => {
    from.push(options.after)
    return store.subscribe(options)
  })
  const second = new Projector(any, { readModels, store: watched })
  void second.run(stopping.signal)
  await second.reach(cursor)
  assert.equal(from, [first.position])
  assert.equal(
    (await dump(readModels)).map(({ name, renamed }) => [name, renamed]),
    [['last', 6]],
  )
})

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
        // What a crash between the documents and the checkpoint leaves: documents that are ahead of it.
        const behind: ReadModels = {
          reader: (spec) => readModels.reader(spec),
          goLive: (spec) => readModels.goLive(spec),
          close: () => readModels.close(),
          async writer(spec) {
            const collection = await readModels.writer(spec)
            return { ...collection, checkpoint: async () => from ?? (await collection.checkpoint()) } as never
          },
        }
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

      // What it kept is what the twin stored: what it folds next, as the only one now, comes out right.
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
  'folds and writes nothing that the stored documents already hold (P4)',
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
    const late: ReadModels = {
      reader: (spec) => readModels.reader(spec),
      goLive: (spec) => readModels.goLive(spec),
      close: () => readModels.close(),
      async writer(spec) {
        const collection = await readModels.writer(spec)
        const write: typeof collection.write = (writes, checkpoint) => {
          written.push(...writes.map(({ id }) => id))
          return collection.write(writes, checkpoint)
        }
        return { ...collection, checkpoint: async () => born, write } as never
      },
    }
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

projector(
  'a document that is removed and made within one batch is the new one',
  async ({ store, readModels, run }) => {
    const projector = new Projector(any, { readModels, store })
    await store.append('p', newEvents(life('p', 2)), 'none')
    const first = new AbortController()
    const running = projector.run(first.signal)
    await projector.reach(await store.head())
    first.abort()
    await running
    const gone: DomainEvent = { type: 'ProjectDeleted', project_id: 'p', build_ids: [] }
    const rename: DomainEvent = { type: 'ProjectRenamed', project_id: 'p', name: 'ghost' }
    const { cursor } = await store.append('p', newEvents([gone, rename]), 2)
    const next = new Projector(any, { readModels, store })
    void run(next)
    await next.reach(cursor)
    assert.equal(await dump(readModels), [])
  },
)

projector('a rebuild from the log gives the same documents (I8)', async ({ store, readModels, run }) => {
  const one = new Projector(any, { readModels, store })
  void run(one)
  for (let i = 0; i < 40; i++) {
    await store.append(`p-${i}`, newEvents(life(`p-${i}`, i % 5)), 'none')
    if (i % 4 === 0) await one.reach(await store.head())
    if (i % 7 === 0)
      await store.append(
        `p-${i}`,
        newEvents([{ type: 'ProjectDeleted', project_id: `p-${i}`, build_ids: [] }]),
        i % 5,
      )
  }
  await one.reach(await store.head())
  const rebuilt = openReadModels({ dir: tempDir() })
  const other = new Projector(any, { readModels: rebuilt, store })
  const stop = new AbortController()
  const running = other.run(stop.signal)
  await other.reach(await store.head())
  assert.equal(await dump(rebuilt), await dump(readModels))
  stop.abort()
  await running
  await rebuilt.close()
})

projector(
  'a new version is built beside the old one and then takes its place (I8)',
  async ({ store, readModels, run, stopping }) => {
    const one = new Projector(any, { readModels, store })
    void run(one)
    for (let i = 0; i < 30; i++) await store.append(`p-${i}`, newEvents(life(`p-${i}`, 99)), 'none')
    await one.reach(await store.head())
    const before = await dump(readModels)

    const loud: Projection = {
      ...any,
      version: 2,
      evolve: (doc, recorded, id) => {
        const next = any.evolve(doc, recorded, id)
        return next && { ...next, name: String(next['name']).toUpperCase() }
      },
    }
    let goOn = () => {}
    const held = new Promise<void>((resolve) => (goOn = resolve))
    let batches = 0
    const slow = forward(store, async function* (options) {
      for await (const batch of store.subscribe(options)) {
        yield batch
        if (++batches === 1) await held
      }
    })
    const two = new Projector(loud, { readModels, store: slow })
    let early = false
    const reaching = two
      .reach((await Array.fromAsync(store.read('p-0')))[0]?.cursor ?? '')
      .then(() => (early = true))
    void two.run(stopping.signal)
    await until(() => batches === 1)
    for (const spec of [any, loud])
      assert.equal(await dump(readModels, spec), before, 'readers see the old version')
    const { cursor } = await store.append('new', newEvents(life('new', 0)), 'none')
    await one.reach(cursor)
    assert.is((await dump(readModels, loud)).length, 31)
    assert.not.ok(early, 'nothing is reached before it is live')

    const seen: number[] = []
    let watching = true
    const watch = (async () => {
      while (watching) {
        seen.push((await dump(readModels, loud)).length)
        await new Promise(setImmediate)
      }
    })()
    goOn()
    await two.reach(cursor)
    await reaching
    watching = false
    await watch
    assert.equal(new Set(seen), new Set([31]), 'at no moment something is missing')
    const after = await dump(readModels, loud)
    assert.equal(new Set(after.map(({ name }) => name)), new Set(['N98', 'N']))
  },
)

projector.run()
