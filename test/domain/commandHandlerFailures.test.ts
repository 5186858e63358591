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
  seen,
  typesIn,
} from './handledCommands.ts'

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
