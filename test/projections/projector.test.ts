import * as assert from 'uvu/assert'
import { openReadModels } from '../../src/adapters/embedded/readModels/index.ts'
import { AppError } from '../../src/errors.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import type { Projection } from '../../src/projections/projection.ts'
import { Projector } from '../../src/projections/projector.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import {
  any,
  dump,
  forward,
  life,
  newEvents,
  names,
  withWriter,
  type NameDoc,
  projecting,
} from './projectedNames.ts'

const projector = projecting('a projector')

projector('reach: readers see the appended facts (I2)', async ({ store, readModels, run }) => {
  const projector = new Projector(any, { readModels, store })
  void run(projector)
  for (let i = 0; i < 50; i++) {
    const { cursor } = await store.append(`p-${i}`, newEvents(life(`p-${i}`, 1)), 'none')
    await projector.reach(cursor)
    assert.equal((await readModels.reader<NameDoc>(names).get(`p-${i}`))?.name, 'n0')
  }
})

projector('reach: events of other types advance it too', async ({ store, readModels, run }) => {
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
  'reach: waits for a projector that has not started yet, and for one that failed',
  async ({ store, readModels, stopping, run }) => {
    let broken = false
    const failing = withWriter(readModels, ({ write }) => ({
      write: (...args) => (broken ? Promise.reject(new AppError('unavailable', 'down')) : write(...args)),
    }))
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

projector('continues at its position after a restart', async ({ store, readModels, stopping }) => {
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

projector(
  'a document that is removed and created within one batch is the new one',
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
  'a new version is built beside the old one, which stays complete and up to date (I8)',
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
    const { cursor } = await store.append('new', newEvents(life('new', 0)), 'none')
    await one.reach(cursor)
    assert.equal(await dump(readModels), [...before, ...(await dump(readModels)).slice(-1)])
    assert.is((await dump(readModels)).length, 31)
    assert.not.ok(early, 'readers of the new version wait until it has caught up')
    assert.is(two.position, '')

    const seen: number[] = []
    let watching = true
    const watch = (async () => {
      while (watching) {
        seen.push((await dump(readModels)).length)
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
    assert.equal([after.length, new Set(after.map(({ name }) => name))], [31, new Set(['N98', 'N'])])
  },
)

projector(
  'one that continues complete documents reports its positions although the log grows faster than it folds',
  async ({ store, readModels, run, stopping }) => {
    const first = new AbortController()
    const before = new Projector(any, { readModels, store })
    const running = before.run(first.signal)
    await before.reach((await store.append('a', newEvents(life('a', 0)), 'none')).cursor)
    first.abort()
    await running
    const { cursor } = await store.append('b', newEvents(life('b', 0)), 'none')
    const growing = forward(store, async function* (options) {
      for await (const { events, cursor } of store.subscribe(options)) {
        yield { events, cursor, caughtUp: false }
        for (let n = 0; n < 3; n++) yield { events: [], cursor, caughtUp: false } // a projector that is behind gathers pages
      }
    })
    const unknown = new Projector(any, { readModels, store: growing })
    const incomplete = run(unknown)
    await until(() => unknown.builtTo >= cursor)
    assert.is(unknown.position, '', 'the documents may be incomplete')

    const moved: string[] = []
    const next = new Projector(any, {
      readModels,
      store: growing,
      wasComplete: () => Promise.resolve(true),
      onMoved: (_, position) => moved.push(position),
    })
    const continued = run(next)
    for (let n = 0; n < 8; n++) await store.append(`c${n}`, newEvents(life(`c${n}`, 0)), 'none')
    await next.reach(cursor)
    assert.ok(moved.some((position) => position >= cursor))
    stopping.abort()
    await Promise.all([incomplete, continued])
  },
)

projector(
  'a projector that continues complete documents stores the end of the log that it has reached',
  async ({ store, readModels, run }) => {
    const { cursor } = await store.append('p', newEvents(life('p', 1)), 'none')
    await (await readModels.writer(any)).write([], cursor)
    for (let n = 0; n < 3; n++)
      await store.append(`s${n}`, newEvents([{ type: 'StreamCreated', stream_id: 's' }]), 'none')
    const next = new Projector(any, { readModels, store, wasComplete: () => Promise.resolve(true) })
    void run(next)
    const head = await store.head()
    await until(async () => (await readModels.reader(any).checkpoint()) === head)
  },
)

projector.run()
