import * as assert from 'uvu/assert'
import { CommandHandler } from '../../src/domain/commandHandler.ts'
import { name } from '../../src/domain/name.ts'
import { stream } from '../../src/domain/stream.ts'
import { AppError } from '../../src/errors.ts'
import { newId } from '../../src/ids.ts'
import { forwarding } from '../support/forwarding.ts'
import { suite } from '../support/suite.ts'
import {
  type Context,
  cause,
  codeOf,
  dispatchOf,
  opening,
  publish,
  reserve,
  typesIn,
} from './handledCommands.ts'

const aggregates = suite<Context>('a command')
aggregates.before.each(opening)
aggregates.after.each(({ store }) => store.close())

aggregates('returns its facts and their revisions', async ({ store, at }) => {
  const handler = new CommandHandler(store, stream)
  const event_id = newId()
  const first = await handler.handle(at, publish(true, event_id), cause)
  assert.equal(
    first.events.map(({ type }) => type),
    ['StreamCreated', 'EventPublished'],
  )
  assert.equal(first.ids, ['s', event_id])
  assert.is(first.firstRevision, 0)
  const second = await handler.handle(at, publish(), cause)
  assert.is(second.firstRevision, 2)
  const stored = await Array.fromAsync(store.read(at))
  assert.equal([first.cursor, second.cursor], [stored[1]?.cursor, stored[2]?.cursor])
  assert.equal(
    stored.map(({ id }) => id),
    [...first.ids, ...second.ids],
  )
  assert.equal(stored[0]?.metadata, { ...cause, v: 1 })
})

aggregates('stores nothing when its effect exists already', async ({ store, watch, at }) => {
  const handler = new CommandHandler(store, stream)
  const event_id = newId()
  await handler.handle(at, publish(true, event_id), cause)
  await handler.handle(at, dispatchOf(event_id), cause)
  const again = await handler.handle(at, dispatchOf(event_id), cause)
  assert.equal(again, { events: [], ids: [], firstRevision: 3, cursor: null })
  assert.is(watch.appends, 2)
})

aggregates(
  'many at once on one stream share few appends, and each has its own result',
  async ({ store, watch, at }) => {
    const handler = new CommandHandler(store, stream)
    const handled = await Promise.all(
      Array.from({ length: 100 }, () => handler.handle(at, publish(true), cause)),
    )
    assert.equal(
      handled.slice(1).map(({ firstRevision }) => firstRevision),
      Array.from({ length: 99 }, (_, i) => i + 2),
    )
    assert.is((await typesIn(store, at)).length, 101)
    assert.ok(watch.appends <= 11, `${watch.appends} appends`)
  },
)

aggregates('is stored alone if it is too large together with others', async ({ store, at }) => {
  const limited = forwarding(store, {
    append(stream, facts, expected) {
      if (facts.length > 3) throw new AppError('payload_too_large', 'Too large')
      return store.append(stream, facts, expected)
    },
  })
  const handler = new CommandHandler(limited, stream)
  await handler.handle(at, publish(true), cause)
  const codes = await Promise.all(
    Array.from({ length: 20 }, () => codeOf(handler.handle(at, publish(), cause))),
  )
  assert.equal(new Set(codes), new Set(['fulfilled']))
  assert.is((await typesIn(store, at)).length, 22)
})

aggregates('does not wait for commands on other streams', async ({ store, watch, at }) => {
  const handler = new CommandHandler(store, stream)
  let release = () => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  watch.before = (append) => (append === 1 ? held : Promise.resolve())
  const waiting = handler.handle(at, publish(true), cause)
  await handler.handle(`${at}-2`, publish(true), cause)
  release()
  await waiting
})

aggregates('is refused without affecting other commands', async ({ store, at }) => {
  const handler = new CommandHandler(store, stream)
  await handler.handle(at, publish(true), cause)
  const codes = await Promise.all([
    codeOf(handler.handle(at, publish(), cause)),
    codeOf(handler.handle(at, publish(), cause)),
    codeOf(handler.handle(at, publish(false, newId(), 'other'), cause)),
    codeOf(handler.handle(at, publish(), cause)),
  ])
  assert.equal(codes, ['fulfilled', 'fulfilled', 'not_found', 'fulfilled'])
  assert.is((await typesIn(store, at)).length, 5)
})

aggregates('is decided again after a concurrent append', async ({ store, at }) => {
  const [one, other] = [new CommandHandler(store, stream), new CommandHandler(store, stream)]
  const work = (handler: typeof one) =>
    Promise.all(Array.from({ length: 200 }, () => handler.handle(at, publish(true), cause)))
  const handled = (await Promise.all([work(one), work(other)])).flat()
  const types = await typesIn(store, at)
  assert.is(types.filter((type) => type === 'StreamCreated').length, 1)
  assert.is(types.length, 401)
  assert.is(new Set(handled.map(({ cursor, firstRevision }) => `${cursor}/${firstRevision}`)).size, 400)
})

aggregates('of two nodes for one name succeeds on one of them', async ({ store }) => {
  for (let round = 0; round < 20; round++) {
    const at = `name-${newId()}`
    const nodes = ['a', 'b', 'c'].map((holder) =>
      new CommandHandler(store, name).handle(at, reserve(holder), cause),
    )
    const codes = await Promise.all(nodes.map(codeOf))
    assert.equal(codes.toSorted(), ['fulfilled', 'project_exists', 'project_exists'])
  }
})

aggregates(
  'is refused as a conflict when every attempt meets a concurrent append',
  async ({ store, watch, at }) => {
    const handler = new CommandHandler(store, stream)
    watch.before = () => Promise.reject(new AppError('wrong_revision', 'always'))
    assert.is(await codeOf(handler.handle(at, publish(true), cause)), 'conflict')
    watch.before = async () => {}
    assert.is(await codeOf(handler.handle(at, publish(true), cause)), 'fulfilled')
  },
)

aggregates(
  'is refused as unavailable when the store reads fewer facts than its refusals prove',
  async ({ store, watch, at }) => {
    const handler = new CommandHandler(store, stream)
    const data = { stream: at, expected: 'none', actual: 7 }
    watch.before = () => Promise.reject(new AppError('wrong_revision', 'stale', { data }))
    assert.is(await codeOf(handler.handle(at, publish(true), cause)), 'unavailable')
    watch.before = async () => {}
    assert.is(await codeOf(handler.handle(at, publish(true), cause)), 'fulfilled')
  },
)

aggregates(
  'is decided on the stored facts when they are fewer than those that were read before',
  async ({ store, watch, at }) => {
    const handler = new CommandHandler(store, stream)
    await handler.handle(at, publish(true), cause)
    const data = { stream: at, expected: 1, actual: 'none' }
    watch.before = (append) =>
      append === 2 ? Promise.reject(new AppError('wrong_revision', 'ahead', { data })) : Promise.resolve()
    assert.is(await codeOf(handler.handle(at, publish(), cause)), 'fulfilled')
    assert.is(watch.readFrom, 0)
  },
)

aggregates.run()
