import * as assert from 'uvu/assert'
import { CommandHandler } from '../../src/domain/commandHandler.ts'
import { stream, type StreamCommand, type StreamEvent, type StreamState } from '../../src/domain/stream.ts'
import { AppError } from '../../src/errors.ts'
import { newId } from '../../src/ids.ts'
import { suite } from '../support/suite.ts'
import {
  type Context,
  cause,
  codeOf,
  dispatchOf,
  opening,
  publish,
  seen,
  typesIn,
} from './handledCommands.ts'

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

/** Twelve commands, of which eleven share an append. `before` is called before that append. */
const batched = async ({ watch, at }: Context, handler: Handler, before: () => Promise<unknown>) => {
  await new Promise(setImmediate) // the handler rests
  const next = watch.appends + 2
  watch.before = async (append) => void (append === next && (await before()))
  const codes = await Promise.all(
    Array.from({ length: 12 }, () => codeOf(handler.handle(at, publish(), cause))),
  )
  assert.equal(new Set(codes), new Set(['fulfilled']))
  watch.before = async () => {}
}
type Handler = CommandHandler<StreamState, StreamCommand, StreamEvent>

nodes('is all that is read when it comes before a batch of commands once more', async (context) => {
  const { store, watch, at } = context
  const [mine, theirs] = [new CommandHandler(store, stream), new CommandHandler(store, stream)]
  await mine.handle(at, publish(true), cause)
  for (let i = 0; i < 20; i++) await batched(context, mine, async () => {})
  const lose = () => batched(context, mine, () => theirs.handle(at, publish(), cause))
  await lose()
  const before = (await typesIn(store, at)).length
  await lose()
  assert.is(watch.readFrom, before + 1, 'after the first command, and before what the other node has stored')
  const [known, stored] = [await mine.read(at, seen), await new CommandHandler(store, stream).read(at, seen)]
  assert.equal(known, stored)
  assert.is(stored.waiting, 1 + 22 * 12 + 2)
})

nodes(
  'is not searched for when the commands of a batch are too large together once more',
  async (context) => {
    const { store, watch, at } = context
    const mine = new CommandHandler(store, stream)
    await mine.handle(at, publish(true), cause)
    const refuse = () =>
      batched(context, mine, async () => {
        throw new AppError('payload_too_large', 'more than an append can have')
      })
    await refuse()
    const { reads } = watch
    await refuse()
    assert.is(watch.reads, reads)
    assert.equal(await mine.read(at, seen), { revision: 25, waiting: 25 })
  },
)

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
