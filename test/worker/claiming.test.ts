import * as assert from 'uvu/assert'
import { WaitingCalls } from '../../src/loops/waitingCalls.ts'
import { openHints } from '../../src/adapters/embedded/hints.ts'
import { requestRun } from '../../src/commands/runs/requestRun.ts'
import { Offers, takeOffers } from '../../src/cluster/offers.ts'
import { openAggregates } from '../../src/domain/aggregates.ts'
import { AppError, isAppError } from '../../src/errors.ts'
import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import { silent } from '../../src/logger.ts'
import type { Hints } from '../../src/ports/hints.ts'
import type { WantedRun } from '../../src/ports/claimer.ts'
import { type Node, openNode } from '../support/openNode.ts'
import { forwarding } from '../support/forwarding.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { deployBuild, openWorker, wanted } from './openWorker.ts'

type Build = Awaited<ReturnType<typeof deployBuild>>
type Context = { node: Node; build: Build; hints: Hints; stop: AbortController; calls: WaitingCalls }

/** Each environment is an organization of its own. */
const directory = { orgIdOf: (env_id: string) => env_id }

/** Announces rooms until an offer was made: an announcement is trusted for a second only, and a machine may stall for longer. */
const announced = (hints: Hints, rooms: readonly string[], offer: () => boolean) =>
  until(() => {
    for (const text of rooms) hints.publish('room', text)
    return offer()
  })

const opening = async (context: Context) => {
  const node = await openNode()
  const hints: Hints = { ...openHints(), connected: true } // as if another node heard them
  Object.assign(context, {
    node,
    build: await deployBuild(node),
    hints,
    stop: new AbortController(),
    calls: new WaitingCalls(),
  })
}
const closing = async ({ node, stop, calls }: Context) => {
  stop.abort()
  calls.end()
  await node.close()
}

/** Requests a run as an API node without a worker does. */
const ask = ({ node, build, calls }: Context, offers: Pick<Offers, 'make'>) => {
  const { plan, input } = wanted(build)
  const ids = { stream: newId(), run: newId() }
  const ending = requestRun(
    { store: node.store, aggregates: node.aggregates, claimer: null, offers, calls },
    { run: { ...plan, timeout: 60_000 }, input },
    {
      cause: { env_id: 'env', correlation_id: newId() },
      newId: (kind) => ids[kind as keyof typeof ids],
    },
  )
  ending.catch(() => {})
  return { ...ids, ending }
}

const offering = suite<Context>('an offered run')
offering.before.each(opening)
offering.after.each(closing)

offering('is claimed by a worker that learned of it only by the offer', async (context) => {
  const { node, hints, stop } = context
  const { worker, held } = openWorker(node)
  const offers = new Offers(hints, directory)
  const hasRoom = new Promise((resolve) => hints.on('room', resolve))
  takeOffers(worker, hints, { signal: stop.signal, logger: silent })
  await hasRoom
  const { stream } = ask(context, offers)
  await until(() => held.length === 1)
  assert.equal(await node.typesIn(stream), ['StreamCreated', 'RunRequested', 'RunStarted'])
  await worker.stop({ drainMs: 10 })
})

offering('that cannot be read does not end the node, which takes the next one', async (context) => {
  const { node, hints, stop } = context
  const { worker, held } = openWorker(node)
  const warned: string[] = []
  const logger = { ...silent, warn: (message: string) => void warned.push(message) }
  const hasRoom = new Promise((resolve) => hints.on('room', resolve))
  const offers = new Offers(hints, directory)
  takeOffers(worker, hints, { signal: stop.signal, logger })
  await hasRoom
  for (const text of ['{"plan":', 'null', '{"plan":{}}'])
    hints.publish('offered', `${worker.worker_id} ${text}`)
  ask(context, offers)
  await until(() => held.length === 1)
  assert.equal(
    warned,
    Array.from({ length: 3 }, () => 'An offered run could not be claimed'),
  )
  await worker.stop({ drainMs: 10 })
})

offering('that no worker takes is requested in the log, and runs once', async (context) => {
  const { node } = context
  const made: WantedRun[] = []
  const { stream } = ask(context, { make: (run) => made.push(run) > 0 })
  await until(async () => (await node.typesIn(stream)).length > 0)
  assert.equal(await node.typesIn(stream), ['StreamCreated', 'RunRequested'])
  const { worker, held } = openWorker(node)
  await worker.take(made[0] as WantedRun) // too late
  assert.equal([await node.typesIn(stream), held.length], [['StreamCreated', 'RunRequested'], 0])
  await worker.stop({ drainMs: 10 })
})

offering('goes to the workers with room, in turn', async ({ hints, build }) => {
  const heard: string[] = []
  hints.on('offered', (text) => heard.push(text.split(' ', 1)[0] ?? ''))
  const offers = new Offers(hints, directory)
  const run = wanted(build)
  assert.not(offers.make(run))
  await announced(hints, ['a yes', 'b yes', 'c yes', 'b no'], () => offers.make(run))
  for (let n = 0; n < 3; n++) assert.ok(offers.make(run))
  await until(() => heard.length === 4)
  assert.equal(heard.toSorted(), ['a', 'a', 'c', 'c'])
  assert.not(heard[0] === heard[1])
})

offering(
  'does not go to a worker where runs of its organization wait for places',
  async ({ hints, build }) => {
    const heard: string[] = []
    hints.on('offered', (text) => heard.push(text.split(' ', 1)[0] ?? ''))
    const offers = new Offers(hints, directory)
    const run = wanted(build)
    await announced(hints, ['a yes env,third', 'b yes third'], () => offers.make(run))
    for (let n = 0; n < 3; n++) assert.ok(offers.make(run))
    const third = { ...run, cause: { ...run.cause, env_id: 'third' } }
    assert.not(offers.make(third))
    await until(() => heard.length === 4)
    assert.equal(new Set(heard), new Set(['b']))
  },
)

offering('of a REPL goes to the same worker as before, from any node', async ({ hints, build }) => {
  const heard: string[][] = []
  hints.on('offered', (text) =>
    heard.push([text.split(' ', 1)[0] ?? '', /"repl_id":"(\w+)"/.exec(text)?.[1] ?? '']),
  )
  const nodes = [new Offers(hints, directory), new Offers(hints, directory)]
  const { plan, ...run } = wanted(build)
  const session = (repl_id: string) => ({ ...run, plan: { ...plan, target: { code: '1', repl_id } } })
  await announced(hints, ['a yes', 'b yes', 'c yes', 'd yes'], () =>
    nodes.every((offers) => offers.make(session('first'))),
  )
  heard.length = 0
  for (const repl_id of ['r1', 'r2', 'r3', 'r4', 'r5', 'r6', 'r7', 'r8'])
    for (const offers of [...nodes, ...nodes.toReversed()]) assert.ok(offers.make(session(repl_id)))
  await until(() => heard.length === 32)
  const pairs = new Set(heard.map((pair) => pair.join(' ')))
  assert.is(pairs.size, 8)
  assert.ok(new Set(heard.map(([worker_id]) => worker_id)).size > 1)
})

offering('is not made when it is long, or no other node can receive it', async ({ hints, build }) => {
  const [offers, unheard] = [
    new Offers(hints, directory),
    new Offers({ ...hints, connected: false }, directory),
  ]
  await announced(hints, ['a yes'], () => offers.make(wanted(build)))
  assert.not(offers.make({ ...wanted(build), input: { kind: 'args', value: ['x'.repeat(20_000)] } }))
  assert.not(unheard.make(wanted(build)))
})

offering.run()

const claim = suite<Context>('a claim whose answer was lost')
claim.before.each(opening)
claim.after.each(closing)

claim(
  'is found in the log by the worker that made it, also when the event goes to another worker',
  async ({ node, build }) => {
    const run = wanted(build)
    const losing = forwarding(node.store, {
      async append(stream, ...rest) {
        const appended = await node.store.append(stream, ...rest)
        if (stream === streamOf.stream(run.plan.stream_id)) throw new AppError('unavailable', 'No answer')
        return appended
      },
      consume: (group, { signal }) => node.store.consume(group, { types: ['OrgChanged'], signal }),
    })
    const { worker, held } = openWorker(
      { ...node, aggregates: openAggregates(losing) },
      { answeredMs: 100 },
      losing,
    )
    await worker.start()
    const refusal = await worker.take(run).catch((error: unknown) => error)
    assert.ok(isAppError(refusal, 'unavailable'))
    await until(() => held.length === 1)
    await worker.stop({ drainMs: 10 })
  },
)

claim('is named in the log when a defect keeps the worker from reading it', async ({ node, build }) => {
  const run = wanted(build)
  const stream = streamOf.stream(run.plan.stream_id)
  let isStored = false
  const broken = forwarding(node.store, {
    async append(to, ...rest) {
      const appended = await node.store.append(to, ...rest)
      if (to !== stream) return appended
      isStored = true
      throw new AppError('unavailable', 'No answer')
    },
    async *read(from, options) {
      if (isStored && from === stream)
        throw new AppError('internal_server_error', 'A fact cannot be processed')
      yield* node.store.read(from, options)
    },
    consume: (group, { signal }) => node.store.consume(group, { types: ['OrgChanged'], signal }),
  })
  const lines: unknown[] = []
  const logger = { ...silent, error: (...line: unknown[]) => void lines.push(line) }
  const { worker } = openWorker(
    { ...node, logger, aggregates: openAggregates(broken) },
    { answeredMs: 10 },
    broken,
  )
  await worker.start()
  await worker.take(run).catch(() => {})
  await until(() => lines.length > 0)
  assert.match(JSON.stringify(lines), run.plan.run_id)
  assert.match(JSON.stringify(lines), 'A fact cannot be processed')
  await worker.stop({ drainMs: 10 })
})

claim.run()

const early = suite<Context>('a delivery that comes before the answer to its append')
early.before.each(opening)
early.after.each(closing)

early('waits for it, and reads nothing', async ({ node, build }) => {
  const run = wanted(build)
  const stream = streamOf.stream(run.plan.stream_id)
  const delivered = Promise.withResolvers<void>()
  const acknowledged = Promise.withResolvers<void>()
  const reads: string[] = []
  const slow = forwarding(node.store, {
    async append(to, ...rest) {
      const appended = await node.store.append(to, ...rest)
      if (to === stream) await delivered.promise
      return appended
    },
    read: (from, ...rest) => {
      reads.push(from)
      return node.store.read(from, ...rest)
    },
    async *consume(group, options) {
      for await (const delivery of node.store.consume(group, options)) {
        yield { ...delivery, ack: () => (delivery.ack(), acknowledged.resolve()) }
        if (delivery.event.stream === stream) setImmediate(delivered.resolve)
      }
    },
  })
  const { worker, held } = openWorker({ ...node, aggregates: openAggregates(slow) }, {}, slow)
  await worker.start()
  await worker.take(run)
  await acknowledged.promise
  assert.equal([held.length, reads.includes(stream)], [1, false])
  await worker.stop({ drainMs: 10 })
})

early.run()

const imported = suite<Context>('an imported event')
imported.before.each(opening)
imported.after.each(closing)

imported('is not dispatched again, because the facts that followed it are imported too', async ({ node }) => {
  const publish = async (more: object): Promise<string> => {
    const [stream_id, event_id] = [newId(), newId()]
    const metadata = { env_id: 'env', correlation_id: event_id, v: 1, ...more }
    const published = {
      event_id,
      stream_id,
      event_type: 'asked',
      source: 'api',
      event_time: '2026-01-01T00:00:00.000Z',
    }
    const facts = [
      { id: newId(), event: { type: 'StreamCreated', stream_id }, metadata },
      { id: newId(), event: { type: 'EventPublished', ...published }, metadata },
    ] as const
    await node.store.append(streamOf.stream(stream_id), facts, 'none')
    return stream_id
  }
  const { worker } = openWorker(node)
  await worker.start()
  const before = await publish({ first_at: '2026-01-01T00:00:00.000Z' })
  const other = await publish({})
  await until(async () => (await node.typesIn(other)).includes('EventHandled'))
  assert.equal(await node.typesIn(before), ['StreamCreated', 'EventPublished'])
  await worker.stop({ drainMs: 10 })
})
imported.run()
