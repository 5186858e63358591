import * as assert from 'uvu/assert'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import { clock } from '../../src/clock.ts'
import type { Metadata } from '../../src/events/event.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import { newId } from '../../src/ids.ts'
import { openLogger } from '../../src/logger.ts'
import { UntakenEvents } from '../../src/worker/untakenEvents.ts'
import { exampleOf } from '../events/examples.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

interface Context {
  append(...events: readonly DomainEvent[]): Promise<void>
  appendWith(metadata: Partial<Metadata>, ...events: readonly DomainEvent[]): Promise<void>
  watch(options?: { remembered?: number; lateMs?: number }): Promise<UntakenEvents>
  lines: string[]
  close(): Promise<void>
}

const untaken = suite<Context>('the events that no worker takes')

untaken.before.each((context) => {
  const store = openEventStore({ dir: tempDir() })
  const stopping = new AbortController()
  const lines: string[] = []
  const appendWith = async (metadata: Partial<Metadata>, ...events: readonly DomainEvent[]) => {
    const stored = events.map((event) => ({
      id: newId(),
      event,
      metadata: { correlation_id: 'c', env_id: 'e', ...metadata },
    }))
    await store.append(`stream-${newId()}`, stored, 'none')
  }
  const append = (...events: readonly DomainEvent[]) => appendWith({}, ...events)
  Object.assign(context, {
    lines,
    append,
    appendWith,
    async watch(options = {}) {
      const views = { directory: { orgIdOf: (env_id: string) => `org of ${env_id}` } }
      const logger = openLogger((line) => void lines.push(line))
      const watched = new UntakenEvents({ store, views, logger }, options)
      void watched.follow(stopping.signal)
      await until(async () => {
        await append(published('first'))
        return watched.oldestMs > 0
      })
      await append(handled('first'))
      await until(() => watched.oldestMs === 0)
      return watched
    },
    async close() {
      stopping.abort()
      await store.close()
    },
  } satisfies Partial<Context>)
})
untaken.after.each(({ close }) => close())

const published = (event_id: string): DomainEvent => ({ ...exampleOf.EventPublished, event_id })
const handled = (event_id: string): DomainEvent => ({ ...exampleOf.EventHandled, event_id })
const requested = (run_id: string): DomainEvent => ({ ...exampleOf.RunRequested, run_id })

untaken('have the age of the oldest one, until a worker takes it', async ({ append, watch }) => {
  const watched = await watch()
  await append(published('a'))
  await until(() => watched.oldestMs > 20)
  await append(published('b'))
  assert.ok(watched.oldestMs > 20)
  await append(handled('a'), handled('b'))
  await until(() => watched.oldestMs === 0)
})

for (const type of ['RunStarted', 'RunCancelled', 'RunFailed'] as const)
  untaken(`include requested runs until their ${type}`, async ({ append, watch }) => {
    const watched = await watch()
    await append(requested('r'))
    await until(() => watched.oldestMs > 0)
    await append({ ...exampleOf[type], run_id: 'r' })
    await until(() => watched.oldestMs === 0)
  })

untaken('begin to wait anew when a part of the runs of an event was claimed', async ({ append, watch }) => {
  const watched = await watch()
  await append(published('a'))
  await append(published('b'))
  await until(() => watched.oldestMs > 20)
  const before = clock.monotonic()
  const part: DomainEvent = { ...exampleOf.RunStarted, run_id: 'r', event_id: 'a' }
  await append(part, handled('b'))
  await until(() => watched.waiting === 1)
  assert.ok(watched.oldestMs <= Math.round(clock.monotonic() - before))
  await until(() => watched.late(0, 10, () => true)?.ids.has('a'))
  await append(handled('a'))
  await until(() => watched.waiting === 0)
})

untaken('are logged once when they wait too long, and once when all are taken', async (context) => {
  const { append, watch, lines } = context
  const watched = await watch({ lateMs: 60_000 }) // so long that no stall of the machine makes an event late
  const { monotonic } = clock
  try {
    for (const round of [1, 2]) {
      await append(published(`late${round}`))
      await until(() => watched.waiting === 1)
      clock.monotonic = () => monotonic() + 120_000 * round
      await until(() => lines.length === 2 * round - 1)
      assert.match(lines.at(-1) ?? '', `No worker has taken an event for too long {"id":"late${round}"`)
      await append(handled(`late${round}`))
      await until(() => lines.length === 2 * round)
      assert.match(lines.at(-1) ?? '', /Workers take all events in time again \{"lasted_ms":\d+\}/)
    }
  } finally {
    clock.monotonic = monotonic
  }
})

untaken('are not those of an import that was interrupted', async ({ append, appendWith, watch }) => {
  const watched = await watch()
  const first_at = '2026-05-01T10:00:00.000Z'
  await appendWith({ first_at }, published('imported'), requested('r'))
  await append(published('a'))
  await until(() => watched.waiting > 0)
  assert.is(watched.waiting, 1)
  await append(handled('a'))
  await until(() => watched.oldestMs === 0)
  await appendWith({ first_at, unhandled: true }, published('restored'))
  await until(() => watched.oldestMs > 0)
})

untaken('are all found, although only a few are remembered', async ({ append, watch }) => {
  const watched = await watch({ remembered: 2 })
  for (const id of ['a', 'b', 'c', 'd', 'e']) await append(published(id))
  await until(() => watched.oldestMs > 0)
  for (const id of ['a', 'b', 'd', 'e']) await append(handled(id))
  await append(requested('r'), { ...exampleOf.RunStarted, run_id: 'r' })
  const { oldestMs } = watched
  await until(() => watched.oldestMs > oldestMs + 20) // the event c
  await append(handled('c'))
  await until(() => watched.oldestMs === 0)
})

untaken('are found in an organization while those of another fill its part', async (context) => {
  const { append, appendWith, watch } = context
  const watched = await watch({ remembered: 2 })
  await append(published('a'), published('b'))
  await appendWith({ env_id: 'other' }, published('c'))
  await until(() => watched.late(0, 10, (_, env_id) => env_id === 'other')?.ids.has('c'))
  await appendWith({ env_id: 'other' }, handled('c'))
  await append(handled('a'))
  await until(() => watched.late(0, 10, () => true)?.ids.has('b'))
})

untaken('are found although some of their organization are never taken', async ({ append, watch }) => {
  const watched = await watch({ remembered: 16 })
  await append(published('never'))
  const ids = Array.from({ length: 20 }, (_, i) => `event ${i}`)
  await append(...ids.map(published))
  await until(() => watched.waiting === 8)
  await append(...ids.slice(0, 19).map(handled))
  await until(() => watched.late(0, 10, () => true)?.ids.has('event 19'))
  assert.is(watched.waiting, 2)
})

untaken.run()
