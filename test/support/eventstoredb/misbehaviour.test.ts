import { randomUUID } from 'node:crypto'
import type { Readable } from 'node:stream'
import { credentials } from '@grpc/grpc-js'
import {
  type EventStoreDBClient,
  NO_STREAM,
  persistentSubscriptionToAllSettingsFromDefaults,
  START,
  streamNameFilter,
} from '@eventstore/db-client'
import { createUUID } from '@eventstore/db-client/dist/utils/grpcUUID.js'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import * as assert from 'uvu/assert'
import { clock } from '../../../src/clock.ts'
import { suite } from '../suite.ts'
import { until } from '../until.ts'
import { clientOf, dataOf, event, failureOf, read } from './client.ts'
import { type StandIn, startStandIn } from './index.ts'
import { Log } from './log.ts'
import { identifierOf, uuidOf } from './wire.ts'

interface Context {
  log: Log
  standIn: StandIn
  client: EventStoreDBClient
}

const faults = suite<Context>('event store stand-in, misbehaving')

faults.before.each(async (context) => {
  context.log = new Log()
  context.standIn = await startStandIn({ log: context.log })
  context.client = clientOf(context.standIn.url)
})
faults.after.each(({ standIn }) => standIn.stop())

/** The events of a subscription so far, and its end. */
const follow = (subscription: object) => {
  const readable = subscription as Readable // its own type has an overload for each event
  const observed = { data: [] as number[], live: 0, ended: false, failure: '' }
  readable.on('data', (resolved: { event?: { data: unknown } }) => observed.data.push(dataOf(resolved.event)))
  readable.on('caughtUp', () => observed.live++)
  readable.on('end', () => (observed.ended = true))
  readable.on('error', (error: { type?: string }) => (observed.failure = error.type ?? 'unknown'))
  return observed
}

faults('resets the connection of an append, before or after it was written', async (context) => {
  const { standIn, client } = context
  const struck = standIn.misbehave.appends(
    { reply: 'drop', written: false },
    { stream: (name) => name === 's' },
  )
  await client.appendToStream('other', [event(0)])
  assert.is((await failureOf(client.appendToStream('s', [event(1)]))).code, 14)
  assert.is(struck.times, 1)
  assert.equal(await read(client, 's'), [])

  standIn.misbehave.appends({ reply: 'drop' })
  assert.is((await failureOf(client.appendToStream('s', [event(2)]))).code, 14)
  assert.equal(await read(client, 's'), [2])
})

faults('leaves an append without a reply', async ({ standIn, client }) => {
  let settled = false
  const settle = () => void (settled = true)
  for (const stream of ['written', 'lost']) {
    const fault = { reply: 'never', written: stream === 'written' } as const
    standIn.misbehave.appends(fault, { stream: (name) => name === stream })
    client.appendToStream(stream, [event(1)]).then(settle, settle)
  }
  await client.appendToStream('s', [event(1)])
  assert.equal([await read(client, 'written'), await read(client, 'lost')], [[1], []])
  await client.appendToStream('s', [event(2)]) // replies arrive in the order of the requests
  assert.not(settled)
})

faults(
  'answers an append late, refuses it as not ready, or gives up waiting',
  async ({ standIn, client }) => {
    const began = clock.monotonic()
    standIn.misbehave.appends({ reply: 'late', afterMs: 60 })
    await client.appendToStream('s', [event(1)])
    assert.ok(clock.monotonic() - began >= 59)

    standIn.misbehave.appends({ reply: 'not ready' })
    const refused = await failureOf(client.appendToStream('s', [event(2)]))
    assert.is(refused.message, 'Could not recognize Server Is Not Ready')

    standIn.misbehave.appends({ reply: 'timeout' })
    const lost = await failureOf(client.appendToStream('s', [event(3)]))
    assert.is(lost.type, 'deadline-exceeded')
    assert.equal(await read(client, 's'), [1, 3])
  },
)

faults('does the same to an append in a call of its own', async ({ standIn, client }) => {
  const login = { credentials: { username: 'admin', password: 'changeit' } }
  const append = (data: number) => client.appendToStream('s', [event(data)], login)
  standIn.misbehave.appends({ reply: 'timeout' })
  assert.is((await failureOf(append(1))).type, 'timeout')
  standIn.misbehave.appends({ reply: 'drop' })
  assert.is((await failureOf(append(2))).type, 'unavailable')
  standIn.misbehave.appends({ reply: 'drop', written: false })
  assert.is((await failureOf(append(3))).type, 'unavailable')
  assert.equal(await read(client, 's'), [1, 2])
})

faults('replies twice, and to appends that do not exist', async ({ standIn }) => {
  // The client is not used here, because it throws outside any promise in both cases.
  const stub = new streamsGrpc.StreamsClient(`127.0.0.1:${standIn.port}`, credentials.createInsecure())
  const call = stub.batchAppend()
  const answered: string[] = []
  call.on('data', (response: streams.BatchAppendResp) => answered.push(uuidOf(response.getCorrelationId())))
  call.on('error', () => {}) // its end
  const ask = (): string => {
    const id = randomUUID()
    const options = new streams.BatchAppendReq.Options()
    options.setStreamIdentifier(identifierOf('s'))
    options.setAny(new shared.Empty())
    const request = new streams.BatchAppendReq()
    request.setCorrelationId(createUUID(id))
    request.setOptions(options)
    request.setIsFinal(true)
    call.write(request)
    return id
  }
  standIn.misbehave.appends({ reply: 'twice' })
  const first = ask()
  await until(() => answered.length === 2)
  assert.equal(answered, [first, first])

  standIn.misbehave.appends({ reply: 'stranger' })
  const second = ask()
  await until(() => answered.length === 4)
  assert.not([first, second].includes(answered[2] ?? second))
  assert.is(answered[3], second)
  stub.close()
})

faults('ends reads and subscriptions early without an error', async ({ standIn, client }) => {
  await client.appendToStream(
    's',
    [1, 2, 3].map((data) => event(data)),
  )
  standIn.misbehave.cutReads(2)
  assert.equal(await read(client, 's'), [1, 2])
  assert.equal(await read(client, 's'), [1, 2, 3])

  const observed = follow(client.subscribeToStream('s', { fromRevision: START }))
  await until(() => observed.data.length === 3)
  standIn.misbehave.endSubscriptions()
  await until(() => observed.ended)
  assert.is(observed.failure, '')
})

faults('sends nothing to subscriptions while reads continue', async ({ standIn, client }) => {
  const observed = follow(client.subscribeToStream('s', { fromRevision: START }))
  await until(() => observed.live === 1)
  standIn.misbehave.silence('subscriptions')
  await client.appendToStream('s', [event(1)])
  assert.equal(await read(client, 's'), [1])
  const later = follow(client.subscribeToStream('s', { fromRevision: START }))
  await read(client, 's')
  assert.equal([observed.data, later.data], [[], []])
  standIn.misbehave.heal()
  await until(() => observed.data.length === 1 && later.data.length === 1)
})

faults('keeps events that arrived while it was silent', async ({ standIn, client, log }) => {
  await client.appendToStream('s', [event(1)])
  standIn.misbehave.silence('appends', 'reads')
  let answered = 0
  const append = client.appendToStream('s', [event(2)]).then(() => answered++)
  const reading = read(client, 's').then(() => answered++)
  await client.getPersistentSubscriptionToAllInfo('none').catch(() => {}) // calls about groups get replies
  assert.is(answered, 0)
  assert.is(log.events('s').length, 1)
  standIn.misbehave.heal()
  await Promise.all([append, reading])
  assert.is(log.events('s').length, 2)
})

faults('refuses everything while it is not ready', async ({ standIn, client }) => {
  standIn.misbehave.notReady()
  assert.is((await failureOf(read(client, 's'))).type, 'unavailable')
  assert.is((await failureOf(client.appendToStream('s', [event(1)]))).type, 'unknown')
  standIn.misbehave.heal()
  await client.appendToStream('s', [event(2)])
  assert.equal(await read(client, 's'), [2])
})

faults('redirects writers to its leader, and then becomes the leader', async ({ standIn, client, log }) => {
  const leader = await startStandIn({ log })
  standIn.misbehave.follow(leader)
  const led = leader.misbehave.appends({ reply: 'late' }, { times: 9 })
  assert.is((await failureOf(client.appendToStream('s', [event(1)]))).type, 'not-leader')
  await client.appendToStream('s', [event(1)], { expectedRevision: NO_STREAM })
  const found = clientOf(`esdb://127.0.0.1:${standIn.port},127.0.0.1:${leader.port}?tls=false`)
  await found.appendToStream('s', [event(2)], { expectedRevision: 0n })
  assert.is(led.times, 2)

  leader.misbehave.follow(standIn)
  standIn.misbehave.heal()
  await leader.stop()
  const after = clientOf(standIn.url)
  await after.appendToStream('s', [event(3)], { expectedRevision: 1n })
  assert.equal(await read(after, 's'), [1, 2, 3])
})

/** Collects and acknowledges all events of the streams that begin with `s`. */
const consume = (client: EventStoreDBClient, group: string) => {
  const subscription = client.subscribeToPersistentSubscriptionToAll(group)
  const observed = follow(subscription)
  subscription.on('data', (resolved) => void subscription.ack(resolved))
  return observed
}

const createGroup = (client: EventStoreDBClient, group: string) =>
  client.createPersistentSubscriptionToAll(
    group,
    persistentSubscriptionToAllSettingsFromDefaults({
      startFrom: START,
      checkPointLowerBound: 1,
      checkPointUpperBound: 1,
    }),
    { filter: streamNameFilter({ prefixes: ['s'] }) },
  )

faults('delivers events after the checkpoint again after a restart', async ({ standIn, client, log }) => {
  const checkpoints = () => log.events('$persistentsubscription-$all::g-checkpoint').length
  const allAcknowledged = async () => {
    const { stats } = await client.getPersistentSubscriptionToAllInfo('g')
    return stats.outstandingMessagesCount === 0
  }
  await createGroup(client, 'g')
  await client.appendToStream('s', [event(1)])
  const before = consume(client, 'g')
  await until(() => checkpoints() === 1)
  standIn.misbehave.holdCheckpoints()
  await client.appendToStream('s', [event(2)])
  await until(() => before.data.length === 2)
  await until(allAcknowledged)
  assert.is(checkpoints(), 1)
  await standIn.stop()
  await until(() => before.failure !== '')

  standIn.misbehave.heal()
  await standIn.restart()
  const after = consume(clientOf(standIn.url), 'g')
  await until(() => checkpoints() === 2)
  assert.equal([before.data, after.data], [[1, 2], [2]])
})

faults('drops the consumers of its groups when it steps down', async ({ standIn, client, log }) => {
  const leader = await startStandIn({ log })
  await createGroup(client, 'g')
  await client.appendToStream('s', [event(1)])
  const observed = consume(client, 'g')
  await until(() => observed.data.length === 1)
  standIn.misbehave.follow(leader)
  await until(() => observed.failure === 'persistent-subscription-dropped')
  await leader.stop()
})

faults.run()
