import * as assert from 'uvu/assert'
import { newId } from '../../../src/ids.ts'
import { isAppError } from '../../../src/errors.ts'
import { appendLarge, facts, numbers, payloadOf } from '../../contracts/eventStore/facts.ts'
import { eventsOf, gather } from '../../contracts/eventStore/gather.ts'
import { suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'
import { alone, payloadsIn } from './harness.ts'

const isUnavailable = (work: Promise<unknown>): Promise<boolean> =>
  work.then(
    () => false,
    (error: unknown) => isAppError(error, 'unavailable'),
  )

const read = suite('EventStoreDB adapter: reads that the server ends too early, without an error')

for (const [after, times] of [
  [0, 1],
  [0, 2],
  [0, 3],
  [1, 4],
  [2, 1],
  [4, 3],
] as const)
  read(
    `a stream is read to its end although ${times} reads end after ${after} events`,
    alone(async ({ standIn, store }) => {
      const stream = `r-${newId()}`
      await store.append(stream, facts(stream, 5), 'none')
      const struck = standIn.misbehave.cutReads(after, { times })
      assert.equal(await payloadsIn(store, stream), numbers(5))
      assert.ok(struck.times > 0)
    }),
  )

for (const after of [0, 5, 20, 30])
  read(
    `a stream of large facts is read to its end although a read ends after ${after} of them`,
    alone(async ({ standIn, store }) => {
      const stream = `r-${newId()}`
      await appendLarge(store, stream, 64)
      const struck = standIn.misbehave.cutReads(after, { times: 2 })
      assert.equal((await payloadsIn(store, stream)).map(Number), numbers(64))
      assert.is(struck.times, 2)
    }),
  )

read(
  'an event at a revision is found although reads end before it',
  alone(async ({ standIn, store }) => {
    const stream = `r-${newId()}`
    await store.append(stream, facts(stream, 5), 'none')
    standIn.misbehave.cutReads(0, { times: 3 })
    const found = await Array.fromAsync(store.read(stream, { from: 3, limit: 1 }))
    assert.equal(found.map(payloadOf), [3])
  }),
)

read(
  'a stream is not empty because all reads return nothing, also if its events may expire',
  alone(async ({ standIn, store }) => {
    for (const maxAge of [undefined, 3600]) {
      const stream = `r-${newId()}`
      await store.append(stream, facts(stream, 5), 'none')
      if (maxAge !== undefined) await store.expire(stream, maxAge)
      standIn.misbehave.cutReads(0, { times: 1000 })
      assert.ok(await isUnavailable(payloadsIn(store, stream)))
      standIn.misbehave.heal()
      assert.equal(await payloadsIn(store, stream), numbers(5))
    }
  }),
)

read(
  'a missing stream is empty',
  alone(async ({ standIn, store }) => {
    standIn.misbehave.cutReads(0, { times: 1 })
    assert.equal(await payloadsIn(store, `r-${newId()}`), [])
  }),
)

read(
  'the head of the log is unknown, not its start',
  alone(async ({ standIn, store }) => {
    const head = await store.head()
    standIn.misbehave.cutReads(0)
    assert.ok(await isUnavailable(store.head()))
    assert.is(await store.head(), head)
  }),
)

read(
  'a follower of a quiet stream gets its events',
  alone(async ({ standIn, store }) => {
    const stream = `r-${newId()}`
    await store.append(stream, facts(stream, 5), 'none')
    await store.head()
    const first = gather((signal) => store.follow(stream, { signal }))
    await until(() => eventsOf(first.items).length === 5) // from now on the tail of this store has begun
    await first.stop()
    const struck = standIn.misbehave.cutReads(0, { times: 2 })
    const reader = gather((signal) => store.follow(stream, { signal }))
    await until(() => eventsOf(reader.items).length === 5, { timeoutMs: 20_000 })
    await reader.stop()
    assert.is(struck.times, 2)
    assert.equal(eventsOf(reader.items).map(payloadOf), numbers(5))
  }),
)

read.run()
