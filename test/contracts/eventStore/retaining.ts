import * as assert from 'uvu/assert'
import type { Recorded } from '../../../src/events/event.ts'
import { newId } from '../../../src/ids.ts'
import type { EventStore } from '../../../src/ports/eventStore.ts'
import { suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'
import type { OpenEventStore } from '../eventStore.ts'
import { alone } from './alone.ts'
import { facts, failureOf, numbers, payloadOf } from './facts.ts'
import { eventsOf, gather } from './gather.ts'

const payloadsIn = async (store: EventStore, stream: string): Promise<unknown[]> =>
  (await Array.fromAsync(store.read(stream))).map(payloadOf)

const expireAll = async (store: EventStore, ...streams: readonly string[]): Promise<void> => {
  for (const stream of streams) await store.expire(stream, 1)
  for (const stream of streams) await until(() => store.isExpired(stream))
}

const inLog = async (store: EventStore, env_id: string, count: number): Promise<Recorded[]> => {
  const reader = gather((signal) => store.subscribe({ env_id, signal }))
  await until(() => eventsOf(reader.items).length >= count)
  await reader.stop()
  return eventsOf(reader.items)
}

export const retaining = (name: string, open: () => Promise<OpenEventStore>): void => {
  const retain = suite(`${name}: retain`)

  /** Each rule is true of a store that has expired events, and after they were removed. */
  const rule = (
    sentence: string,
    test: (opened: OpenEventStore, scavenge: () => Promise<unknown>) => Promise<void>,
  ) => {
    for (const removes of [false, true])
      retain(
        removes ? `${sentence}, when they were removed` : sentence,
        alone(open, (opened) =>
          test(opened, async () => (removes ? await opened.store.scavenge?.() : undefined)),
        ),
      )
  }

  rule(
    'a stream loses expired events, keeps its revisions, and accepts new events',
    async ({ store }, scavenge) => {
      const [stream, other] = [`e-${newId()}`, `e-${newId()}`]
      await store.append(stream, facts(stream, 3), 'none')
      await store.append(other, facts(other, 3), 'none')
      await expireAll(store, stream)
      await scavenge()
      assert.equal(await payloadsIn(store, stream), [])
      const again = await failureOf(store.append(stream, facts(stream, 1), 'none'))
      assert.equal((again as { data?: unknown }).data, { stream, expected: 'none', actual: 2 })
      assert.is((await store.append(stream, facts(stream, 1, 3), 2)).revision, 3)
      await store.expire(stream, 1000)
      assert.is(await store.isExpired(stream), false)
      assert.is((await Array.fromAsync(store.read(stream, { from: 3 })))[0]?.revision, 3)
      assert.equal(await payloadsIn(store, other), [0, 1, 2])
    },
  )

  rule('a stream whose retention was taken back keeps its events', async ({ store }, scavenge) => {
    const [stream, other] = [`e-${newId()}`, `e-${newId()}`]
    for (const each of [stream, other]) {
      await store.append(each, facts(each, 3), 'none')
      await store.expire(each, 2)
    }
    await store.expire(stream, null)
    await until(() => store.isExpired(other))
    await scavenge()
    assert.equal(await payloadsIn(store, stream), [0, 1, 2])
  })

  rule('expired events stay absent after a restart', async ({ store, reopen }, scavenge) => {
    const [stream, other] = [`e-${newId()}`, `e-${newId()}`]
    for (const each of [stream, other]) await store.append(each, facts(each, 3), 'none')
    await expireAll(store, stream)
    await scavenge()
    const later = await reopen()
    assert.is(await later.isExpired(stream), true)
    assert.equal(await payloadsIn(later, stream), [])
    assert.is((await later.append(stream, facts(stream, 1, 3), 2)).revision, 3)
    assert.equal(await payloadsIn(later, other), [0, 1, 2])
  })

  rule('a follower of a stream gets every event that has not expired', async ({ store }, scavenge) => {
    const stream = `e-${newId()}`
    await store.append(stream, facts(stream, 3), 'none')
    await expireAll(store, stream)
    await scavenge()
    const follower = gather((signal) => store.follow(stream, { signal }))
    await until(() => follower.items.some(({ caughtUp }) => caughtUp))
    await store.expire(stream, 1000)
    await store.append(stream, facts(stream, 2, 3), 2)
    await until(() => eventsOf(follower.items).some((event) => payloadOf(event) === 4))
    await follower.stop()
    assert.equal(
      eventsOf(follower.items)
        .map(({ revision }) => revision)
        .slice(-2),
      [3, 4],
    )
  })

  rule(
    'cursors stay valid, and a reader after any of them gets every later event',
    async ({ store }, scavenge) => {
      const env_id = newId()
      const [kept, lost] = [`k-${env_id}`, `l-${env_id}`]
      for (let n = 0; n < 10; n++) {
        await store.append(kept, facts(env_id, 1, n), n === 0 ? 'none' : n - 1)
        await store.append(lost, facts(env_id, 2, 100), n === 0 ? 'none' : 2 * n - 1)
      }
      const all = await inLog(store, env_id, 30)
      await expireAll(store, lost)
      await scavenge()
      const [head] = await Promise.all([store.head(), store.append(kept, facts(env_id, 1, 10), 9)])
      assert.ok(head >= (all.at(-1)?.cursor ?? ''))
      for (const [i, { cursor }] of all.entries()) {
        const reader = gather((signal) => store.subscribe({ env_id, after: cursor, signal }))
        const ofKept = () => eventsOf(reader.items).filter(({ stream }) => stream === kept)
        await until(() => ofKept().some((event) => payloadOf(event) === 10))
        await reader.stop()
        const before = all.slice(0, i + 1).filter(({ stream }) => stream === kept).length
        assert.equal(ofKept().map(payloadOf), numbers(11 - before, before))
        const cursors = all.filter(({ stream }) => stream === kept).map((event) => event.cursor)
        assert.equal(
          ofKept()
            .slice(0, -1)
            .map((event) => event.cursor),
          cursors.slice(before),
        )
      }
    },
  )

  rule('a stream with events and no retention has not expired', async ({ store }, scavenge) => {
    const [stream, other] = [`e-${newId()}`, `e-${newId()}`]
    assert.is(await store.isExpired(stream), false)
    await store.append(other, facts(other, 1), 'none')
    await store.append(stream, facts(stream, 1), 'none')
    await expireAll(store, other)
    await scavenge()
    assert.is(await store.isExpired(stream), false)
  })

  retain.run()
}
