import * as assert from 'uvu/assert'
import { PART_RUNS } from '../../src/commands/events/planRuns.ts'
import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import { type Node, now, openNode } from '../support/openNode.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { deployBuild, openWorker } from './openWorker.ts'

const HANDLERS = 3 * PART_RUNS - 1

type Context = { node: Node }

const many = suite<Context>('a worker with an event that has handlers for three parts')

many.before.each(async (context) => {
  context.node = await openNode()
  await deployBuild(context.node, 'env', [
    ...Array.from({ length: HANDLERS }, (_, n) => ({ ns: 'a', var: `f${n}`, on_event: 'many' })),
    { ns: 'a', var: 'single', on_event: 'single' },
  ])
})
many.after.each(({ node }) => node.close())

/** Publishes an event; resolves with its stream. */
const send = async ({ aggregates }: Node, event_type: string): Promise<string> => {
  const [stream_id, event_id] = [newId(), newId()]
  const event = { event_id, event_type, data: { value: null }, source: 'api', create: true, now } as const
  const command = { type: 'PublishEvent', stream_id, env_id: 'env', ...event } as const
  const cause = { env_id: 'env', correlation_id: stream_id }
  await aggregates.streams.handle(streamOf.stream(stream_id), command, cause)
  return stream_id
}

const count = async (node: Node, stream_id: string, type: string): Promise<number> =>
  (await node.typesIn(stream_id)).filter((each) => each === type).length

/** Each handler was claimed once, beside the next attempts of lost runs. */
const assertWhole = async ({ store }: Node, stream_id: string) => {
  const ids: string[] = []
  for await (const { event } of store.read(streamOf.stream(stream_id)))
    if (event.type === 'RunStarted' && event.attempt === 1) ids.push(event.run_id)
  assert.equal([ids.length, new Set(ids).size], [HANDLERS, HANDLERS])
}

many('begins the runs of a part before the others are claimed', async ({ node }) => {
  const stream_id = await send(node, 'many')
  const { worker, invocations } = openWorker(node)
  await worker.start()
  await until(() => invocations.length === PART_RUNS)
  assert.equal(
    [await count(node, stream_id, 'RunStarted'), await count(node, stream_id, 'EventHandled')],
    [PART_RUNS, 0],
  )
  await worker.stop({ drainMs: 10 })
})

many('claims each further part when fewer runs wait than have places', async ({ node }) => {
  const stream_id = await send(node, 'many')
  const { worker, invocations, held } = openWorker(node)
  await worker.start()
  for (let ended = 0; ended < HANDLERS; ended++) {
    await until(() => invocations.length > ended)
    await invocations[ended]?.loadInput()
    held[ended]?.({ status: 'succeeded', result: ended })
  }
  await until(async () => (await count(node, stream_id, 'RunSucceeded')) === HANDLERS)
  await assertWhole(node, stream_id)
  assert.is(await count(node, stream_id, 'EventHandled'), 1)
  await worker.stop({ drainMs: 10 })
})

many('claims another event of the organization between two parts', async ({ node }) => {
  const stream_id = await send(node, 'many')
  const { worker, invocations, held } = openWorker(node)
  await worker.start()
  await until(() => invocations.length === PART_RUNS)
  const later = await send(node, 'single')
  for (let ended = 0; (await count(node, later, 'RunStarted')) === 0; ended++) {
    assert.ok(ended < HANDLERS, 'the event was not claimed before all handlers of the other one had ended')
    await until(() => invocations.length > ended)
    await invocations[ended]?.loadInput()
    held[ended]?.({ status: 'succeeded', result: ended })
  }
  assert.is(await count(node, stream_id, 'EventHandled'), 0)
  await worker.stop({ drainMs: 10 })
})

many('leaves the parts that it did not claim to another worker when it stops', async ({ node }) => {
  const stream_id = await send(node, 'many')
  const first = openWorker(node)
  await first.worker.start()
  await until(() => first.invocations.length === PART_RUNS)
  const stopped = first.worker.stop()
  const error = { code: 'worker_lost', message: 'closed' }
  for (const end of first.held) end({ status: 'lost', error }) // a worker that ends them has 2 s to store this
  await stopped
  const second = openWorker(node, { maxConcurrentRuns: HANDLERS })
  await second.worker.start()
  await until(async () => (await count(node, stream_id, 'EventHandled')) === 1)
  await assertWhole(node, stream_id)
  await until(() => second.invocations.length === HANDLERS) // with the next attempts of those that the first one lost
  await second.worker.stop({ drainMs: 10 })
})

many.run()
