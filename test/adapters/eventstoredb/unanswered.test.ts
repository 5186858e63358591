import {
  type EventStoreDBClient,
  persistentSubscriptionToAllSettingsFromDefaults,
  START,
} from '@eventstore/db-client'
import * as assert from 'uvu/assert'
import { openEventStoreDb } from '../../../src/adapters/eventstoredb/index.ts'
import { clock } from '../../../src/clock.ts'
import { isAppError } from '../../../src/errors.ts'
import { newId } from '../../../src/ids.ts'
import { fact, failureOf, numbers, payloadOf } from '../../contracts/eventStore/facts.ts'
import { gather } from '../../contracts/eventStore/gather.ts'
import { openSurely } from '../../contracts/eventStore/openEventStoreDb.ts'
import { clientOf } from '../../support/eventstoredb/client.ts'
import { startStandIn } from '../../support/eventstoredb/index.ts'
import { Log } from '../../support/eventstoredb/log.ts'
import type { Call, CallFault } from '../../support/eventstoredb/misbehaviour.ts'
import { suite } from '../../support/suite.ts'
import { together } from '../../support/together.ts'
import { until } from '../../support/until.ts'
import { alone, appendOne, type Opened, readersOf } from './harness.ts'
import { unhandledDuring } from '../../support/unhandled.ts'

const PATIENT = { timeoutMs: 30_000 }

const unanswered = suite('EventStoreDB adapter: calls that a node accepts and does not serve', {
  timeoutMs: 60_000,
})
const unansweredTogether = together(unanswered)

/** Readers of every kind get an event from before and from after a restart during which calls fail. */
const survives = (kind: Call, fault: CallFault) =>
  alone(async ({ standIn, store }: Opened) => {
    const stream = `u-${newId()}`
    const readers = readersOf(store, stream)
    const seen = async (count: number) => {
      for (const reader of [readers.log, readers.own, readers.group])
        await until(() => reader().length >= count, PATIENT)
    }
    await store.append(stream, [fact(stream, 0)], 'none')
    await seen(1)
    await standIn.stop()
    const struck = standIn.misbehave.calls(kind, fault)
    await standIn.restart()
    const one = fact(stream, 1)
    await until(() => store.append(stream, [one], 0), PATIENT)
    await seen(2)
    assert.is(struck.times, 1)
    assert.equal(readers.log(), [0, 1])
    assert.equal(readers.own(), [0, 1])
    assert.equal(readers.group(), [0, 1])
    await readers.stop()
  })

const faulty: readonly [Call, string][] = [
  ['subscription', 'a subscription'],
  ['consumer', 'a consumer of a group'],
  ['group', 'a question about a group'],
  ['append', 'the call for appends'],
]
for (const [kind, what] of faulty) {
  unansweredTogether(`${what} that is never answered is begun again`, survives(kind, 'unanswered'))
  unansweredTogether(`${what} that is refused as not ready is begun again`, survives(kind, 'not ready'))
  if (kind !== 'group')
    unansweredTogether(`${what} that ends without an error is begun again`, survives(kind, 'ended'))
}

unansweredTogether(
  'a read that is never answered is refused in bounded time, and the next one is served',
  alone(async ({ standIn, store }) => {
    standIn.misbehave.calls('read', 'unanswered')
    assert.ok(isAppError(await failureOf(store.head()), 'unavailable'))
    await store.head()
  }),
)

unansweredTogether('a server that never replies about its features is unavailable at the start', async () => {
  const standIn = await startStandIn()
  standIn.misbehave.calls('features', 'unanswered')
  assert.ok(isAppError(await failureOf(openEventStoreDb(standIn.url)), 'unavailable'))
  await (await openSurely(standIn.url)).close()
  await standIn.stop()
})

unansweredTogether(
  'a new group does not wait for the features of the server, which are known since the start',
  alone(async ({ standIn, store }) => {
    await standIn.stop()
    const struck = standIn.misbehave.calls('features', 'unanswered', { times: 10 })
    await standIn.restart()
    const stream = `u-${newId()}`
    await until(() => appendOne(store, 0, stream), PATIENT)
    const group = gather((signal) => store.consume(newId(), { env_id: stream, signal }))
    await until(() => group.items.length === 1, PATIENT)
    assert.is(struck.times, 0)
    await group.stop()
  }),
)

unansweredTogether(
  'a group that cannot be created in time is created later',
  alone(async ({ standIn, store }) => {
    const stream = `u-${newId()}`
    await store.append(stream, [fact(stream, 0)], 'none')
    const struck = standIn.misbehave.calls('group', 'unanswered', { times: 2 })
    const group = gather((signal) => store.consume(newId(), { env_id: stream, signal }))
    await until(() => group.items.length === 1, PATIENT)
    assert.is(struck.times, 2)
    await group.stop()
  }),
)

unansweredTogether(
  'a consumer that its server has forgotten joins again',
  alone(async ({ standIn, store }) => {
    const stream = `u-${newId()}`
    const begin = () =>
      gather(async function* (signal) {
        for await (const delivery of store.consume('forgetful', { env_id: stream, signal })) {
          yield payloadOf(delivery.event)
          delivery.ack()
        }
      })
    const group = begin()
    for (const i of numbers(3)) {
      await store.append(stream, [fact(stream, i)], i === 0 ? 'none' : i - 1)
      await until(() => group.items.includes(i), PATIENT)
      standIn.misbehave.forgetConsumers()
    }
    await store.append(stream, [fact(stream, 3)], 2)
    await until(() => group.items.includes(3), PATIENT)
    await group.stop()
  }),
)

unansweredTogether(
  'a consumer that got events again after their timeout, and that its server then forgets, joins again',
  alone(async ({ standIn, store }) => {
    const client = clientOf(standIn.url)
    const short = persistentSubscriptionToAllSettingsFromDefaults({
      startFrom: START,
      messageTimeout: 100,
      maxRetryCount: 1000,
    })
    await client.createPersistentSubscriptionToAll('again', short)
    const stream = `u-${newId()}`
    const inFlight = 3
    const group = gather((signal) => store.consume('again', { env_id: stream, inFlight, signal }))
    await appendOne(store, 0, stream)
    await until(() => group.items.length > inFlight, PATIENT) // none is acknowledged yet
    await until(async () => {
      group.items.at(-1)?.ack() // a consumer keeps the last delivery of an event
      return (await held(client)) === 0
    }, PATIENT)
    standIn.misbehave.forgetConsumers()
    await store.append(stream, [fact(stream, 1)], 0)
    await until(() => group.items.some(({ event }) => payloadOf(event) === 1), PATIENT)
    await group.stop()
    await client.dispose()
  }),
)

/** The deliveries of the group `again` without an acknowledgement, as its server counts them. */
const held = async (client: EventStoreDBClient): Promise<number> => {
  const { connections } = await client.getPersistentSubscriptionToAllInfo('again')
  return connections.reduce((sum, { inFlightMessages }) => sum + inFlightMessages, 0)
}

/** The consumers of a group that have joined; 0 if there is no such group yet. */
const joined = (client: EventStoreDBClient, group: string): Promise<number> =>
  client.getPersistentSubscriptionToAllInfo(group).then(
    ({ connections }) => connections.length,
    () => 0,
  )

/** Longer than the silence after which a consumer asks the server, and shorter than the one after which it joins again. */
const SILENCE_MS = 9000

unansweredTogether(
  'a consumer without room, one without events and one whose events go to others do not join again',
  alone(async ({ standIn, store }) => {
    const other = await openSurely(standIn.url)
    const client = clientOf(standIn.url)
    const stream = `u-${newId()}`
    const full = gather((signal) => store.consume('full', { env_id: stream, inFlight: 1, signal }))
    const idle = gather((signal) => store.consume('idle', { types: ['WorkerLost'], signal }))
    const shared = [store, other].map((one) =>
      gather(async function* (signal) {
        for await (const delivery of one.consume('shared', { env_id: stream, signal })) {
          yield payloadOf(delivery.event)
          delivery.ack()
        }
      }),
    )
    const got = () => shared.flatMap(({ items }) => items)
    await until(async () => (await joined(client, 'shared')) === 2, PATIENT)
    await appendOne(store, 0, stream)
    await until(() => full.items.length === 1 && got().length > 0, PATIENT)
    await store.append(stream, [fact(stream, 1)], 0)
    await until(() => shared.every(({ items }) => items.length > 0), PATIENT)
    const joins = standIn.misbehave.calls('consumer', 'unanswered', { times: 10 })
    await store.append(stream, [fact(stream, 2)], 1) // goes to one of the two
    await until(() => got().includes(2), PATIENT)
    const began = clock.monotonic()
    await until(() => clock.monotonic() - began > SILENCE_MS, PATIENT)
    assert.is(joins.times, 0)
    assert.is(full.items.length, 1)
    for (const consumer of [full, idle, ...shared]) await consumer.stop()
    await client.dispose()
    await other.close()
  }),
)

/** Two nodes with one log, and a store that finds them by gossip. */
const withTwo = async (
  work: (nodes: readonly [Opened['standIn'], Opened['standIn']], store: Opened['store']) => Promise<void>,
): Promise<void> => {
  const log = new Log()
  const nodes = [await startStandIn({ log }), await startStandIn({ log })] as const
  nodes[1].misbehave.follow(nodes[0])
  const store = await openSurely(`esdb://${nodes.map(({ port }) => `127.0.0.1:${port}`).join()}?tls=false`)
  try {
    await work(nodes, store)
  } finally {
    await store.close()
    for (const node of nodes) {
      node.misbehave.heal()
      await node.stop()
    }
  }
}

unanswered('no rejection is unhandled when calls fail while a new leader is not found', async () => {
  const unhandled = await unhandledDuring(() =>
    withTwo(async (nodes, store) => {
      const stream = `u-${newId()}`
      const readers = readersOf(store, stream)
      await appendOne(store, 0, stream)
      await until(() => readers.group().length === 1, PATIENT)
      for (const node of nodes) node.misbehave.elect()
      nodes[0].misbehave.calls('read', 'not ready')
      await failureOf(store.head()) // the client drops its channel
      const searching = failureOf(store.head())
      await nodes[0].stop() // the open calls end while the search goes on
      assert.ok(isAppError(await searching, 'unavailable'))
      for (const node of nodes) node.misbehave.heal()
      nodes[1].misbehave.follow(nodes[0])
      await nodes[0].restart()
      const one = fact(stream, 1)
      await until(() => store.append(stream, [one], 0), PATIENT)
      await until(() => readers.group().length === 2, PATIENT)
      await readers.stop()
    }),
  )
  assert.equal(unhandled, [])
})

unanswered('no rejection is unhandled when a client is closed while no node is found', async () => {
  const unhandled = await unhandledDuring(() =>
    withTwo(async (nodes, store) => {
      const readers = readersOf(store, `u-${newId()}`)
      for (const node of nodes) {
        node.misbehave.elect()
        await node.stop()
      }
      await failureOf(store.head())
      await readers.stop()
    }),
  )
  assert.equal(unhandled, [])
})

unanswered.run()
