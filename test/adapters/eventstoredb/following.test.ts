import * as assert from 'uvu/assert'
import { newId } from '../../../src/ids.ts'
import { fact, facts, numbers, payloadOf } from '../../contracts/eventStore/facts.ts'
import { eventsOf, gather } from '../../contracts/eventStore/gather.ts'
import { openSurely } from '../../contracts/eventStore/openEventStoreDb.ts'
import { startStandIn } from '../../support/eventstoredb/index.ts'
import { Log } from '../../support/eventstoredb/log.ts'
import { suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'
import { alone, type Opened, readersOf } from './harness.ts'

/** Three readers get all events from before and after `trouble`; those of the log and the stream get each event once. */
const survives = (trouble: (opened: Opened) => Promise<void> | void) =>
  alone(async (opened) => {
    const { store } = opened
    const stream = `f-${newId()}`
    const readers = readersOf(store, stream)
    let count = 0
    const append = async (more: number) => {
      const added = facts(stream, more, count)
      await until(() => store.append(stream, added, count === 0 ? 'none' : count - 1))
      count += more
      for (const seen of [readers.log, readers.own, readers.group]) {
        await until(() => seen().length >= count, { timeoutMs: 15_000 })
      }
    }
    await append(5)
    for (const _ of numbers(3)) {
      await trouble(opened)
      await append(5)
    }
    assert.equal(readers.log(), numbers(count))
    assert.equal(readers.own(), numbers(count))
    assert.equal(readers.group(), numbers(count))
    await readers.stop()
  })

const follow = suite('EventStoreDB adapter: readers of a failing server', { timeoutMs: 60_000 })

follow(
  'survive a kill and restart of the server',
  survives(async ({ standIn }) => {
    await standIn.stop()
    await standIn.restart()
  }),
)
follow(
  'survive subscriptions that end without an error',
  survives(({ standIn }) => standIn.misbehave.endSubscriptions()),
)
follow(
  'survive reads that end too early',
  survives(({ standIn }) => void standIn.misbehave.cutReads(2, { times: 3 })),
)
follow(
  'survive groups without a stored checkpoint',
  survives(async ({ standIn }) => {
    standIn.misbehave.holdCheckpoints()
    await standIn.stop()
    await standIn.restart()
  }),
)
follow(
  'survive a server that refuses calls while it starts',
  survives(async ({ standIn, store }) => {
    standIn.misbehave.notReady()
    standIn.misbehave.endSubscriptions()
    await until(async () => (await store.head().catch(() => null)) === null)
    standIn.misbehave.heal()
  }),
)

follow(
  'a reader that was behind when the server died continues at its position',
  alone(async ({ standIn, store }) => {
    const stream = `f-${newId()}`
    for (const i of numbers(40))
      await store.append(stream, facts(stream, 100, i * 100), i === 0 ? 'none' : i * 100 - 1)
    const reader = gather(async function* (signal) {
      for await (const batch of store.subscribe({ env_id: stream, signal })) {
        yield batch
        if (batch.events.length > 0 && seen() > 1000 && !killed) {
          killed = true
          await standIn.stop()
          await standIn.restart()
        }
      }
    })
    let killed = false
    const seen = () => eventsOf(reader.items).length
    await until(() => seen() >= 4000, { timeoutMs: 20_000 })
    await reader.stop()
    assert.ok(killed)
    assert.equal(eventsOf(reader.items).map(payloadOf), numbers(4000))
  }),
)

follow(
  'a read of a quiet stream that ends too early is continued',
  alone(async ({ standIn, store }) => {
    const stream = `f-${newId()}`
    await store.append(stream, facts(stream, 5), 'none')
    const { cursor } = await store.append(`${stream}-2`, facts(stream, 5, 5), 'none')
    const before = gather((signal) => store.subscribe({ signal }))
    await until(() => before.items.some((batch) => batch.cursor >= cursor))
    await before.stop()
    const struck = standIn.misbehave.cutReads(2, { times: 2 })
    const reader = gather((signal) => store.follow(stream, { signal }))
    await until(() => eventsOf(reader.items).length === 5)
    await reader.stop()
    assert.is(struck.times, 2)
  }),
)

/** A cluster of two nodes with one log; `leads` makes one of them the leader. */
const withCluster =
  (
    test: (nodes: {
      one: Opened['standIn']
      two: Opened['standIn']
      leads: (leader: 'one' | 'two') => void
      store: Opened['store']
    }) => Promise<void>,
  ) =>
  async (): Promise<void> => {
    const log = new Log()
    const [one, two] = [await startStandIn({ log }), await startStandIn({ log })]
    const leads = (leader: 'one' | 'two') => {
      const [first, second] = leader === 'one' ? [one, two] : [two, one]
      first.misbehave.heal()
      second.misbehave.follow(first)
    }
    leads('one')
    const store = await openSurely(`esdb://127.0.0.1:${one.port},127.0.0.1:${two.port}?tls=false`)
    try {
      await test({ one, two, leads, store })
    } finally {
      await store.close()
      for (const node of [one, two]) {
        node.misbehave.heal()
        await node.stop()
      }
    }
  }

follow(
  'readers and writers continue at the new leader when a leader steps down',
  withCluster(async ({ leads, store }) => {
    const stream = `f-${newId()}`
    const readers = readersOf(store, stream)
    for (const [i, leader] of (['one', 'two', 'one', 'two'] as const).entries()) {
      leads(leader)
      const one = fact(stream, i)
      await until(() => store.append(stream, [one], i === 0 ? 'none' : i - 1))
      for (const seen of [readers.log, readers.own, readers.group]) {
        await until(() => seen().length > i, { timeoutMs: 15_000 })
      }
    }
    assert.equal(readers.log(), numbers(4))
    assert.equal(readers.own(), numbers(4))
    await readers.stop()
  }),
)

follow(
  'the new leader is found even if the paused leader keeps its connections',
  withCluster(async ({ one, two, store }) => {
    const stream = `f-${newId()}`
    const readers = readersOf(store, stream)
    await store.append(stream, [fact(stream, 0)], 'none')
    await until(
      () => readers.log().length === 1 && readers.own().length === 1 && readers.group().length === 1,
    )
    one.misbehave.silence('appends', 'reads', 'subscriptions', 'groups', 'gossip', 'features')
    two.misbehave.heal()
    const next = fact(stream, 1)
    await until(() => store.append(stream, [next], 0), { timeoutMs: 20_000 })
    for (const seen of [readers.log, readers.own, readers.group]) {
      await until(() => seen().length >= 2, { timeoutMs: 20_000 })
    }
    assert.equal(readers.log(), [0, 1])
    await readers.stop()
  }),
)

follow('a first append while no node can be found does not spoil the later ones', async () => {
  const log = new Log()
  const [one, two] = [await startStandIn({ log }), await startStandIn({ log })]
  const store = await openSurely(`esdb://127.0.0.1:${one.port},127.0.0.1:${two.port}?tls=false`)
  try {
    await one.stop()
    await two.stop()
    const stream = `f-${newId()}`
    const early = store.append(stream, [fact(stream, 0)], 'none').catch(() => null)
    const group = gather((signal) => store.consume(newId(), { env_id: stream, signal }))
    await early
    await one.restart()
    await two.restart()
    const later = fact(stream, 1)
    await until(() => store.append(stream, [later], 'none'))
    await until(() => group.items.length > 0)
    await group.stop()
  } finally {
    await store.close()
    await one.stop()
    await two.stop()
  }
})

follow.run()
