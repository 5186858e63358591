import * as assert from 'uvu/assert'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import { openEventStoreDb } from '../../src/adapters/eventstoredb/index.ts'
import { EnvFeeds, type FeedClient } from '../../src/api/streams/envFeed.ts'
import type { Cursor } from '../../src/events/event.ts'
import { newId } from '../../src/ids.ts'
import { silent } from '../../src/logger.ts'
import { startStandIn } from '../support/eventstoredb/index.ts'
import { Log } from '../support/eventstoredb/log.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const env_id = newId()

/** A client that keeps the ids of its events. */
const clientOf = (gone: AbortSignal) => {
  const ids: Cursor[] = []
  const take = (bytes: Buffer) =>
    void ids.push(...[...bytes.toString().matchAll(/^id: (.+)$/gm)].map(([, id]) => id ?? ''))
  const client: FeedClient = { gone, push: take, write: take, flushed: () => Promise.resolve() }
  return { client, ids }
}

/** Two nodes on one log; the second one hears of nothing until `heal`. */
const twoNodes = async () => {
  const log = new Log()
  const [one, two] = [await startStandIn({ log }), await startStandIn({ log })]
  const [ahead, behind] = [await openEventStoreDb(one.url), await openEventStoreDb(two.url)]
  const ended = new AbortController()
  two.misbehave.silence('subscriptions')
  for await (const _ of behind.subscribe({ signal: ended.signal })) break // from now on the node has its place in the log
  const append = async (n: number): Promise<Cursor> => {
    const stream_id = newId()
    const event = { type: 'StreamCreated', stream_id } as const
    const metadata = { env_id, correlation_id: `${n}` }
    return (await ahead.append(`stream-${stream_id}`, [{ id: newId(), event, metadata }], 'none')).cursor
  }
  const appendMany = async (count: number): Promise<Cursor[]> => {
    const cursors: Cursor[] = []
    for (let n = 0; n < count; n++) cursors.push(await append(n))
    return cursors
  }
  return {
    feeds: new EnvFeeds(behind, { signal: ended.signal, logger: silent }),
    appendMany,
    gone: ended.signal,
    heal: () => two.misbehave.heal(),
    close: async () => {
      ended.abort()
      for (const store of [ahead, behind]) await store.close()
      for (const node of [one, two]) {
        node.misbehave.heal()
        await node.stop()
      }
    },
  }
}

const feed = suite('the stream of an environment, on a node that is behind another one')

for (const [what, first] of [
  ['when it is the first client there', false],
  ['beside clients that are behind', true],
] as const)
  feed(`delivers no event again to a client that the other node served, ${what} (I5)`, async () => {
    const nodes = await twoNodes()
    const before = clientOf(nodes.gone)
    if (first) await Promise.race([nodes.feeds.serve(before.client, env_id, ''), until(() => true)])
    const seen = await nodes.appendMany(5)
    const { client, ids } = clientOf(nodes.gone)
    void nodes.feeds.serve(client, env_id, seen.at(-1) ?? '')
    const unseen = await nodes.appendMany(2)
    nodes.heal()
    const later = await nodes.appendMany(3)
    await until(() => ids.includes(later.at(-1) ?? ''), { timeoutMs: 15_000 })
    assert.equal(ids, [...unseen, ...later])
    if (first) {
      await until(() => before.ids.length === 10, { timeoutMs: 15_000 })
      assert.equal(before.ids, [...seen, ...unseen, ...later])
    }
    await nodes.close()
  })

const slow = suite('the stream of an environment, for a client that reads a long past')

slow('continues live, although the node had no other client meanwhile (I5)', async () => {
  const store = openEventStore({ dir: tempDir() })
  const ended = new AbortController()
  const background = { signal: ended.signal, logger: silent }
  const feeds = new EnvFeeds(store, background, { idleMs: 1 })
  const append = async (): Promise<Cursor> => {
    const stream_id = newId()
    const event = { type: 'StreamCreated', stream_id } as const
    const metadata = { env_id, correlation_id: stream_id }
    return (await store.append(`stream-${stream_id}`, [{ id: newId(), event, metadata }], 'none')).cursor
  }
  const past = [await append(), await append()]
  const { client, ids } = clientOf(ended.signal)
  let looks = 0
  const flushed = async () => void (await until(() => ++looks % 20 === 0)) // many times the idle time
  void feeds.serve({ ...client, flushed }, env_id, '')
  await until(() => ids.length === past.length)
  const live = await append()
  await until(() => ids.length > past.length, { timeoutMs: 10_000 })
  assert.equal(ids, [...past, live])
  ended.abort()
  await store.close()
})

const leaving = suite('the stream of an environment, for a client that leaves while it begins')

leaving('is not kept open for it', async () => {
  const store = openEventStore({ dir: tempDir() })
  const subscribe = store.subscribe.bind(store)
  const readers: AbortSignal[] = []
  store.subscribe = (options) => {
    readers.push(options.signal)
    return subscribe(options)
  }
  const [ended, gone] = [new AbortController(), new AbortController()]
  const feeds = new EnvFeeds(store, { signal: ended.signal, logger: silent }, { idleMs: 1 })
  const served = feeds.serve(clientOf(gone.signal).client, env_id, '')
  gone.abort() // the store has not yet returned where the feed begins
  await served
  await until(() => readers.length > 0 && readers.every(({ aborted }) => aborted))
  ended.abort()
  await store.close()
})

feed.run()
slow.run()
leaving.run()
