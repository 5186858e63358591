import { once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import { START } from '../../src/events/event.ts'
import type { EventType } from '../../src/events/index.ts'
import type { Batch, EventStore } from '../../src/ports/eventStore.ts'
import { SharedReads } from '../../src/projections/sharedReads.ts'
import { forward, life, newEvents, projecting } from './projectedNames.ts'

const shared = projecting('shared reads of the log')

const PROJECTS = 5
const CREATED: readonly EventType[] = ['ProjectCreated']
const RENAMED: readonly EventType[] = ['ProjectRenamed']

interface Counted {
  readonly store: EventStore
  /** The positions of the pages that the store has delivered. */
  readonly delivered: string[]
}

/** The store with a page for each event, until the end of the log. */
const counted = (store: EventStore): Counted => {
  const delivered: string[] = []
  const pages = async function* (options: Parameters<EventStore['subscribe']>[0]): AsyncGenerator<Batch> {
    for await (const { events, cursor, caughtUp } of store.subscribe(options)) {
      for (const recorded of events) {
        delivered.push(recorded.cursor)
        yield { events: [recorded], cursor: recorded.cursor, caughtUp: false }
      }
      yield { events: [], cursor, caughtUp }
    }
  }
  return { store: forward(store, pages), delivered }
}

/** Reads up to the end of the log. */
const names = async (pages: AsyncIterable<Batch>): Promise<string[]> => {
  const found: string[] = []
  for await (const { events, caughtUp } of pages) {
    for (const { event } of events) if ('name' in event) found.push(`${event.type} ${String(event.name)}`)
    if (caughtUp) break
  }
  return found
}

const fill = async (store: EventStore): Promise<void> => {
  for (let n = 0; n < PROJECTS; n++) await store.append(`p${n}`, newEvents(life(`p${n}`, 1)), 'none')
}

shared('readers that begin at one position get their events from one read', async ({ store, stopping }) => {
  await fill(store)
  const { store: watched, delivered } = counted(store)
  const reads = new SharedReads(watched)
  const { signal } = stopping
  const [created, renamed] = await Promise.all([
    names(reads.subscribe({ types: CREATED, signal })),
    names(reads.subscribe({ types: RENAMED, signal })),
  ])
  assert.equal(
    created,
    Array.from({ length: PROJECTS }, () => 'ProjectCreated n'),
  )
  assert.equal(
    renamed,
    Array.from({ length: PROJECTS }, () => 'ProjectRenamed n0'),
  )
  assert.is(delivered.length, 2 * PROJECTS)
})

shared('readers that begin at different positions read by themselves', async ({ store, stopping }) => {
  await fill(store)
  const [first] = await Array.fromAsync(store.read('p0'))
  const reads = new SharedReads(store)
  const { signal } = stopping
  const [all, later] = await Promise.all([
    names(reads.subscribe({ types: CREATED, signal })),
    names(reads.subscribe({ types: CREATED, after: first?.cursor ?? '', signal })),
  ])
  assert.is(all.length, PROJECTS)
  assert.is(later.length, PROJECTS - 1)
})

shared('a read of the whole log begins when the expected readers have begun', async ({ store, stopping }) => {
  await fill(store)
  const { store: watched, delivered } = counted(store)
  const reads = new SharedReads(watched)
  const { signal } = stopping
  const [onFirst, onSecond, onNone] = [reads.expect(), reads.expect(), reads.expect()]
  onFirst()
  const created = names(reads.subscribe({ types: CREATED, signal }))
  for (let n = 0; n < 100; n++) await nextTurn() // the second one prepares
  assert.is(delivered.length, 0)
  onSecond()
  const renamed = names(reads.subscribe({ types: RENAMED, signal }))
  onNone() // it fails before it begins
  assert.is((await created).length, PROJECTS)
  assert.is((await renamed).length, PROJECTS)
  assert.is(delivered.length, 2 * PROJECTS)
})

shared('a reader of later events does not wait for expected ones', async ({ store, stopping }) => {
  await fill(store)
  const [first] = await Array.fromAsync(store.read('p0'))
  const reads = new SharedReads(store)
  reads.expect()
  const later = reads.subscribe({ types: CREATED, after: first?.cursor ?? '', signal: stopping.signal })
  assert.is((await names(later)).length, PROJECTS - 1)
})

shared('a reader of all events shares the read of the others', async ({ store, stopping }) => {
  await fill(store)
  const { store: watched, delivered } = counted(store)
  const reads = new SharedReads(watched)
  const { signal } = stopping
  const [all, created] = await Promise.all([
    names(reads.subscribe({ signal })),
    names(reads.subscribe({ types: CREATED, signal })),
  ])
  assert.is(all.length, 2 * PROJECTS)
  assert.is(created.length, PROJECTS)
  assert.is(delivered.length, 2 * PROJECTS)
})

shared('a reader continues with new events after the end of the log', async ({ store, stopping }) => {
  await fill(store)
  const reads = new SharedReads(store)
  const pages = reads.subscribe({ types: CREATED, signal: stopping.signal })
  let created = 0
  for await (const { events, caughtUp } of pages) {
    created += events.length
    if (created > PROJECTS) break
    if (caughtUp && created === PROJECTS)
      await store.append('q', newEvents(life('q', 0)), 'none').catch(() => {})
  }
  assert.is(created, PROJECTS + 1)
})

shared('a reader is at most one page behind another', async ({ store, stopping }) => {
  await fill(store)
  const { store: watched, delivered } = counted(store)
  const reads = new SharedReads(watched)
  const { signal } = stopping
  const slow = reads.subscribe({ types: CREATED, signal })
  const quick = names(reads.subscribe({ types: RENAMED, signal }))
  await slow.next()
  for (let n = 0; n < 100; n++) await nextTurn()
  assert.ok(delivered.length <= 3, `${delivered.length} pages were read while a reader had taken one`)
  await slow.return(undefined)
  assert.is((await quick).length, PROJECTS)
})

/** Two readers of one read: a slow one that has its first page, and a quick one with the number of its pages. */
const twoReaders = async (store: EventStore, after: string, signal: AbortSignal) => {
  const reads = new SharedReads(counted(store).store)
  const slow = reads.subscribe({ types: CREATED, after, signal })
  let pages = 0
  const quick = reads.subscribe({ types: RENAMED, after, signal })
  const read = names(
    (async function* () {
      for await (const page of quick) {
        pages++
        yield page
      }
    })(),
  )
  await slow.next()
  return { slow, read, pages: () => pages }
}

shared('a slow reader does not hold up the others, and misses nothing', async ({ store, stopping }) => {
  await fill(store)
  const [first] = await Array.fromAsync(store.read('p0'))
  const { signal } = stopping
  const whole = await twoReaders(store, START, signal)
  const later = await twoReaders(store, first?.cursor ?? '', signal)
  assert.is((await later.read).length, PROJECTS) // while the slow one has its first page
  assert.ok(whole.pages() <= 2, `${whole.pages()} pages of a read of the whole log, which waits longer`)
  assert.is((await whole.read).length, PROJECTS)
  assert.is((await names(later.slow)).length, PROJECTS - 1)
  assert.is((await names(whole.slow)).length, PROJECTS - 1)
})

shared('a reader that ends holds up no other', async ({ store, stopping }) => {
  await fill(store)
  const reads = new SharedReads(counted(store).store)
  const leaving = new AbortController()
  const left = reads.subscribe({ types: CREATED, signal: leaving.signal })
  const staying = names(reads.subscribe({ types: RENAMED, signal: stopping.signal }))
  await left.next()
  leaving.abort()
  await left.return(undefined)
  assert.is((await staying).length, PROJECTS)
})

shared(
  'a failed read is repeated by each reader for itself, so an error reaches only those that it concerns',
  async ({ store, stopping }) => {
    await fill(store)
    let reads = 0
    const failing = forward(store, async function* (options) {
      reads++
      if (options.types?.includes('ProjectCreated')) throw new Error('This fact is unreadable')
      yield* store.subscribe(options)
    })
    const both = new SharedReads(failing)
    const { signal } = stopping
    const created = names(both.subscribe({ types: CREATED, signal }))
    const renamed = names(both.subscribe({ types: RENAMED, signal }))
    const [refused, read] = await Promise.allSettled([created, renamed])
    assert.is(refused.status === 'rejected' && String(refused.reason), 'Error: This fact is unreadable')
    assert.is(read.status === 'fulfilled' && read.value.length, PROJECTS)
    assert.is(reads, 3)
  },
)

shared('a read ends when all its readers have ended', async ({ store }) => {
  await fill(store)
  const ended = Promise.withResolvers<void>()
  const watched = forward(store, async function* ({ signal }) {
    yield { events: [], cursor: '', caughtUp: false }
    if (!signal.aborted) await once(signal, 'abort')
    ended.resolve()
  })
  const leaving = new AbortController()
  const pages = new SharedReads(watched).subscribe({ types: CREATED, signal: leaving.signal })
  await pages.next()
  leaving.abort()
  await pages.return(undefined)
  await ended.promise
})

shared.run()
