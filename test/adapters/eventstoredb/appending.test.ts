import * as assert from 'uvu/assert'
import { isAppError } from '../../../src/errors.ts'
import { newId } from '../../../src/ids.ts'
import { fact, facts, failureOf, numbers } from '../../contracts/eventStore/facts.ts'
import { openSurely } from '../../contracts/eventStore/openEventStoreDb.ts'
import { startStandIn } from '../../support/eventstoredb/index.ts'
import type { AppendFault } from '../../support/eventstoredb/misbehaviour.ts'
import { suite } from '../../support/suite.ts'
import { together } from '../../support/together.ts'
import { until } from '../../support/until.ts'
import { alone, appendOne, payloadsIn } from './harness.ts'

const append = suite('EventStoreDB adapter: failing appends')
const appendTogether = together(append)

/** The caller cannot know these outcomes. A repetition with the same ids at the same revision resolves each one. */
const unknown: readonly [string, AppendFault][] = [
  ['an answer that never comes, written', { reply: 'never', written: true }],
  ['an answer that never comes, not written', { reply: 'never', written: false }],
  ['a connection that breaks after the write', { reply: 'drop', written: true }],
  ['a connection that breaks before the write', { reply: 'drop', written: false }],
  ['a write timeout of the server, written all the same', { reply: 'timeout', written: true }],
  ['a write timeout of the server', { reply: 'timeout', written: false }],
  ['a server that is not ready', { reply: 'not ready' }],
  ['an answer that is late', { reply: 'late', written: true, afterMs: 300 }],
  ['an answer that comes after the caller tried again', { reply: 'late', written: true, afterMs: 2800 }],
]
for (const [what, fault] of unknown) {
  appendTogether(
    `${what}: the event is stored once, and the result is as without the fault`,
    alone(async ({ standIn, store }) => {
      const stream = `a-${newId()}`
      const earlier = facts(stream, 2)
      await until(() => store.append(stream, earlier, 'none'))
      const struck = standIn.misbehave.appends(fault, { stream: (name) => name === stream })
      const { revision, cursor } = await store.append(stream, [fact(stream, 2)], 1)
      assert.is(struck.times, 1)
      assert.is(revision, 2)
      assert.equal(await payloadsIn(store, stream), [0, 1, 2])
      assert.is((await Array.fromAsync(store.read(stream))).at(-1)?.cursor, cursor)
      assert.is((await store.append(stream, [fact(stream, 3)], 2)).revision, 3)
    }),
  )
}

append(
  'a failing append to one stream delays no other stream',
  alone(async ({ standIn, store }) => {
    const slow = `a-${newId()}`
    const never = { reply: 'never', written: false } as const
    const struck = standIn.misbehave.appends(never, { times: Infinity, stream: (name) => name === slow })
    const one = fact(slow, 'late')
    const late = until(() => store.append(slow, [one], 'none'))
    const attempts: number[] = [] // of the failing append, when another one was acknowledged
    for (const i of numbers(20)) {
      await appendOne(store, i)
      attempts.push(struck.times)
    }
    standIn.misbehave.heal()
    assert.is((await late).revision, 0)
    assert.is(attempts[0], 1)
    assert.ok((attempts.at(-1) ?? Infinity) < 10, attempts.join()) // a slow machine may take longer than one attempt
  }),
)

append(
  'a second reply and a reply to no append are ignored',
  alone(async ({ standIn, store }) => {
    for (const reply of ['twice', 'stranger'] as const) {
      const struck = standIn.misbehave.appends({ reply, afterMs: 10 }, { times: 10 })
      const stream = `a-${newId()}`
      for (const i of numbers(30)) await store.append(stream, [fact(stream, i)], i === 0 ? 'none' : i - 1)
      assert.is(struck.times, 10)
      assert.equal(await payloadsIn(store, stream), numbers(30))
    }
  }),
)

appendTogether(
  'a silent server is unavailable in bounded time, and available again when it replies',
  alone(async ({ standIn, store }) => {
    standIn.misbehave.silence('appends')
    const refused = await Promise.all(numbers(20).map((i) => failureOf(appendOne(store, i))))
    for (const error of refused) assert.ok(isAppError(error, 'unavailable'), String(error))
    standIn.misbehave.heal()
    assert.is((await appendOne(store, 'again')).revision, 0)
  }),
)

append(
  'a server that is down is unavailable in bounded time, and available again after its restart',
  alone(async ({ standIn, store }) => {
    await appendOne(store, 'before')
    await standIn.stop()
    assert.ok(isAppError(await failureOf(appendOne(store, 'meanwhile')), 'unavailable'))
    assert.ok(isAppError(await failureOf(store.head()), 'unavailable'))
    assert.ok(isAppError(await failureOf(Array.fromAsync(store.read('a'))), 'unavailable'))
    await standIn.restart()
    assert.is((await appendOne(store, 'after')).revision, 0)
  }),
)

append(
  'a kill and restart under 32 writers loses no acknowledged event and stores none twice',
  alone(async ({ standIn, store }) => {
    const over = new AbortController()
    const write = async (stream: string): Promise<number> => {
      for (let i = 0; ;) {
        if (over.signal.aborted) return i
        const one = fact(stream, i)
        for (;;) {
          const failure = await failureOf(store.append(stream, [one], i === 0 ? 'none' : i - 1))
          if (failure === undefined) break
          assert.ok(isAppError(failure, 'unavailable'), String(failure))
        }
        i++
      }
    }
    const streams = numbers(32).map((i) => `a-${newId()}-${i}`)
    const writing = Promise.all(streams.map(write))
    for (const i of numbers(4)) {
      await until(() => appendOne(store, `round ${i}`))
      await standIn.stop()
      await standIn.restart()
      await until(() => appendOne(store, `back ${i}`))
    }
    over.abort()
    const counts = await writing
    for (const [i, stream] of streams.entries()) {
      assert.equal(await payloadsIn(store, stream), numbers(counts[i] ?? -1))
    }
  }),
)

append('two servers in one process are independent of each other', async () => {
  const [one, other] = [await startStandIn(), await startStandIn()]
  const [first, second] = [await openSurely(one.url), await openSurely(other.url)]
  try {
    const stream = `a-${newId()}`
    one.misbehave.silence('appends')
    const doomed = failureOf(appendOne(first, 'doomed'))
    await second.append(stream, facts(stream, 1), 'none')
    await one.stop()
    const appends = numbers(50).map((i) => second.append(stream, [fact(stream, i + 1)], i))
    assert.equal(
      (await Promise.all(appends)).map(({ revision }) => revision),
      numbers(50, 1),
    )
    assert.ok(isAppError(await doomed, 'unavailable'))
  } finally {
    await first.close()
    await second.close()
    await other.stop()
  }
})

appendTogether(
  'closing while the server is silent rejects waiting appends',
  alone(async ({ standIn, store }) => {
    standIn.misbehave.silence('appends', 'reads', 'subscriptions', 'groups')
    const waiting = [failureOf(appendOne(store, 1)), failureOf(store.head())]
    await store.close()
    for (const error of await Promise.all(waiting)) assert.ok(isAppError(error, 'unavailable'), String(error))
  }),
)

append.run()
