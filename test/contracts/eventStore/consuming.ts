import * as assert from 'uvu/assert'
import { newId } from '../../../src/ids.ts'
import type { Consuming, Delivery, EventStore } from '../../../src/ports/eventStore.ts'
import { suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'
import type { OpenEventStore } from '../eventStore.ts'
import { alone } from './alone.ts'
import { appendLarge, facts, numbers, payloadOf, streamFact } from './facts.ts'
import { eventsOf, gather } from './gather.ts'

const payloads = (deliveries: readonly Delivery[]): unknown[] =>
  deliveries.map(({ event }) => payloadOf(event))
const sorted = (values: readonly unknown[]): unknown[] => values.toSorted((a, b) => Number(a) - Number(b))

/** A group of its own for each test, over the events of an environment of its own. */
const groupOf = () => {
  const env_id = newId()
  const group = `g-${env_id}`
  const append = async (store: EventStore, count: number, from = 0) =>
    store.append(`c-${env_id}`, facts(env_id, count, from), from === 0 ? 'none' : from - 1)
  const join = (store: EventStore, options: Partial<Consuming> = {}) =>
    gather((signal) => store.consume(group, { env_id, types: ['StreamDataEmitted'], ...options, signal }))
  /** A consumer that acknowledges what it gets. */
  const joinAndAck = (store: EventStore, options: Partial<Consuming> = {}) =>
    gather(async function* (signal) {
      for await (const delivery of store.consume(group, {
        env_id,
        types: ['StreamDataEmitted'],
        ...options,
        signal,
      })) {
        delivery.ack()
        yield delivery
      }
    })
  /** Resolves when a reader of the log has met its end: what a consumer was to get is on its way. */
  const passed = async (store: EventStore) => {
    const head = await store.head()
    const reader = gather((signal) => store.subscribe({ env_id, signal }))
    await until(() => reader.items.some(({ cursor }) => cursor >= head))
    await reader.stop()
    return eventsOf(reader.items).length
  }
  return { env_id, group, append, join, joinAndAck, passed }
}

export const consuming = (name: string, open: () => Promise<OpenEventStore>): void => {
  const consume = suite<OpenEventStore>(`${name}: consume`, { timeoutMs: 60_000 })
  consume.before(async (context) => Object.assign(context, await open()))
  consume.after(({ close }) => close())

  consume('a new group begins at the start, or after a cursor', async ({ store }) => {
    const { append, joinAndAck, env_id } = groupOf()
    const { cursor } = await append(store, 5)
    await append(store, 3, 5)
    const whole = joinAndAck(store)
    const rest = gather((signal) => store.consume(newId(), { env_id, from: cursor, signal }))
    await until(() => whole.items.length === 8 && rest.items.length === 3)
    await append(store, 1, 8)
    await until(() => whole.items.length === 9 && rest.items.length === 4)
    await whole.stop()
    await rest.stop()
    assert.equal(sorted(payloads(whole.items)), numbers(9))
    assert.equal(sorted(payloads(rest.items)), numbers(4, 5))
  })

  consume('two consumers share the events: each goes to one of them', async ({ store }) => {
    const { append, joinAndAck } = groupOf()
    const both = [joinAndAck(store, { inFlight: 4 }), joinAndAck(store, { inFlight: 4 })]
    for (const i of numbers(25)) await append(store, 20, i * 20)
    const got = () => both.flatMap(({ items }) => payloads(items))
    await until(() => got().length >= 500)
    for (const consumer of both) await consumer.stop()
    assert.equal(sorted(got()), numbers(500))
    for (const { items } of both) assert.ok(items.length > 0)
  })

  consume('a consumer gets no further event while its memory is full', async ({ store }) => {
    const { env_id, join, passed } = groupOf()
    await appendLarge(store, env_id, 320)
    const lazy = join(store, { inFlight: 2048, inFlightBytes: 8 << 20 })
    await until(() => lazy.items.length >= 100)
    await passed(store)
    const { length } = lazy.items
    assert.ok((length - 1) * 60_000 < 8 << 20, `it got ${length} events of 60,000 characters`)
    for (const i of numbers(320)) {
      await until(() => lazy.items.length > i)
      lazy.items[i]?.ack()
    }
    await lazy.stop()
    assert.equal(sorted(payloads(lazy.items).map(Number)), numbers(320))
  })

  consume('a group that was dropped is new, and others keep their position', async ({ store }) => {
    const [dropped, kept] = [groupOf(), groupOf()]
    for (const { append, joinAndAck } of [dropped, kept]) {
      await append(store, 3)
      const first = joinAndAck(store)
      await until(() => first.items.length === 3)
      await first.stop()
    }
    await store.dropGroup(dropped.group)
    await store.dropGroup(dropped.group)
    await store.dropGroup(newId())
    const again = dropped.joinAndAck(store)
    await until(() => again.items.length === 3)
    await again.stop()
    await kept.append(store, 1, 3)
    const next = kept.joinAndAck(store)
    await until(() => payloads(next.items).includes(3))
    await next.stop()
  })

  consume('groups do not share', async ({ store }) => {
    const { append, joinAndAck, env_id } = groupOf()
    await append(store, 20)
    const one = joinAndAck(store)
    const other = gather((signal) => store.consume(newId(), { env_id, signal }))
    await until(() => one.items.length === 20 && other.items.length === 20)
    await one.stop()
    await other.stop()
  })

  consume('keeps to types and environment', async ({ store }) => {
    const { append, joinAndAck, env_id } = groupOf()
    const other = newId()
    await store.append(`c-${other}`, [streamFact(other), ...facts(other, 3)], 'none')
    await store.append(`c-${env_id}-2`, [streamFact(env_id)], 'none')
    await append(store, 2)
    const consumer = joinAndAck(store)
    await until(() => consumer.items.length >= 2)
    await consumer.stop()
    assert.equal(sorted(payloads(consumer.items)), [0, 1])
  })

  consume('waits for acknowledgements beyond the bound', async ({ store }) => {
    const { append, join, passed } = groupOf()
    await append(store, 10)
    const consumer = join(store, { inFlight: 3 })
    await until(() => consumer.items.length === 3)
    await append(store, 1, 10)
    assert.is(await passed(store), 11)
    assert.is(consumer.items.length, 3)
    for (const i of numbers(8)) {
      consumer.items[i]?.ack()
      await until(() => consumer.items.length === 4 + i)
      assert.is(await passed(store), 11)
      assert.is(consumer.items.length, 4 + i)
    }
    for (const { ack } of consumer.items) ack()
    await consumer.stop()
    assert.equal(sorted(payloads(consumer.items)), numbers(11))
  })

  consume('an event that a consumer did not acknowledge goes to another one', async ({ store }) => {
    const { append, join, joinAndAck } = groupOf()
    await append(store, 20)
    const leaving = join(store, { inFlight: 6 })
    await until(() => leaving.items.length === 6)
    const staying = joinAndAck(store)
    leaving.items[2]?.ack()
    const acked = payloads(leaving.items)[2]
    await leaving.stop()
    await until(() => new Set(payloads(staying.items)).size >= 19)
    await staying.stop()
    assert.equal(sorted([...new Set([...payloads(staying.items), acked])]), numbers(20))
  })

  consume('a consumer that breaks out has left', async ({ store }) => {
    const { append, joinAndAck, env_id, group } = groupOf()
    await append(store, 3)
    const { signal } = new AbortController()
    for await (const _ of store.consume(group, { env_id, types: ['StreamDataEmitted'], signal })) break
    const next = joinAndAck(store)
    await until(() => next.items.length === 3)
    await next.stop()
    assert.equal(sorted(payloads(next.items)), numbers(3))
  })

  consume('retry hands an event out again, an acknowledgement settles it', async ({ store }) => {
    const { append, join, passed } = groupOf()
    await append(store, 3)
    const consumer = join(store)
    await until(() => consumer.items.length === 3)
    const [first, second, third] = consumer.items
    first?.ack()
    second?.retry()
    third?.ack()
    third?.retry() // settled before: means nothing
    await until(() => consumer.items.length === 4)
    assert.is(payloads(consumer.items)[3], payloads(consumer.items)[1])
    second?.ack() // that delivery is over: the new one is not acknowledged by it
    consumer.items[3]?.retry()
    await until(() => consumer.items.length === 5)
    consumer.items[4]?.ack()
    await passed(store)
    await consumer.stop()
    assert.is(consumer.items.length, 5)
  })

  consume(
    'the position of a group survives reopening',
    alone(open, async ({ store, reopen }) => {
      const { append, joinAndAck } = groupOf()
      await append(store, 100)
      const before = joinAndAck(store)
      await until(() => before.items.length === 100)
      const later = await reopen()
      await append(later, 2, 100)
      const after = joinAndAck(later)
      await until(() => after.items.length >= 2)
      await after.stop()
      assert.equal(sorted(payloads(after.items)), [100, 101])
    }),
  )

  consume(
    'acknowledged out of order, nothing unacknowledged is skipped',
    alone(open, async ({ store, reopen }) => {
      const { append, join, joinAndAck } = groupOf()
      await append(store, 30)
      const before = join(store)
      await until(() => before.items.length === 30)
      for (const { event, ack } of before.items.toReversed()) if (event.revision % 7 !== 3) ack()
      const later = await reopen() // with the consumer still there, as a process that dies would leave it
      await before.ended.catch(() => {})
      const after = joinAndAck(later)
      const missing = [3, 10, 17, 24]
      await until(() => missing.every((number) => payloads(after.items).includes(number)))
      await after.stop()
    }),
  )

  consume(
    'acknowledging after the end is no error',
    alone(open, async ({ store, reopen }) => {
      const { append, join } = groupOf()
      await append(store, 2)
      const consumer = join(store)
      await until(() => consumer.items.length === 2)
      await consumer.stop()
      consumer.items[0]?.ack()
      await reopen()
      consumer.items[1]?.ack()
      consumer.items[1]?.retry()
    }),
  )

  consume('consumers that come and go lose nothing', async ({ store }) => {
    const { append, env_id, group } = groupOf()
    const done = new Set<unknown>()
    const over = new AbortController()
    const visit = async (turn: number) => {
      while (!over.signal.aborted) {
        let taken = 0
        const options = { env_id, types: ['StreamDataEmitted'] as const, inFlight: 8, signal: over.signal }
        for await (const { event, ack, retry } of store.consume(group, options)) {
          taken++
          if ((event.revision + taken) % 5 === 0) {
            retry()
            continue
          }
          done.add(payloadOf(event))
          ack()
          if (taken % (20 + turn) === 0) break
        }
      }
    }
    const visitors = numbers(3).map(visit)
    for (const i of numbers(20)) await append(store, 50, i * 50)
    await until(() => done.size === 1000, { timeoutMs: 30_000 })
    over.abort()
    await Promise.all(visitors)
    assert.equal(sorted([...done]), numbers(1000))
  })

  consume.run()
}
