import * as assert from 'uvu/assert'
import { CommandHandler } from '../../src/domain/commandHandler.ts'
import type { Immutable } from '../../src/domain/immutable.ts'
import { name } from '../../src/domain/name.ts'
import { openingOf, stream, type StreamCommand, type StreamState } from '../../src/domain/stream.ts'
import { AppError, isAppError } from '../../src/errors.ts'
import type { Recorded } from '../../src/events/event.ts'
import { newId } from '../../src/ids.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import { forwarding } from '../support/forwarding.ts'
import { suite } from '../support/suite.ts'
import { openWatchedStore } from './watchedStore.ts'

const now = '2026-05-01T10:00:00.000Z'
const cause = { env_id: 'env', correlation_id: 'c' }
const publish = (create = false, event_id = newId(), env_id = 'env'): StreamCommand => ({
  type: 'PublishEvent',
  stream_id: 's',
  env_id,
  event_id,
  event_type: 'x',
  data: { value: 1 },
  source: 'api',
  create,
  now,
})
const dispatchOf = (event_id: string): StreamCommand => ({
  type: 'DispatchEvent',
  stream_id: 's',
  event_id,
  plans: [],
  worker_id: 'w',
  now,
})
const reserve = (holder: string) =>
  ({ type: 'ReserveName', name: 'shop', by: { holder }, taken: 'project_exists' }) as const

const typesIn = async (store: EventStore, at: string) =>
  (await Array.fromAsync(store.read(at))).map(({ event }) => event.type)
const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'fulfilled',
    (error: unknown) => (error instanceof AppError ? error.code : String(error)),
  )

type Context = ReturnType<typeof openWatchedStore> & { at: string }
const opening = (context: Context) => Object.assign(context, openWatchedStore(), { at: `stream-${newId()}` })

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

const nodes = suite<Context>('what another node stored')
nodes.before.each(opening)
nodes.after.each(({ store }) => store.close())

nodes('is known to a command that would otherwise find nothing to do (I3)', async ({ store, at }) => {
  const [mine, theirs] = [new CommandHandler(store, stream), new CommandHandler(store, stream)]
  await mine.handle(at, publish(true), cause)
  const event_id = newId()
  await theirs.handle(at, publish(false, event_id), cause)
  const { events } = await mine.handle(at, dispatchOf(event_id), cause)
  assert.equal(
    events.map(({ type }) => type),
    ['EventHandled'],
  )
})

nodes('is known to a command that would otherwise be refused (I2)', async ({ store, at }) => {
  const [mine, theirs] = [new CommandHandler(store, stream), new CommandHandler(store, stream)]
  assert.is(await codeOf(mine.handle(at, publish(), cause)), 'not_found')
  await theirs.handle(at, publish(true), cause)
  assert.is(await codeOf(mine.handle(at, publish(), cause)), 'fulfilled')
})

nodes('does not block a command, however busy the stream is', async ({ store, watch, at }) => {
  const [mine, theirs] = [new CommandHandler(store, stream), new CommandHandler(store, stream)]
  await theirs.handle(at, publish(true), cause)
  let writing = true
  const write = async () => {
    while (writing) {
      await theirs.handle(at, publish(), cause)
      await new Promise(setImmediate) // as a network would leave it alone for a moment
    }
  }
  const writer = write()
  const codes: string[] = []
  for (let i = 0; i < 20; i++) codes.push(await codeOf(mine.handle(at, publish(), cause)))
  writing = false
  await writer
  assert.equal(
    codes,
    Array.from({ length: 20 }, () => 'fulfilled'),
  )
  assert.ok(watch.appends > 25, `${watch.appends} appends`)
})

/** Selects a part of the state, as a reader does. */
const seen = ({ undispatched }: Immutable<StreamState>, revision: number) => ({
  revision,
  waiting: undispatched.size,
})

nodes('reports the error of a reader to that reader alone', async ({ store, at }) => {
  const handler = new CommandHandler(store, stream)
  await handler.handle(at, publish(true), cause)
  const refused = handler.read(at, () => {
    throw new AppError('not_found', 'not here')
  })
  const [code, other] = await Promise.all([codeOf(refused), handler.read(at, seen)])
  assert.is(code, 'not_found')
  assert.equal(other, { revision: 1, waiting: 1 })
})

nodes('is in the state that is read', async ({ store, at }) => {
  const [mine, theirs] = [new CommandHandler(store, stream), new CommandHandler(store, stream)]
  await mine.handle(at, publish(true), cause)
  const { firstRevision } = await theirs.handle(at, publish(), cause)
  assert.equal(await mine.read(at, seen), { revision: firstRevision, waiting: 2 })
})

nodes('is shown as it was stored, whatever waits to be decided next', async ({ store, at }) => {
  const handler = new CommandHandler(store, stream)
  const first = handler.handle(at, publish(true), cause)
  const reading = handler.read(at, seen)
  const rest = [1, 2, 3].map(() => handler.handle(at, publish(), cause))
  assert.equal(await reading, { revision: 1, waiting: 1 })
  await Promise.all([first, ...rest])
})

nodes('is complete in every state that is read while commands continue', async ({ store, at }) => {
  const [mine, theirs] = [new CommandHandler(store, stream), new CommandHandler(store, stream)]
  await mine.handle(at, publish(true), cause)
  let writing = true
  const write = async (handler: typeof mine) => {
    for (let i = 0; i < 100; i++) {
      const event_id = newId()
      await handler.handle(at, publish(false, event_id), cause)
      if (i % 2 === 0) await handler.handle(at, dispatchOf(event_id), cause)
      await new Promise(setImmediate)
    }
  }
  const all: ReturnType<typeof seen>[] = []
  const read = async () => {
    while (writing) {
      all.push(await mine.read(at, seen))
      await new Promise(setImmediate)
    }
  }
  const reading = [read(), read(), read()]
  await Promise.all([write(mine), write(theirs)])
  writing = false
  await Promise.all(reading)
  const types = await typesIn(store, at)
  const count = (type: string, revision: number) =>
    types.slice(0, revision + 1).filter((one) => one === type).length
  assert.ok(all.length > 3)
  for (const { revision, waiting } of all) {
    assert.is(waiting, count('EventPublished', revision) - count('EventHandled', revision), `at ${revision}`)
  }
})

nodes.run()

const failures = suite<Context>('a store that fails')
failures.before.each(opening)
failures.after.each(({ store }) => store.close())
const down = () => Promise.reject(new AppError('unavailable', 'down'))

failures('fails the command, and the next one starts from what is stored', async ({ store, watch, at }) => {
  const handler = new CommandHandler(store, stream)
  await handler.handle(at, publish(true), cause)
  watch.before = down
  const failed = [1, 2, 3].map(() => codeOf(handler.handle(at, publish(), cause)))
  assert.equal(await Promise.all(failed), ['unavailable', 'unavailable', 'unavailable'])
  watch.before = async () => {}
  assert.is((await handler.handle(at, publish(), cause)).firstRevision, 2)
  assert.is((await handler.read(at, seen)).waiting, 2)
})

failures('refuses no command because of facts that were not stored', async ({ store, watch, at }) => {
  const handler = new CommandHandler(store, name)
  watch.before = (append) => (append === 2 ? down() : Promise.resolve())
  const first = handler.handle(at, reserve('a'), cause)
  const release = handler.handle(at, { type: 'ReleaseName', name: 'shop', holder: 'a' }, cause)
  const [second, third] = [handler.handle(at, reserve('b'), cause), handler.handle(at, reserve('c'), cause)]
  const codes = await Promise.all([first, release, second, third].map(codeOf))
  assert.equal(codes, ['fulfilled', 'unavailable', 'unavailable', 'unavailable'])
  assert.is(await codeOf(handler.handle(at, reserve('c'), cause)), 'project_exists')
})

failures('that was stored nevertheless is detected by the repeated command', async ({ store, watch, at }) => {
  const handler = new CommandHandler(store, stream)
  const command = publish(true)
  watch.after = (append) => (append === 1 ? down() : Promise.resolve())
  assert.is(await codeOf(handler.handle(at, command, cause, { fresh: true })), 'unavailable')
  assert.is((await handler.handle(at, command, cause, { fresh: true })).firstRevision, 0)
  assert.equal(await typesIn(store, at), ['StreamCreated', 'EventPublished'])
})

failures('when it cannot be read', async ({ store, at }) => {
  const handler = new CommandHandler(store, stream)
  await store.close()
  assert.is(await codeOf(handler.handle(at, publish(true), cause)), 'unavailable')
  assert.is(await codeOf(handler.read(at, seen)), 'unavailable')
})

failures('whose read ended early decides nothing, because known facts are missing', async ({ store, at }) => {
  const event_id = newId()
  await new CommandHandler(store, stream).handle(at, publish(true), cause)
  const { firstRevision } = await new CommandHandler(store, stream).handle(
    at,
    publish(false, event_id),
    cause,
  )
  let broken = true
  const cut = forwarding(store, {
    async *read(from, options) {
      if (!broken) yield* store.read(from, options)
    },
  })
  const handler = new CommandHandler(cut, stream)
  const known = { known: firstRevision }
  assert.is(await codeOf(handler.handle(at, dispatchOf(event_id), cause, known)), 'unavailable')
  broken = false
  assert.is((await handler.handle(at, dispatchOf(event_id), cause, known)).events.length, 1)
  assert.is((await handler.handle(at, dispatchOf(event_id), cause, known)).events.length, 0)
})

failures.run()

const fresh = suite<Context>('a fresh stream')
fresh.before.each(opening)
fresh.after.each(({ store }) => store.close())

fresh('is not read', async ({ store, watch, at }) => {
  const handler = new CommandHandler(store, stream)
  await handler.handle(at, publish(true), cause, { fresh: true })
  await handler.handle(at, publish(), cause)
  assert.is(watch.reads, 0)
})

fresh('is read if it existed after all', async ({ store, at }) => {
  await new CommandHandler(store, stream).handle(at, publish(true), cause)
  const { firstRevision } = await new CommandHandler(store, stream).handle(at, publish(true), cause, {
    fresh: true,
  })
  assert.is(firstRevision, 2)
  assert.equal(await typesIn(store, at), ['StreamCreated', 'EventPublished', 'EventPublished'])
  const refused = new CommandHandler(store, stream).handle(at, publish(true, newId(), 'other'), cause, {
    fresh: true,
  })
  assert.ok(isAppError(await refused.catch((error: unknown) => error), 'not_found'))
})

fresh(
  'that another node began is not read by a caller that has its opening fact',
  async ({ store, watch, at }) => {
    const event_id = newId()
    await new CommandHandler(store, stream).handle(at, publish(true, event_id), cause, { fresh: true })
    const [, published] = await Array.fromAsync(store.read(at))
    watch.reads = 0
    const { events } = await new CommandHandler(store, stream).handle(at, dispatchOf(event_id), cause, {
      opening: openingOf(published as Recorded),
    })
    assert.is(events[0]?.type, 'EventHandled')
    assert.is(watch.reads, 0)
  },
)

fresh('is read from its opening if it has continued since', async ({ store, at }) => {
  const event_id = newId()
  const first = new CommandHandler(store, stream)
  await first.handle(at, publish(true, event_id), cause)
  await first.handle(at, dispatchOf(event_id), cause)
  const [, published, ...rest] = await Array.fromAsync(store.read(at))
  const { events } = await new CommandHandler(store, stream).handle(at, dispatchOf(event_id), cause, {
    opening: openingOf(published as Recorded),
  })
  assert.equal(events, [])
  assert.equal(rest.map(openingOf), [undefined])
})

fresh(
  'that two workers claim a run of at the same revision gives it to one of them',
  async ({ store, at }) => {
    const [run_id, place] = [newId(), { build_id: 'b', project_id: 'p', project_name: 'shop' }]
    const plan = {
      run_id,
      stream_id: 's',
      run_type: 'call',
      ...place,
      target: { ns: 'a', var: 'b' },
      attempt: 1,
    } as const
    const request = { type: 'RequestRun', env_id: 'env', plan, create: true } as const
    await new CommandHandler(store, stream).handle(at, request, cause, { fresh: true })
    const [, requested] = await Array.fromAsync(store.read(at))
    const claimOf = (worker_id: string) =>
      new CommandHandler(store, stream).handle(at, { type: 'ClaimRun', run_id, worker_id, now }, cause, {
        opening: openingOf(requested as Recorded),
      })
    assert.is((await claimOf('one')).events.length, 1)
    assert.equal((await claimOf('two')).events, [])
    assert.equal(await typesIn(store, at), ['StreamCreated', 'RunRequested', 'RunStarted'])
  },
)

fresh.run()
