import { getEventListeners } from 'node:events'
import * as assert from 'uvu/assert'
import { newId } from '../../../src/ids.ts'
import type { Recorded } from '../../../src/events/event.ts'
import type { EventStore } from '../../../src/ports/eventStore.ts'
import { suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'
import type { OpenEventStore } from '../eventStore.ts'
import { alone } from './alone.ts'
import { appendLarge, areSmall, fact, facts, numbers, payloadOf, streamFact } from './facts.ts'
import { eventsOf, gather } from './gather.ts'

const WRITERS = 16
const EACH = 250

/** Every event once, in the order of the log and of its stream. */
const isWhole = (events: readonly Recorded[], streams: readonly string[], each: number): void => {
  assert.is(events.length, streams.length * each)
  for (let i = 1; i < events.length; i++) {
    assert.ok((events[i] as Recorded).cursor > (events[i - 1] as Recorded).cursor, 'cursors rise')
  }
  for (const stream of streams) {
    const mine = events.filter((event) => event.stream === stream)
    assert.equal(
      mine.map(({ revision }) => revision),
      numbers(each),
    )
  }
}

/** The signals that `work` combines. Node keeps each of them while it has a listener. */
const combinedDuring = async (work: () => Promise<void>): Promise<AbortSignal[]> => {
  const { any } = AbortSignal
  const combined: AbortSignal[] = []
  AbortSignal.any = (signals) => {
    const each = any.call(AbortSignal, signals)
    combined.push(each)
    return each
  }
  try {
    await work()
    return combined
  } finally {
    AbortSignal.any = any
  }
}

export const subscribing = (name: string, open: () => Promise<OpenEventStore>): void => {
  const subscribe = suite<OpenEventStore>(`${name}: subscribe`, { timeoutMs: 60_000 })
  subscribe.before(async (context) => Object.assign(context, await open()))
  subscribe.after(({ close }) => close())

  subscribe('delivers the log from its start, then new events', async ({ store }) => {
    const env_id = newId()
    await store.append(`s-${env_id}-1`, facts(env_id, 2), 'none')
    await store.append(`s-${env_id}-2`, facts(env_id, 1, 2), 'none')
    const all = gather((signal) => store.subscribe({ env_id, signal }))
    await until(() => all.items.at(-1)?.caughtUp)
    assert.equal(eventsOf(all.items).map(payloadOf), [0, 1, 2])
    await store.append(`s-${env_id}-1`, facts(env_id, 1, 3), 1)
    await until(() => eventsOf(all.items).length === 4)
    await all.stop()
    assert.equal(
      eventsOf(all.items).map(({ stream, revision }) => `${stream.at(-1)}@${revision}`),
      ['1@0', '1@1', '2@0', '1@2'],
    )
  })

  subscribe('leaves no listener when its caller stops reading, as following does', async ({ store }) => {
    const env_id = newId()
    const stream = `s-${env_id}`
    await store.append(stream, facts(env_id, 1), 'none')
    const { signal } = new AbortController() // of the node: it never aborts
    const combined = await combinedDuring(async () => {
      for await (const _ of store.subscribe({ env_id, signal })) break
      for await (const _ of store.follow(stream, { signal })) break
    })
    const listeners = [signal, ...combined].map((each) => getEventListeners(each, 'abort').length)
    assert.is(Math.max(...listeners), 0)
  })

  subscribe('begins after a cursor: an event, an append, a batch or the head', async ({ store }) => {
    const env_id = newId()
    const stream = `s-${env_id}`
    const head = await store.head()
    const { cursor } = await store.append(stream, facts(env_id, 4), 'none')
    const { cursor: end } = await store.append(stream, facts(env_id, 2, 4), 3)
    const after = async (cursor: string) => {
      const batches = gather((signal) => store.subscribe({ after: cursor, env_id, signal }))
      await until(() => batches.items.some((batch) => batch.caughtUp && batch.cursor >= end))
      await batches.stop()
      return batches.items
    }
    const whole = await after(head)
    assert.equal(eventsOf(whole).map(payloadOf), numbers(6))
    for (const event of eventsOf(whole)) {
      const rest = eventsOf(await after(event.cursor)).map(payloadOf)
      assert.equal(rest, numbers(5 - event.revision, event.revision + 1))
    }
    assert.equal(eventsOf(await after(cursor)).map(payloadOf), [4, 5])
    assert.equal(eventsOf(await after(whole.at(-1)?.cursor ?? '')), [])
    assert.equal(eventsOf(await after(await store.head())), [])
  })

  subscribe('keeps to types and environment', async ({ store }) => {
    const [env_id, other] = [newId(), newId()]
    const after = await store.head()
    await store.append(`s-${env_id}`, [streamFact(env_id), fact(env_id, 'mine')], 'none')
    const { cursor: end } = await store.append(
      `s-${other}`,
      [streamFact(other), fact(other, 'other')],
      'none',
    )
    const idsOf = async (filter: Pick<Parameters<typeof store.subscribe>[0], 'types' | 'env_id'>) => {
      const batches = gather((signal) => store.subscribe({ ...filter, after, signal }))
      await until(() => batches.items.some((batch) => batch.caughtUp && batch.cursor >= end))
      await batches.stop()
      const streams = [`s-${env_id}`, `s-${other}`]
      return eventsOf(batches.items).flatMap(({ stream, event }) =>
        streams.includes(stream) ? [event.type] : [],
      )
    }
    assert.equal(await idsOf({}), [
      'StreamCreated',
      'StreamDataEmitted',
      'StreamCreated',
      'StreamDataEmitted',
    ])
    assert.equal(await idsOf({ types: ['StreamCreated'] }), ['StreamCreated', 'StreamCreated'])
    assert.equal(await idsOf({ env_id }), ['StreamCreated', 'StreamDataEmitted'])
    assert.equal(await idsOf({ types: ['StreamDataEmitted', 'RunFailed'], env_id }), ['StreamDataEmitted'])
    assert.equal(await idsOf({ types: [], env_id }), [])
    assert.equal(await idsOf({ env_id: newId() }), [])
  })

  subscribe(
    'moves its cursor past events that do not match, and reports that it caught up',
    async ({ store }) => {
      const env_id = newId()
      const nothing = gather((signal) => store.subscribe({ env_id: newId(), signal }))
      const one = gather((signal) => store.subscribe({ env_id, types: ['StreamCreated'], signal }))
      for (const i of numbers(5)) {
        const { cursor } = await store.append(
          `s-${env_id}`,
          facts(env_id, 100),
          i === 0 ? 'none' : i * 100 - 1,
        )
        for (const { items } of [nothing, one]) {
          await until(() => items.some((batch) => batch.caughtUp && batch.cursor >= cursor))
        }
      }
      const { cursor } = await store.append(`s-${env_id}`, [streamFact(env_id)], 499)
      await until(() => one.items.some((batch) => batch.cursor >= cursor))
      await nothing.stop()
      await one.stop()
      assert.equal(eventsOf(nothing.items), [])
      assert.equal(
        eventsOf(one.items).map((event) => event.cursor),
        [cursor],
      )
      const cursors = one.items.map((batch) => batch.cursor)
      assert.equal(cursors.toSorted(), cursors)
    },
  )

  subscribe(
    'large facts come in small batches, from memory and from the log',
    alone(open, async ({ store, reopen }) => {
      const env_id = newId()
      const small = async (opened: EventStore) => {
        const all = gather((signal) => opened.subscribe({ env_id, signal }))
        await until(() => eventsOf(all.items).length === 64)
        await all.stop()
        areSmall(all.items, 64)
      }
      const live = gather((signal) => store.subscribe({ env_id, signal }))
      await until(() => live.items.at(-1)?.caughtUp)
      await appendLarge(store, env_id, 64)
      await until(() => eventsOf(live.items).length === 64)
      await live.stop()
      await small(store)
      await small(await reopen())
    }),
  )

  subscribe('a batch ends at its cursor: from there on nothing comes twice', async ({ store }) => {
    const env_id = newId()
    const after = await store.head()
    for (const i of numbers(40)) await store.append(`s-${env_id}-${i}`, facts(env_id, 50, i * 50), 'none')
    const seen: unknown[] = []
    let cursor = after
    while (seen.length < 2000) {
      for await (const batch of store.subscribe({
        after: cursor,
        env_id,
        signal: AbortSignal.timeout(20_000),
      })) {
        seen.push(...batch.events.map(payloadOf))
        cursor = batch.cursor
        if (batch.events.length > 0) break // the reader stops and continues with the cursor that it stored
      }
    }
    assert.equal(seen, numbers(2000))
  })

  subscribe(
    'thousands of events appended at once reach every reader once and in order, whenever it subscribed',
    async ({ store }) => {
      const env_id = newId()
      const streams = numbers(WRITERS).map((i) => `s-${env_id}-${i}`)
      const after = await store.head()
      const early = numbers(3).map(() => gather((signal) => store.subscribe({ after, env_id, signal })))
      const slow = gather(async function* (signal) {
        for await (const batch of store.subscribe({ after, signal })) {
          await new Promise(setImmediate)
          yield { ...batch, events: batch.events.filter(({ metadata }) => metadata.env_id === env_id) }
        }
      })
      let late: ReturnType<typeof gather<{ readonly events: readonly Recorded[] }>> | undefined
      const write = async (stream: string) => {
        for (let i = 0; i < EACH;) {
          const count = Math.min(1 + (i % 3), EACH - i)
          await store.append(stream, facts(env_id, count, i), i === 0 ? 'none' : i - 1)
          i += count
          if (i > EACH / 2) late ??= gather((signal) => store.subscribe({ after, env_id, signal }))
        }
      }
      await Promise.all(streams.map(write))
      for (const reader of [...early, slow, late]) {
        assert.ok(reader)
        await until(() => eventsOf(reader.items).length >= WRITERS * EACH, { timeoutMs: 30_000, everyMs: 20 })
        await reader.stop()
        isWhole(eventsOf(reader.items), streams, EACH)
      }
    },
  )

  subscribe(
    'continues from its cursor after reopening',
    alone(open, async ({ store, reopen }) => {
      const env_id = newId()
      const after = await store.head()
      await store.append(`s-${env_id}`, facts(env_id, 300), 'none')
      const before = gather((signal) => store.subscribe({ after, env_id, signal }))
      await until(() => eventsOf(before.items).length === 300)
      const later = await reopen()
      await before.ended
      await later.append(`s-${env_id}`, facts(env_id, 3, 300), 299)
      const cursor = before.items.at(-1)?.cursor ?? ''
      const rest = gather((signal) => later.subscribe({ after: cursor, env_id, signal }))
      const whole = gather((signal) => later.subscribe({ after, env_id, signal }))
      await until(() => eventsOf(rest.items).length === 3 && eventsOf(whole.items).length === 303)
      const middle = gather((signal) =>
        later.subscribe({ after: eventsOf(before.items)[99]?.cursor ?? '', env_id, signal }),
      )
      await until(() => eventsOf(middle.items).length >= 203)
      await rest.stop()
      await whole.stop()
      await middle.stop()
      assert.equal(eventsOf(middle.items).map(payloadOf), numbers(203, 100))
      assert.equal(eventsOf(rest.items).map(payloadOf), [300, 301, 302])
      assert.equal(eventsOf(whole.items).map(payloadOf), numbers(303))
    }),
  )

  subscribe('ends when it is aborted, busy or idle, and when its reader leaves', async ({ store }) => {
    const env_id = newId()
    await store.append(`s-${env_id}`, facts(env_id, 10), 'none')
    assert.equal(await Array.fromAsync(store.subscribe({ signal: AbortSignal.abort() })), [])
    const idle = numbers(50).map(() => gather((signal) => store.subscribe({ env_id, signal })))
    for (const { items } of idle) await until(() => items.at(-1)?.caughtUp)
    await Promise.all(idle.map((reader) => reader.stop()))
    const within = new AbortController()
    for await (const _ of store.subscribe({ env_id, signal: within.signal })) within.abort()
    for await (const { events } of store.subscribe({ env_id, signal: new AbortController().signal }))
      if (events.length > 0) break
  })

  subscribe(
    'ends when the store closes',
    alone(open, async ({ store }) => {
      const env_id = newId()
      await store.append(`s-${env_id}`, facts(env_id, 1), 'none')
      const readers = [
        gather((signal) => store.subscribe({ env_id, signal })),
        gather((signal) => store.follow(`s-${env_id}`, { signal })),
        gather((signal) => store.consume(newId(), { env_id, signal })),
      ]
      for (const { items } of readers) await until(() => items.length > 0)
      await store.close()
      for (const { ended } of readers) await ended.catch(() => {}) // an end or an error: it does not hang
    }),
  )

  subscribe.run()
}
