import * as assert from 'uvu/assert'
import { isAppError } from '../../../src/errors.ts'
import { newId } from '../../../src/ids.ts'
import type { EventStore } from '../../../src/ports/eventStore.ts'
import { suite } from '../../support/suite.ts'
import type { OpenEventStore } from '../eventStore.ts'
import { alone } from './alone.ts'
import { fact, facts, failureOf, numbers, payloadOf } from './facts.ts'

export const reading = (name: string, open: () => Promise<OpenEventStore>): void => {
  const read = suite<OpenEventStore>(`${name}: read`)
  read.before(async (context) => Object.assign(context, await open()))
  read.after(({ close }) => close())

  read('gives a stream from a revision on, as much as was asked for', async ({ store }) => {
    const stream = `r-${newId()}`
    await store.append(stream, facts(stream, 6), 'none')
    const payloads = async (options?: { from?: number; limit?: number }) =>
      (await Array.fromAsync(store.read(stream, options))).map(payloadOf)
    assert.equal(await payloads(), [0, 1, 2, 3, 4, 5])
    assert.equal(await payloads({ from: 3 }), [3, 4, 5])
    assert.equal(await payloads({ from: 1, limit: 2 }), [1, 2])
    assert.equal(await payloads({ limit: 100 }), [0, 1, 2, 3, 4, 5])
    assert.equal(await payloads({ from: 6 }), [])
    assert.equal(await payloads({ from: 1000 }), [])
    assert.equal(await payloads({ limit: 0 }), [])
  })

  read('the time of the newest event has passed on the clock of the store', async ({ store }) => {
    const stream = `r-${newId()}`
    await store.append(stream, facts(stream, 1), 'none')
    await store.head()
    const [event] = await Array.fromAsync(store.read(stream))
    const least = store.leastNow()
    assert.ok(least >= Date.parse(event?.at ?? ''), `${least} at ${event?.at}`)
    assert.ok(store.leastNow() >= least)
  })

  read('a missing stream is an empty one', async ({ store }) => {
    assert.equal(await Array.fromAsync(store.read(`r-${newId()}`)), [])
    assert.equal(await Array.fromAsync(store.read(`r-${newId()}`, { from: 5, limit: 1 })), [])
  })

  read(
    'gives what was appended, field by field, before and after reopening',
    alone(open, async ({ store, reopen }) => {
      const stream = `r-${newId()}`
      const env_id = newId()
      const metadata = { env_id, correlation_id: newId(), causation_id: newId(), actor: newId(), v: 1 }
      const payloads = [
        null,
        7,
        'text',
        [1, { a: 'ü' }],
        { b: 1, a: [] },
        'NUL \0, \u2028 and \ud83d\ude00',
        -1.5e-300,
        '',
      ]
      const sent = payloads.map((payload) => ({ ...fact(env_id, payload), metadata }))
      const { cursor } = await store.append(stream, sent, 'none')
      const stored = await Array.fromAsync(store.read(stream))
      assert.equal(
        stored.map(({ id, event, metadata }) => ({ id, event, metadata })),
        sent,
      )
      assert.is(stored.at(-1)?.cursor, cursor)
      for (const recorded of stored) {
        assert.is(recorded.stream, stream)
        assert.match(recorded.at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      }
      const later = await reopen()
      assert.equal(await Array.fromAsync(later.read(stream)), stored)
    }),
  )

  read(
    'data may have a key __proto__',
    alone(open, async ({ store, reopen }) => {
      const stream = `r-${newId()}`
      const text = '{"__proto__":{"polluted":true},"constructor":1,"a":{"__proto__":"x"}}'
      await store.append(stream, [fact(stream, JSON.parse(text))], 'none')
      const textIn = async (at: EventStore) =>
        (await Array.fromAsync(at.read(stream))).map((stored) => JSON.stringify(payloadOf(stored)))
      assert.equal(await textIn(store), [text])
      assert.equal(await textIn(await reopen()), [text])
      assert.is(({} as { polluted?: boolean }).polluted, undefined)
    }),
  )

  read('gives a long stream in order, and may be left early', async ({ store }) => {
    const stream = `r-${newId()}`
    for (let at = 0; at < 3000; at += 100) {
      await store.append(stream, facts(stream, 100, at), at === 0 ? 'none' : at - 1)
    }
    const stored = await Array.fromAsync(store.read(stream))
    assert.equal(stored.map(payloadOf), numbers(3000))
    assert.equal(
      stored.map(({ revision }) => revision),
      numbers(3000),
    )
    assert.equal(
      (await Array.fromAsync(store.read(stream, { from: 1400, limit: 700 }))).map(payloadOf),
      numbers(700, 1400),
    )
    for (let i = 0; i < 20; i++) {
      for await (const event of store.read(stream)) {
        assert.is(payloadOf(event), 0)
        break
      }
    }
  })

  read('knows its cursors from other texts', async ({ store }) => {
    const stream = `r-${newId()}`
    const { cursor } = await store.append(stream, facts(stream, 1), 'none')
    for (const own of [cursor, await store.head()]) assert.ok(store.isCursor(own), own)
    for (const text of ['', 'x', '-1', `${cursor}x`, ` ${cursor}`, newId()])
      assert.not.ok(store.isCursor(text), text)
  })

  read(
    'head is the cursor of the newest event',
    alone(open, async ({ store, reopen }) => {
      const stream = `r-${newId()}`
      const { cursor } = await store.append(stream, facts(stream, 2), 'none')
      assert.ok((await store.head()) >= cursor)
      assert.ok((await (await reopen()).head()) >= cursor)
    }),
  )

  read(
    'a store that is closed is unavailable, and closes again',
    alone(open, async ({ store }) => {
      const stream = `r-${newId()}`
      await store.append(stream, facts(stream, 1), 'none')
      await store.close()
      await store.close()
      assert.ok(isAppError(await failureOf(store.append(stream, facts(stream, 1), 0)), 'unavailable'))
      assert.ok(isAppError(await failureOf(Array.fromAsync(store.read(stream))), 'unavailable'))
    }),
  )

  read(
    'the end of a whole log is not beyond its head, also after an accepted loss',
    alone(open, async ({ store, reopen }) => {
      const stream = `r-${newId()}`
      await store.append(stream, facts(stream, 3), 'none')
      assert.ok((await store.remembered()) <= (await store.head()))
      const later = await reopen()
      assert.ok((await later.remembered()) <= (await later.head()))
      await later.acceptLoss()
      assert.equal((await Array.fromAsync(later.read(stream))).map(payloadOf), numbers(3))
    }),
  )

  read(
    'events between two cursors are counted, if the store can',
    alone(open, async ({ store }) => {
      const stream = `r-${newId()}`
      const { cursor: first } = await store.append(stream, facts(stream, 1), 'none')
      const { cursor: last } = await store.append(stream, facts(stream, 4), 0)
      assert.ok([null, 4].includes(store.countBetween(first, last)))
    }),
  )

  read(
    'what was appended before a close without waiting is there or was refused',
    alone(open, async ({ store, reopen }) => {
      const stream = `r-${newId()}`
      const appends = Promise.allSettled(
        numbers(20).map((i) => store.append(stream, [fact(stream, i)], i === 0 ? 'none' : i - 1)),
      )
      const later = await reopen()
      const stored = (await appends).filter(({ status }) => status === 'fulfilled').length
      const there = (await Array.fromAsync(later.read(stream))).map(payloadOf)
      assert.equal(there.slice(0, stored), numbers(stored))
    }),
  )

  read.run()
}
