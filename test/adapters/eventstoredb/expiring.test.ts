import * as assert from 'uvu/assert'
import { openBlobs } from '../../../src/adapters/embedded/blobs.ts'
import { Idempotency } from '../../../src/commands/idempotency.ts'
import { Payloads } from '../../../src/content/payloads.ts'
import { type Aggregates, openAggregates } from '../../../src/domain/aggregates.ts'
import { CommandHandler } from '../../../src/domain/commandHandler.ts'
import { openingOf, stream as svcStream } from '../../../src/domain/stream.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { clock, virtualClock } from '../../../src/clock.ts'
import { followStream } from '../../../src/commands/streams/followStream.ts'
import { readFact } from '../../../src/commands/streams/readFact.ts'
import { isAppError } from '../../../src/errors.ts'
import { silent } from '../../../src/logger.ts'
import { DataKeys } from '../../../src/secrets/dataKeys.ts'
import { Keyring } from '../../../src/secrets/keyring.ts'
import { MasterKeys } from '../../../src/secrets/masterKeys.ts'
import { WrappedKeys } from '../../../src/secrets/wrappedKeys.ts'
import { newId } from '../../../src/ids.ts'
import { facts, failureOf } from '../../contracts/eventStore/facts.ts'
import { eventsOf, gather } from '../../contracts/eventStore/gather.ts'
import { clientOf } from '../../support/eventstoredb/client.ts'
import { anyRoom } from '../../support/rooms.ts'
import { suite } from '../../support/suite.ts'
import { tempDir } from '../../support/tempDir.ts'
import { until } from '../../support/until.ts'
import { alone, type Opened, payloadsIn } from './harness.ts'

const masterKey = new Uint8Array(32)

const expire = suite('EventStoreDB adapter: retention')
expire.after.each(() => virtualClock.set(null))

/** Lets the events of a stream expire, and stops the clock so that later ones do not. */
const expireNow = async (store: Opened['store'], stream: string): Promise<void> => {
  await store.expire(stream, 60)
  virtualClock.set(clock.now() + 61_000)
  assert.equal(await payloadsIn(store, stream), [])
}

expire(
  'an event at a revision is absent once it has expired, although later ones are there',
  alone(async ({ store }) => {
    const stream = `e-${newId()}`
    await store.append(stream, facts(stream, 2), 'none')
    await expireNow(store, stream)
    await store.append(stream, facts(stream, 1, 2), 1)
    assert.is(await readFact(store, stream, 0), null)
    assert.is((await readFact(store, stream, 2))?.revision, 2)
  }),
)

expire(
  'an event that was dispatched is not dispatched again when the facts about it have expired',
  alone(async ({ store }) => {
    for (const later of [0, 1]) {
      const [stream_id, event_id] = [newId(), newId()]
      const stream = streamOf.stream(stream_id)
      const cause = { env_id: 'env', correlation_id: 'c' }
      const handler = () => new CommandHandler(store, svcStream)
      const now = clock.iso()
      const about = { stream_id, event_id, now } as const
      const publish = {
        ...about,
        type: 'PublishEvent',
        env_id: 'env',
        event_type: 'x',
        source: 'api',
      } as const
      await handler().handle(stream, { ...publish, data: { value: 1 }, create: true }, cause)
      const dispatch = { ...about, type: 'DispatchEvent', plans: [], worker_id: 'w' } as const
      await handler().handle(stream, dispatch, cause)
      const published = await readFact(store, stream, 1)
      await store.expire(stream, 1)
      await until(() => store.isExpired(stream))
      if (later) await store.append(stream, facts(stream, 1), 2)
      const opening = published ? openingOf(published) : undefined
      for (const known of [{ known: 1 }, { known: 1, opening }])
        assert.is((await handler().handle(stream, dispatch, cause, known)).events.length, 0)
    }
  }),
)

expire(
  'a stream has expired when all its events have, and not when reads of it end too early',
  alone(async ({ standIn, store }) => {
    const stream = `e-${newId()}`
    assert.is(await store.isExpired(stream), false)
    await store.append(stream, facts(stream, 2), 'none')
    standIn.misbehave.cutReads(0, { times: 100 })
    assert.is(await store.isExpired(stream), false)
    standIn.misbehave.heal()
    await store.expire(stream, 1)
    await until(() => store.isExpired(stream))
  }),
)

expire(
  'a stream that an operator has truncated has expired, and continues',
  alone(async ({ standIn, store }) => {
    const client = clientOf(standIn.url)
    const stream = `e-${newId()}`
    await store.append(stream, facts(stream, 2), 'none')
    await client.setStreamMetadata(stream, { truncateBefore: 2 })
    assert.ok(await store.isExpired(stream))
    assert.equal(await payloadsIn(store, stream), [])
    await store.append(stream, facts(stream, 1, 2), 1)
    assert.equal(await payloadsIn(store, stream), [2])
    await client.dispose()
  }),
)

/** Appends facts to a quiet svc stream, more than one read returns. Returns the stream and the revision of its last fact. */
const longStream = async ({ aggregates, stream_id }: { aggregates: Aggregates; stream_id: string }) => {
  const stream = streamOf.stream(stream_id)
  const cause = { env_id: 'env', correlation_id: 'c' }
  const error = { code: 'x', message: 'y' }
  for (let n = 0; n < 300; n++) {
    const about = { stream_id, event_id: newId() }
    const publish = { ...about, type: 'PublishEvent', env_id: 'env', event_type: 'x', source: 'api' } as const
    const data = { value: n }
    await aggregates.streams.handle(stream, { ...publish, data, create: true, now: clock.iso() }, cause)
    await aggregates.streams.handle(stream, { ...about, type: 'AbandonEvent', error }, cause)
  }
  return { stream, last: await aggregates.streams.read(stream, (_, revision) => revision) }
}

for (const [how, lose] of [
  ['expires', ({ store }, stream) => store.expire(stream, 1)],
  [
    'is truncated',
    async ({ standIn }, stream, last) => {
      const client = clientOf(standIn.url)
      await client.setStreamMetadata(stream, { truncateBefore: last + 1 })
      await client.dispose()
    },
  ],
  [
    'is deleted',
    async ({ standIn }, stream) => {
      const client = clientOf(standIn.url)
      await client.deleteStream(stream)
      await client.dispose()
    },
  ],
] as const satisfies readonly (readonly [
  string,
  (opened: Opened, stream: string, last: number) => Promise<void>,
])[])
  expire(
    `a reader whose stream ${how} while it reads is informed of that, and waits for nothing`,
    alone(async (opened) => {
      const { store } = opened
      const aggregates = openAggregates(store)
      const stream_id = newId()
      const { stream, last } = await longStream({ aggregates, stream_id })
      const start = { stream_id, after: -1, mayBeComplete: true }
      const reading = followStream({ store, aggregates }, { start, signal: AbortSignal.timeout(40_000) })
      assert.is((await reading.next()).value?.kind, 'activities')
      await lose(opened, stream, last)
      await until(async () => (await payloadsIn(store, stream)).length === 0)
      const parts = await Array.fromAsync(reading)
      assert.equal(
        parts.map(({ kind, revision }) => [kind, revision]),
        [
          ['expired', last],
          ['complete', last],
        ],
      )
    }),
  )

expire(
  'a reader of a stream that is deleted after a read ended too early catches up again',
  alone(async ({ standIn, store }) => {
    const client = clientOf(standIn.url)
    const stream = `e-${newId()}`
    await store.append(stream, facts(stream, 2), 'none')
    const earlier = gather((signal) => store.follow(`${stream}-2`, { signal })) // has the tail of the log begin
    await until(() => earlier.items.length === 1)
    await earlier.stop()
    standIn.misbehave.cutReads(0)
    const reader = gather((signal) => store.follow(stream, { signal }))
    await until(() => reader.items.length === 1)
    standIn.misbehave.silence('reads') // so that the follower learns nothing before the deletion
    await client.deleteStream(stream)
    standIn.misbehave.heal()
    await until(() => reader.items.length === 2)
    await reader.stop()
    assert.equal(
      reader.items.map(({ events, caughtUp }) => [events.length, caughtUp]),
      [
        [0, true],
        [0, true],
      ],
    )
    await client.dispose()
  }),
)

expire(
  'a stream that an operator has deleted or ended for ever has expired, and a missing one has not',
  alone(async ({ standIn, store }) => {
    const client = clientOf(standIn.url)
    const [deleted, ended, missing] = [`e-${newId()}`, `e-${newId()}`, `e-${newId()}`]
    for (const stream of [deleted, ended]) await store.append(stream, facts(stream, 2), 'none')
    await client.deleteStream(deleted)
    await client.tombstoneStream(ended)
    await store.expire(missing, 1) // its retention is known before its first event
    assert.equal(await Promise.all([deleted, ended, missing].map((stream) => store.isExpired(stream))), [
      true,
      true,
      false,
    ])
    await client.dispose()
  }),
)

expire(
  'a stream keeps the metadata that an operator has set',
  alone(async ({ standIn, store }) => {
    const client = clientOf(standIn.url)
    const stream = `e-${newId()}`
    const metadataOf = async () => (await client.getStreamMetadata(stream)).metadata
    await store.append(stream, facts(stream, 3), 'none')
    const own = { truncateBefore: 1, acl: { readRoles: ['$all', 'audit'] }, mine: { n: 1 } }
    await client.setStreamMetadata(stream, { ...own, maxAge: 5 })
    standIn.misbehave.cutReads(0, { times: 1 })
    await store.expire(stream, 60)
    assert.equal(await metadataOf(), { ...own, maxAge: 60 })
    await Promise.all([store.expire(stream, 70), client.setStreamMetadata(stream, own, {})])
    assert.equal((await metadataOf())?.['mine'], own.mine)
    await store.expire(stream, null)
    assert.equal(await metadataOf(), own)
    assert.equal(await payloadsIn(store, stream), [1, 2])
    await client.dispose()
  }),
)

expire(
  'a stream that an operator has deleted remains deleted',
  alone(async ({ standIn, store }) => {
    const client = clientOf(standIn.url)
    const stream = `e-${newId()}`
    await store.append(stream, facts(stream, 2), 'none')
    await client.deleteStream(stream)
    for (const seconds of [60, null]) {
      await store.expire(stream, seconds)
      assert.equal(await payloadsIn(store, stream), [])
    }
    await client.dispose()
  }),
)

expire(
  'a stream that an operator has ended for ever needs no retention, and refuses appends for good',
  alone(async ({ standIn, store }) => {
    const client = clientOf(standIn.url)
    const ended = `e-${newId()}`
    await store.append(ended, facts(ended, 2), 'none')
    await store.expire(ended, 60)
    await client.tombstoneStream(ended)
    for (const seconds of [70, null]) await store.expire(ended, seconds)
    const failure = await failureOf(store.append(ended, facts(ended, 1, 2), 1))
    assert.ok(isAppError(failure, 'not_found'), String(failure))
    assert.match(failure.message, ended)
    await client.dispose()
  }),
)

expire(
  'a retention that is set already is not stored again',
  alone(async ({ standIn, store }) => {
    const client = clientOf(standIn.url)
    const stream = `e-${newId()}`
    for (let times = 0; times < 2; times++) await store.expire(stream, 60)
    const revisions: bigint[] = []
    for await (const { event } of client.readStream(`$$${stream}`)) revisions.push(event?.revision ?? -1n)
    assert.equal(revisions, [0n])
    await client.dispose()
  }),
)

expire(
  'an Idempotency-Key can be used again when all facts about it have expired',
  alone(async ({ store }) => {
    const blobs = await openBlobs({ dir: tempDir() })
    const node = () => {
      const aggregates = openAggregates(store)
      const keys = new DataKeys({
        keys: aggregates.dataKeys,
        wrapped: new WrappedKeys(blobs, new MasterKeys([masterKey])),
      })
      return new Idempotency({
        store,
        aggregates,
        payloads: new Payloads(blobs),
        quotas: { dataFor: anyRoom },
        keyring: new Keyring(masterKey, keys),
        logger: silent,
        holder: newId(),
        isGone: () => false,
        stopping: new AbortController().signal,
      })
    }
    const asked = {
      key: 'k',
      scope: ['env', 'POST', '/v1/events'],
      cause: { env_id: 'env', correlation_id: 'r' },
    }
    const used = gather((signal) => store.subscribe({ types: ['RequestClaimed'], signal }))
    await node().once({ ...asked, request: 1 }, () => Promise.resolve('first'))
    const stream = (await until(() => eventsOf(used.items)[0])).stream
    await used.stop()
    await expireNow(store, stream)
    const later = { ...asked, request: 2 }
    const second = { value: 'second', replayed: false }
    assert.equal(await node().once(later, () => Promise.resolve('second')), second)
    assert.equal(await node().once(later, () => Promise.resolve('third')), { ...second, replayed: true })
  }),
)

expire.run()
