import * as assert from 'uvu/assert'
import { CommandHandler } from '../../src/domain/commandHandler.ts'
import { openingOf, stream } from '../../src/domain/stream.ts'
import { isAppError } from '../../src/errors.ts'
import type { Recorded } from '../../src/events/event.ts'
import { newId } from '../../src/ids.ts'
import { suite } from '../support/suite.ts'
import { type Context, cause, dispatchOf, now, opening, publish, typesIn } from './handledCommands.ts'

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
