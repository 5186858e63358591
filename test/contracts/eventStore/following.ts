import * as assert from 'uvu/assert'
import { newId } from '../../../src/ids.ts'
import type { StreamBatch } from '../../../src/ports/eventStore.ts'
import { suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'
import type { OpenEventStore } from '../eventStore.ts'
import { alone } from './alone.ts'
import { appendLarge, areSmall, fact, facts, numbers, payloadOf } from './facts.ts'
import { eventsOf, gather } from './gather.ts'

export const following = (name: string, open: () => Promise<OpenEventStore>): void => {
  const follow = suite<OpenEventStore>(`${name}: follow`)
  follow.before(async (context) => Object.assign(context, await open()))
  follow.after(({ close }) => close())

  follow('delivers a stream from its start, then new events', async ({ store }) => {
    const stream = `f-${newId()}`
    await store.append(stream, facts(stream, 3), 'none')
    const following = gather((signal) => store.follow(stream, { signal }))
    await until(() => following.items.at(-1)?.caughtUp)
    assert.equal(eventsOf(following.items).map(payloadOf), [0, 1, 2])
    await store.append(stream, facts(stream, 2, 3), 2)
    await until(() => eventsOf(following.items).length === 5)
    await following.stop()
    assert.equal(eventsOf(following.items), await Array.fromAsync(store.read(stream)))
  })

  follow('begins after a revision', async ({ store }) => {
    const stream = `f-${newId()}`
    await store.append(stream, facts(stream, 5), 'none')
    for (const [after, first] of [
      [-1, 0],
      [0, 1],
      [2, 3],
      [4, 5],
    ] as const) {
      const following = gather((signal) => store.follow(stream, { after, signal }))
      await until(() => following.items.at(-1)?.caughtUp)
      await following.stop()
      assert.equal(eventsOf(following.items).map(payloadOf), numbers(5 - first, first))
    }
  })

  follow('a stream that comes later, and no other one', async ({ store }) => {
    const stream = `f-${newId()}`
    const following = gather((signal) => store.follow(stream, { signal }))
    await until(() => following.items.at(-1)?.caughtUp)
    await store.append(`${stream}x`, facts(stream, 2), 'none')
    await store.append(stream.slice(0, -1), facts(stream, 2), 'none')
    await store.append(stream, [fact(stream, 'mine')], 'none')
    await until(() => eventsOf(following.items).length > 0)
    await following.stop()
    assert.equal(eventsOf(following.items).map(payloadOf), ['mine'])
  })

  follow('reports each time that it caught up, however long the stream is', async ({ store }) => {
    const stream = `f-${newId()}`
    for (const length of [512, 1024, 1536, 2048, 2560]) {
      await store.append(stream, facts(stream, 512, length - 512), length === 512 ? 'none' : length - 513)
      const following = gather((signal) => store.follow(stream, { signal }))
      await until(() => following.items.at(-1)?.caughtUp)
      assert.equal(eventsOf(following.items).map(payloadOf), numbers(length))
      const first = following.items.findIndex(({ caughtUp }) => caughtUp)
      assert.is(eventsOf(following.items.slice(0, first + 1)).length, length)
      const told = following.items.length
      await store.append(`${stream}-${length}`, facts(stream, 1), 'none')
      await until(() => following.items.at(-1)?.caughtUp)
      assert.is(following.items.length, told)
      await following.stop()
    }
    const live = gather((signal) => store.follow(stream, { after: 2559, signal }))
    for (const i of numbers(3, 2560)) {
      await store.append(stream, [fact(stream, i)], i - 1)
      await until(() => eventsOf(live.items).at(-1)?.revision === i && live.items.at(-1)?.caughtUp)
    }
    await live.stop()
  })

  follow('large facts in small batches, whether they are old or come while it is slow', async ({ store }) => {
    const stream = `f-${newId()}`
    await appendLarge(store, stream, 64)
    const quick = gather((signal) => store.follow(stream, { signal }))
    const seen: StreamBatch[] = []
    let isLive = false
    for await (const batch of store.follow(stream, { signal: new AbortController().signal })) {
      seen.push(batch)
      if (eventsOf(seen).length === 128) break
      if (isLive || !batch.caughtUp) continue
      isLive = true
      await appendLarge(store, stream, 64, 64)
      await until(() => eventsOf(quick.items).length === 128)
    }
    await quick.stop()
    areSmall(seen, 128)
  })

  follow('many at once, while others append: every event once, in order', async ({ store }) => {
    const stream = `f-${newId()}`
    const followers = numbers(8).map(() => gather((signal) => store.follow(stream, { signal })))
    /** Repeated where a slow machine exceeds the time limit of an append, which then may be stored or not. */
    const append = (i: number) => {
      const one = fact(stream, i)
      return until(() => store.append(stream, [one], i === 0 ? 'none' : i - 1), { everyMs: 100 })
    }
    await Promise.all(numbers(300).map(append))
    for (const { items } of followers) await until(() => eventsOf(items).length >= 300)
    for (const follower of followers) {
      await follower.stop()
      assert.equal(eventsOf(follower.items).map(payloadOf), numbers(300))
    }
  })

  follow(
    'every event that it reports is durable',
    alone(open, async ({ store, reopen }) => {
      const stream = `f-${newId()}`
      const following = gather((signal) => store.follow(stream, { signal }))
      await until(() => following.items.at(-1)?.caughtUp)
      const appends = Promise.allSettled(
        numbers(50).map((i) => store.append(stream, [fact(stream, i)], i === 0 ? 'none' : i - 1)),
      )
      await until(() => eventsOf(following.items).length > 0)
      const later = await reopen()
      await following.ended
      await appends
      const seen = eventsOf(following.items)
      assert.equal((await Array.fromAsync(later.read(stream))).slice(0, seen.length), seen)
    }),
  )

  follow('ends when aborted, before, between and within batches', async ({ store }) => {
    const stream = `f-${newId()}`
    await store.append(stream, facts(stream, 5), 'none')
    assert.equal(await Array.fromAsync(store.follow(stream, { signal: AbortSignal.abort() })), [])
    const idle = gather((signal) => store.follow(`f-${newId()}`, { signal }))
    await until(() => idle.items.at(-1)?.caughtUp)
    await idle.stop()
    const within = new AbortController()
    for await (const _ of store.follow(stream, { signal: within.signal })) within.abort()
  })

  follow.run()
}
