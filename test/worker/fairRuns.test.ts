import * as assert from 'uvu/assert'
import { storeRequest } from '../../src/commands/runs/requestRun.ts'
import type { Invocation } from '../../src/ports/runtime.ts'
import type { WantedRun } from '../../src/ports/claimer.ts'
import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import { type Node, now, openNode } from '../support/openNode.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { deployBuild, openWorker, wanted } from './openWorker.ts'

type Context = { node: Node; builds: Readonly<Record<string, Awaited<ReturnType<typeof deployBuild>>>> }

const fair = suite<Context>('a worker that several organizations use', { timeoutMs: 60_000 }) // hundreds of commits

fair.before.each(async (context) => {
  const node = await openNode()
  const builds = {
    flood: await deployBuild(node, 'flood'),
    other: await deployBuild(node, 'other'),
    third: await deployBuild(node, 'third'),
  }
  Object.assign(context, { node, builds })
})
fair.after.each(({ node }) => node.close())

/** A run of an environment, which is an organization of its own. */
const runOf = ({ builds }: Context, env_id: string): WantedRun => {
  const build = builds[env_id]
  assert.ok(build)
  const run = wanted(build)
  return { ...run, cause: { ...run.cause, env_id } }
}

const request = async (context: Context, env_id: string): Promise<string> => {
  const run = runOf(context, env_id)
  await storeRequest(context.node, run)
  return run.plan.stream_id
}

const envsOf = (invocations: readonly Invocation[]) => invocations.map(({ build }) => build.env_id)
const has = (node: Node, stream_id: string, type: string) => async () =>
  (await node.typesIn(stream_id)).includes(type as never)

fair(
  'claims the event of another one, although a flood fills the window of the consumer group',
  async (context) => {
    const { node } = context
    const streams = await Promise.all(Array.from({ length: 400 }, () => request(context, 'flood')))
    const { worker, invocations } = openWorker(node, { maxConcurrentRuns: 2 })
    await worker.start()
    await until(() => envsOf(invocations).includes('flood'))
    const later = await request(context, 'other')
    await until(has(node, later, 'RunStarted'))
    assert.ok(envsOf(invocations).includes('other'))
    const claimed = []
    for (const stream_id of streams) if (await has(node, stream_id, 'RunStarted')()) claimed.push(stream_id)
    assert.ok(claimed.length <= 10, `${claimed.length} runs of the flood were claimed; a stop would end them`)
    await worker.stop({ drainMs: 10 })
  },
)

/** Publishes `svc:cancel` for a run. */
const cancel = (node: Node, env_id: string, run_id: string) => {
  const stream_id = newId()
  const command = {
    type: 'PublishEvent',
    stream_id,
    env_id,
    event_id: newId(),
    event_type: 'svc:cancel',
    data: { value: { run_id } },
    source: 'api',
    create: true,
    now,
  } as const
  return node.aggregates.streams.handle(streamOf.stream(stream_id), command, {
    env_id,
    correlation_id: stream_id,
  })
}

/** Publishes an event of an environment. Resolves with its stream. */
const send = async (node: Node, env_id: string, event_type: string): Promise<string> => {
  const [stream_id, event_id] = [newId(), newId()]
  const event = { event_id, event_type, data: { value: null }, source: 'api', create: true, now } as const
  const command = { type: 'PublishEvent', stream_id, env_id, ...event } as const
  await node.aggregates.streams.handle(streamOf.stream(stream_id), command, {
    env_id,
    correlation_id: stream_id,
  })
  return stream_id
}

fair('counts each run that a waiting event starts', async (context) => {
  const { node } = context
  const handlers = Array.from({ length: 50 }, (_, n) => ({ ns: 'a', var: `f${n}`, on_event: 'many' }))
  await deployBuild(node, 'handlers', handlers)
  const streams = await Promise.all(Array.from({ length: 40 }, () => send(node, 'handlers', 'many')))
  const { worker, invocations } = openWorker(node, { maxConcurrentRuns: 10 })
  await worker.start()
  await until(() => envsOf(invocations).includes('handlers'))
  const later = await request(context, 'other')
  await until(has(node, later, 'RunStarted'))
  const types = (await Promise.all(streams.map((stream_id) => node.typesIn(stream_id)))).flat()
  const claimed = types.filter((type) => type === 'RunStarted').length
  assert.ok(claimed <= 2 * handlers.length, `${claimed} runs were claimed`)
  await worker.stop({ drainMs: 10 })
})

for (const waiting of [0, 10, 400]) {
  fair(`carries out a cancellation while it is full and ${waiting} other runs wait`, async (context) => {
    const { node } = context
    const { worker, invocations } = openWorker(node, { maxConcurrentRuns: 2 })
    await worker.start()
    for (let n = 0; n < 2; n++) await request(context, 'flood')
    await until(() => invocations.length === 2)
    for (const { loadInput } of invocations) await loadInput()
    for (let n = 0; n < waiting; n++) await request(context, 'flood')
    const [first] = invocations
    assert.ok(first)
    await cancel(node, 'flood', first.run.run_id)
    await until(has(node, first.run.stream_id, 'RunCancelled'))
    await worker.stop({ drainMs: 10 })
  })
}

fair('claims the waiting runs of a flood one by one as its runs begin', async (context) => {
  const { node } = context
  const streams = await Promise.all(Array.from({ length: 300 }, () => request(context, 'flood')))
  const { worker, invocations, held } = openWorker(node, { maxConcurrentRuns: 4 })
  await worker.start()
  for (let ended = 0; ended < 300; ended++) {
    await until(() => invocations.length > ended)
    await invocations[ended]?.loadInput()
    held[ended]?.({ status: 'succeeded', result: ended })
  }
  await until(async () => {
    for (const stream_id of streams) if (!(await has(node, stream_id, 'RunSucceeded')())) return false
    return true
  })
  assert.is(invocations.length, 300)
  await worker.stop({ drainMs: 10 })
})

fair(
  'claims the child runs that its runs wait for, although parents wait in all of its room',
  async (context) => {
    const { node } = context
    const { worker, invocations } = openWorker(node, { maxConcurrentRuns: 2 })
    await worker.start()
    const parent = runOf(context, 'flood')
    await worker.take(parent)
    for (let n = 0; n < 400; n++) await request(context, 'flood')
    await until(() => !worker.hasRoom('flood'))
    const { plan, cause } = runOf(context, 'flood')
    const { run_id: parent_run_id, stream_id } = parent.plan
    const child = { ...plan, parent_run_id, stream_id, run_type: 'run' } as const
    const input = { kind: 'args', value: [] } as const
    await node.aggregates.streams.handle(
      streamOf.stream(stream_id),
      { type: 'RequestRun', env_id: 'flood', plan: child, input, create: false },
      cause,
    )
    await until(() => invocations.some(({ run }) => run.run_id === plan.run_id))
    await worker.stop({ drainMs: 10 })
  },
)

fair('counts only runs that a child has started as concurrent', async (context) => {
  const { worker, invocations } = openWorker(context.node, { maxConcurrentRuns: 2, alone: true })
  for (let n = 0; n < 2; n++) await worker.take(runOf(context, 'flood'))
  await until(() => invocations.length === 2)
  assert.equal([worker.hasRoom('flood'), worker.hasRoom('other')], [false, true])
  assert.equal(worker.fullFor, ['flood'])
  await invocations[0]?.loadInput()
  assert.ok(worker.hasRoom('other'))
  await worker.stop({ drainMs: 10 })
})

fair(
  'claims further runs of an organization while one of its builds waits for a process',
  async (context) => {
    const { worker, invocations, runtime } = openWorker(context.node, { maxConcurrentRuns: 100, alone: true })
    runtime.isFullFor = (org_id) => org_id === 'flood'
    await worker.start()
    for (let n = 0; n < 5; n++) await request(context, 'flood')
    await until(() => invocations.length === 5)
    assert.equal(
      [worker.hasRoom('flood'), worker.isFullFor('flood'), worker.isFullFor('other')],
      [true, true, false],
    )
    assert.equal(worker.fullFor, ['flood'])
    await worker.stop({ drainMs: 10 })
  },
)

fair('gives a free place to the organization with the fewest runs', async (context) => {
  const { worker, invocations, held } = openWorker(context.node, { maxConcurrentRuns: 2 })
  for (const env_id of ['flood', 'flood', 'flood', 'other', 'third'])
    await worker.take(runOf(context, env_id))
  await until(() => invocations.length === 5)
  const started: string[] = []
  const start = (n: number) =>
    invocations[n]?.loadInput().then(() => started.push(invocations[n]?.build.env_id ?? ''))
  await start(0)
  await start(3)
  assert.equal(started, ['flood', 'other'])
  void start(1)
  void start(4)
  held[3]?.({ status: 'succeeded', result: 1 })
  await until(() => started.length === 3)
  assert.equal(started, ['flood', 'other', 'third'])
  await worker.stop({ drainMs: 10 })
})

fair('reads the input of a run again if many wait before it', async (context) => {
  const { worker, invocations } = openWorker(context.node, { maxConcurrentRuns: 100 })
  for (let n = 0; n < 70; n++) {
    const run = runOf(context, 'flood')
    await worker.take({ ...run, input: { kind: 'args', value: [n] } })
  }
  await until(() => invocations.length === 70)
  assert.equal(await invocations[69]?.loadInput(), { kind: 'args', args: [69] })
  await worker.stop({ drainMs: 10 })
})

fair.run()
