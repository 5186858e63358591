import * as assert from 'uvu/assert'
import { isAppError } from '../../../src/errors.ts'
import { newId } from '../../../src/ids.ts'
import type { Expected } from '../../../src/ports/eventStore.ts'
import { suite } from '../../support/suite.ts'
import type { OpenEventStore } from '../eventStore.ts'
import { alone } from './alone.ts'
import { fact, facts, failureOf, numbers, payloadOf } from './facts.ts'

export const appending = (name: string, open: () => Promise<OpenEventStore>): void => {
  const append = suite<OpenEventStore>(`${name}: append`)
  append.before(async (context) => Object.assign(context, await open()))
  append.after(({ close }) => close())

  append('counts revisions from 0 and returns the last one', async ({ store }) => {
    const stream = `a-${newId()}`
    const first = await store.append(stream, facts(stream, 3), 'none')
    const second = await store.append(stream, facts(stream, 1), 2)
    assert.is(first.revision, 2)
    assert.is(second.revision, 3)
    assert.ok(second.cursor > first.cursor)
    const stored = await Array.fromAsync(store.read(stream))
    assert.equal(
      stored.map(({ revision }) => revision),
      [0, 1, 2, 3],
    )
    assert.equal([stored[2]?.cursor, stored[3]?.cursor], [first.cursor, second.cursor])
  })

  append('counts the time of each commit, and its facts if they are on this disk', async ({ store }) => {
    const stream = `c-${newId()}`
    const [commits, stored, bytes] = [store.commits.count, store.size()?.facts, store.size()?.bytes]
    await store.append(stream, facts(stream, 2), 'none')
    await failureOf(store.append(stream, [fact(stream, 'refused')], 7))
    assert.is(store.commits.count, commits + 1)
    assert.ok(store.commits.sum > 0)
    if (stored === undefined || bytes === undefined) return
    assert.is(store.size()?.facts, stored + 2)
    assert.ok((store.size()?.bytes ?? 0) >= bytes && bytes > 0)
  })

  append('a wrong revision names the stream, the expected and the actual revision', async ({ store }) => {
    const stream = `a-${newId()}`
    const refused = async (at: string, expected: Expected, actual: Expected) => {
      const error = await failureOf(store.append(at, [fact(stream, 'refused')], expected))
      assert.ok(isAppError(error, 'wrong_revision'), String(error))
      assert.equal(error.data, { stream: at, expected, actual })
    }
    await store.append(stream, facts(stream, 6), 'none')
    await refused(stream, 1, 5)
    await refused(stream, 99, 5)
    await refused(stream, 'none', 5)
    await refused(`a-${newId()}`, 0, 'none')
    assert.is((await Array.fromAsync(store.read(stream))).length, 6)
  })

  append(
    'a repeat of the same ids gives the first revision and cursor, whatever came since',
    alone(open, async ({ store, reopen }) => {
      const stream = `a-${newId()}`
      const pair = facts(stream, 2)
      const first = await store.append(stream, pair, 'none')
      const last = facts(stream, 1, 2)
      const second = await store.append(stream, last, 1)
      assert.equal(await store.append(stream, pair, 'none'), first)
      for (const i of numbers(50)) await store.append(stream, [fact(stream, i)], 2 + i)
      assert.equal(await store.append(stream, pair, 'none'), first)
      assert.equal(await store.append(stream, last, 1), second)
      const later = await reopen()
      assert.equal(await later.append(stream, pair, 'none'), first)
      assert.is((await Array.fromAsync(later.read(stream))).length, 53)
    }),
  )

  append(
    'of repeats, the first of the old ids alone is accepted, half old and half new is not',
    async ({ store }) => {
      const stream = `a-${newId()}`
      const [one, two] = [fact(stream, 1), fact(stream, 2)]
      const { cursor } = await store.append(stream, [one], 'none')
      await store.append(stream, [two], 0)
      assert.equal(await store.append(stream, [one], 'none'), { revision: 0, cursor })
      for (const mixed of [[one, fact(stream, 3)], [one, two, fact(stream, 3)], [two], [two, one]]) {
        assert.ok(isAppError(await failureOf(store.append(stream, mixed, 'none')), 'wrong_revision'))
      }
      assert.ok(
        isAppError(await failureOf(store.append(stream, [two, fact(stream, 3)], 0)), 'wrong_revision'),
      )
      assert.equal((await Array.fromAsync(store.read(stream))).map(payloadOf), [1, 2])
    },
  )

  append('the same id with another payload keeps the first', async ({ store }) => {
    const stream = `a-${newId()}`
    const { id } = fact(stream, 0)
    await store.append(stream, [fact(stream, 'first', id)], 'none')
    assert.is((await store.append(stream, [fact(stream, 'second', id)], 'none')).revision, 0)
    assert.equal((await Array.fromAsync(store.read(stream))).map(payloadOf), ['first'])
  })

  append('an id means something within its stream only', async ({ store }) => {
    const [stream, other] = [`a-${newId()}`, `a-${newId()}`]
    const same = fact(stream, 1)
    await store.append(stream, [same], 'none')
    assert.is((await store.append(other, [same], 'none')).revision, 0)
    assert.is((await store.append(`a-${newId()}`, [same, same], 'none')).revision, 1)
    assert.is((await Array.fromAsync(store.read(other))).length, 1)
  })

  append('a repeat that meets the first while it is under way gives the same answer', async ({ store }) => {
    const stream = `a-${newId()}`
    const pair = facts(stream, 2)
    const [first, again] = await Promise.all([
      store.append(stream, pair, 'none'),
      store.append(stream, pair, 'none'),
    ])
    assert.equal(again, first)
    assert.is((await Array.fromAsync(store.read(stream))).length, 2)
  })

  append('of 32 at once with one expected revision one wins', async ({ store }) => {
    const stream = `a-${newId()}`
    await store.append(stream, facts(stream, 1), 'none')
    const tries = numbers(32).map((i) => store.append(stream, [fact(stream, `try ${i}`)], 0))
    const settled = await Promise.allSettled(tries)
    const lost = settled.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
    assert.is(lost.length, 31)
    for (const error of lost) {
      assert.ok(isAppError(error, 'wrong_revision'), String(error))
      assert.equal(error.data, { stream, expected: 0, actual: 1 })
    }
    const winner = settled.findIndex(({ status }) => status === 'fulfilled')
    assert.equal((await Array.fromAsync(store.read(stream))).map(payloadOf), [0, `try ${winner}`])
  })

  append('200 that follow each other without waiting all succeed, in order', async ({ store }) => {
    const stream = `a-${newId()}`
    const appended = await Promise.all(
      numbers(200).map((i) => store.append(stream, [fact(stream, i)], i === 0 ? 'none' : i - 1)),
    )
    assert.equal(
      appended.map(({ revision }) => revision),
      numbers(200),
    )
    assert.equal((await Array.fromAsync(store.read(stream))).map(payloadOf), numbers(200))
  })

  append(
    'an empty append at the right revision returns the revision and stores nothing',
    async ({ store }) => {
      const stream = `a-${newId()}`
      await store.append(stream, facts(stream, 3), 'none')
      assert.is((await store.append(stream, [], 2)).revision, 2)
      assert.ok(isAppError(await failureOf(store.append(stream, [], 7)), 'wrong_revision'))
      assert.is((await Array.fromAsync(store.read(stream))).length, 3)
    },
  )

  append('only the append with a value outside JSON is refused', async ({ store }) => {
    const stream = `a-${newId()}`
    const cycle: { self?: unknown } = {}
    cycle.self = cycle
    const settled = await Promise.allSettled([
      store.append(`${stream}-good`, facts(stream, 1), 'none'),
      store.append(stream, [fact(stream, 1), fact(stream, 10n)], 'none'),
      store.append(stream, [fact(stream, cycle)], 'none'),
      store.append(`${stream}-better`, facts(stream, 1), 'none'),
    ])
    assert.equal(
      settled.map(({ status }) => status),
      ['fulfilled', 'rejected', 'rejected', 'fulfilled'],
    )
    for (const result of settled)
      if (result.status === 'rejected') assert.ok(isAppError(result.reason, 'bad_request'))
    assert.is((await store.append(stream, facts(stream, 1), 'none')).revision, 0)
  })

  append(
    'takes stream names of any text, and keeps them apart',
    alone(open, async ({ store, reopen }) => {
      const id = newId()
      const names = [
        `probe ${id} ключ/ 値`,
        `probe ${id} ключ/`,
        `Probe ${id} ключ/`,
        `${id}-__proto__`,
        `${id}:a'b"c%_\\`,
      ]
      for (const stream of names) await store.append(stream, [fact(id, stream)], 'none')
      const later = await reopen()
      for (const stream of names) {
        const stored = await Array.fromAsync(later.read(stream))
        assert.equal(
          stored.map((event) => [event.stream, payloadOf(event)]),
          [[stream, stream]],
        )
      }
    }),
  )

  append(
    'a large event is one append',
    alone(open, async ({ store, reopen }) => {
      const stream = `a-${newId()}`
      const text = 'ü'.repeat(450 << 10)
      assert.is((await store.append(stream, [fact(stream, text)], 'none')).revision, 0)
      const later = await reopen()
      const [stored] = await Array.fromAsync(later.read(stream))
      assert.ok(stored && payloadOf(stored) === text)
    }),
  )

  append.run()
}
