import * as assert from 'uvu/assert'
import { cancelRun } from '../../../src/commands/runs/cancelRun.ts'
import { dispatchEvent } from '../../support/dispatchEvent.ts'
import { emitData } from '../../../src/commands/streams/emitData.ts'
import { endRun } from '../../../src/commands/runs/endRun.ts'
import { followStream, type StreamPart } from '../../../src/commands/streams/followStream.ts'
import { publishEvent } from '../../../src/commands/events/publishEvent.ts'
import { startOfStream, type StreamStart } from '../../../src/commands/streams/startOfStream.ts'
import { isOf } from '../../../src/events/event.ts'
import type { RunPlan } from '../../../src/events/run.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { newId } from '../../../src/ids.ts'
import { forwarding } from '../../support/forwarding.ts'
import { suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'
import { openCommands } from '../openCommands.ts'
import { plantBuild, plantEnv } from '../plantEnv.ts'
import { refusedWith } from '../refusedWith.ts'

const node = await openCommands()
const { deps } = node
const env = await plantEnv(node, 'acme')
const { cause } = env.caller
const worker_id = newId()
/** A reader that waits for ever ends after this time, which a slow machine does not need. */
const LIMIT_MS = 45_000
for (const name of ['shop', 'store'])
  await plantBuild(node, env, {
    name,
    functions: [{ ns: 'orders', var: 'ship', on_event: 'order:paid' }],
  })

/** Publishes an event that both projects handle; their runs are claimed, in the order of their projects. */
const publish = async () => {
  const { event } = await publishEvent(
    deps,
    { event_type: 'order:paid', event_data: null, source: 'api' },
    env.caller,
  )
  const { stream_id } = event
  for await (const published of node.store.read(streamOf.stream(stream_id)))
    if (isOf(published, 'EventPublished')) {
      const plans = (await dispatchEvent(deps, { published, worker_id })) ?? []
      const planOf = (project: string) => plans.find((plan) => plan.project_name === project)
      const [shop, store] = [planOf('shop'), planOf('store')]
      assert.ok(shop && store)
      return { stream_id, shop, store }
    }
  throw new Error('Expected the event in its stream')
}

const succeed = (plan: RunPlan, result: unknown = null) =>
  endRun(deps, { plan, outcome: { status: 'succeeded', result }, worker_id }, cause)
const emit = ({ run_id, stream_id }: RunPlan) =>
  emitData(deps, { run_id, stream_id, data_type: 'progress', payload: 1 }, cause)

/** The activities of a part, as kind and project name. */
const reported = (part: StreamPart): string[] =>
  part.kind !== 'activities'
    ? [part.kind]
    : part.activities.map((activity) =>
        activity.kind === 'data' ? 'data' : `${activity.kind} ${activity.run.project_name}`,
      )

/** Reads a stream until it is complete. */
const read = async (stream_id: string, from: string, project?: string) => {
  const start = await startOfStream(deps, { stream_id, from }, env.env_id)
  const parts = await Array.fromAsync(
    followStream(deps, { start, project, signal: AbortSignal.timeout(LIMIT_MS) }),
  )
  return { parts, reported: parts.flatMap(reported) }
}

const starting = suite('the place where a reader of a stream begins')

starting('is before the first fact, after the last one, or after the one that is named', async () => {
  const { stream_id } = await publish()
  const after = async (from?: string) => (await startOfStream(deps, { stream_id, from }, env.env_id)).after
  assert.equal([await after('start'), await after('end'), await after(), await after('2')], [-1, 4, 4, 2])
})

starting('is in no stream of another environment (I7)', async () => {
  const { stream_id } = await publish()
  const elsewhere = await refusedWith('not_found', () => startOfStream(deps, { stream_id }, newId()))
  const unknown = newId()
  const none = await refusedWith('not_found', () => startOfStream(deps, { stream_id: unknown }, env.env_id))
  assert.is(elsewhere.message.replace(stream_id, ''), none.message.replace(unknown, ''))
})

starting('is no revision that the stream has not reached', async () => {
  const { stream_id } = await publish()
  for (const from of ['5', '-1', '1.5', 'begin', '9'.repeat(400)])
    await refusedWith('bad_request', () => startOfStream(deps, { stream_id, from }, env.env_id))
})

starting.run()

const following = suite('a reader of a stream')
following.after(() => node.close())

following('receives runs and data in order, until nothing is open', async () => {
  const { stream_id, shop, store } = await publish()
  await emit(shop)
  await succeed(shop, 42)
  await endRun(
    deps,
    { plan: store, outcome: { status: 'failed', error: { code: 'x', message: 'y' } }, worker_id },
    cause,
  )
  const { reported } = await read(stream_id, 'start')
  assert.equal(reported.slice(0, 2).toSorted(), ['started shop', 'started store'])
  assert.equal(reported.slice(2), ['data', 'succeeded shop', 'failed store', 'complete'])
})

/** Follows a stream; `waits` resolves when the reader has received everything so far and waits for more. */
const follow = (start: StreamStart) => {
  const waits = Promise.withResolvers<void>()
  const store = forwarding(node.store, {
    async *follow(...args) {
      try {
        for await (const batch of node.store.follow(...args)) {
          yield batch
          if (batch.caughtUp) waits.resolve()
        }
      } finally {
        waits.resolve()
      }
    },
  })
  const signal = AbortSignal.timeout(LIMIT_MS)
  return {
    reading: Array.fromAsync(followStream({ ...deps, store }, { start, signal })),
    waits: waits.promise,
  }
}

following('waits while a run is open', async () => {
  const { stream_id, shop, store } = await publish()
  await succeed(shop)
  const { reading, waits } = follow(await startOfStream(deps, { stream_id, from: '4' }, env.env_id))
  await waits
  await emit(store)
  await succeed(store)
  assert.equal((await reading).flatMap(reported), ['succeeded shop', 'data', 'succeeded store', 'complete'])
})

following('of a quiet stream waits until something has happened', async () => {
  const { stream_id, shop, store } = await publish()
  await Promise.all([succeed(shop), succeed(store)])
  const { reading, waits } = follow(await startOfStream(deps, { stream_id, from: 'end' }, env.env_id))
  await waits
  const event = { event_type: 'order:forgotten', event_data: null, stream_id, source: 'api' }
  const { revision } = await publishEvent(deps, event, env.caller)
  for await (const published of node.store.read(streamOf.stream(stream_id), { from: revision }))
    if (isOf(published, 'EventPublished')) await dispatchEvent(deps, { published, worker_id })
  const last = (await reading).at(-1)
  assert.equal([last?.kind, last?.revision], ['complete', revision + 1])
})

following(
  'that names a revision receives what follows it, and the start of a run that it already has',
  async () => {
    const { stream_id, shop, store } = await publish()
    await succeed(shop, 42)
    await succeed(store)
    const { parts, reported } = await read(stream_id, '4')
    assert.equal(reported, ['succeeded shop', 'succeeded store', 'complete'])
    const [first] = parts.flatMap((part) => (part.kind === 'activities' ? part.activities : []))
    assert.ok(first && first.kind !== 'data')
    assert.equal([first.run.run_id, first.run.status, first.run.result], [shop.run_id, 'succeeded', 42])
    assert.ok(first.run.start_time)
  },
)

/** Publishes events, and waits until all facts of their stream have expired. */
const expired = async () => {
  const { stream_id, shop, store } = await publish()
  await succeed(shop)
  await succeed(store)
  const stream = streamOf.stream(stream_id)
  const ended = await startOfStream(deps, { stream_id }, env.env_id)
  await node.store.expire(stream, 1)
  await until(() => node.store.isExpired(stream))
  return { stream_id, stream, last: ended.after }
}

following('of a stream that has expired is told so, and waits for nothing', async () => {
  const { stream_id, last } = await expired()
  for (const from of ['start', '4']) {
    const { parts, reported } = await read(stream_id, from)
    assert.equal(reported, ['expired', 'complete'])
    assert.is(parts[0]?.revision, last)
  }
  assert.equal((await read(stream_id, String(last))).reported, ['complete'])
})

following('of a stream whose beginning has expired is told so, and receives all that is left', async () => {
  const { stream_id, stream, last } = await expired()
  await node.store.scavenge?.()
  await node.store.expire(stream, null)
  const { event } = await publishEvent(
    deps,
    { event_type: 'nobody:handles', event_data: null, source: 'api', stream_id },
    env.caller,
  )
  for await (const published of node.store.read(stream, { from: last + 1 }))
    if (isOf(published, 'EventPublished')) await dispatchEvent(deps, { published, worker_id })
  for (const from of ['start', '4']) {
    const { parts, reported } = await read(stream_id, from)
    assert.equal([reported.at(0), reported.at(-1)], ['expired', 'complete'])
    assert.is(parts[0]?.revision, last)
    assert.ok((parts.at(-1)?.revision ?? 0) > last, event.event_id)
  }
  assert.not.ok((await read(stream_id, String(last))).reported.includes('expired'))
})

following('whose stream expires while it reads is informed of that, and waits for nothing', async () => {
  const { stream_id, shop, store } = await publish()
  await Promise.all(Array.from({ length: 1100 }, () => emit(shop))) // one read returns fewer facts
  await succeed(shop)
  await succeed(store)
  const stream = streamOf.stream(stream_id)
  const start = await startOfStream(deps, { stream_id, from: 'start' }, env.env_id)
  const { after: last } = await startOfStream(deps, { stream_id }, env.env_id)
  const reading = followStream(deps, { start, signal: AbortSignal.timeout(LIMIT_MS) })
  assert.is((await reading.next()).value?.kind, 'activities')
  await node.store.expire(stream, 1)
  await until(() => node.store.isExpired(stream))
  const parts = await Array.fromAsync(reading)
  assert.equal(
    parts.map(({ kind, revision }) => [kind, revision]),
    [
      ['expired', last],
      ['complete', last],
    ],
  )
})

following('receives a run as its read model has it', async () => {
  const { stream_id, shop, store } = await publish()
  await succeed(shop, { total: 1 })
  await succeed(store)
  const { parts } = await read(stream_id, 'start')
  const runs = parts.flatMap((part) => (part.kind === 'activities' ? part.activities : []))
  await node.views.settled()
  const ended = runs.find((activity) => activity.kind === 'succeeded' && activity.run.run_id === shop.run_id)
  assert.ok(ended && ended.kind !== 'data')
  assert.equal(ended.run, await node.views.runs.get(shop.run_id))
})

following('of one project, by id or name, receives only its runs and their data', async () => {
  const { stream_id, shop, store } = await publish()
  await emit(shop)
  await emit(store)
  await succeed(shop)
  await succeed(store)
  const wanted = ['started shop', 'data', 'succeeded shop', 'complete']
  assert.equal((await read(stream_id, 'start', 'shop')).reported, wanted)
  assert.equal((await read(stream_id, 'start', shop.project_id)).reported, wanted)
  assert.equal((await read(stream_id, 'start', 'none')).reported, ['complete'])
})

following('of one project receives the data of its runs also after they have ended', async () => {
  const { stream_id, shop, store } = await publish()
  await emit(shop)
  await emit(store)
  await succeed(shop)
  await emit(store)
  await succeed(store)
  const began = ['data', 'succeeded shop', 'complete']
  assert.equal((await read(stream_id, '4', 'shop')).reported, began)
  assert.equal((await read(stream_id, '7', 'store')).reported, ['data', 'succeeded store', 'complete'])
  assert.equal((await read(stream_id, '4', 'none')).reported, ['complete'])
})

following('receives the cancelling of a run', async () => {
  const { stream_id, shop, store } = await publish()
  await succeed(shop)
  await cancelRun(deps, store.run_id, cause)
  assert.equal((await read(stream_id, '5')).reported, ['cancelled store', 'complete'])
})

following('ends without completion when its signal aborts', async () => {
  const { stream_id } = await publish()
  const start = await startOfStream(deps, { stream_id, from: 'start' }, env.env_id)
  const stop = new AbortController()
  const told_: string[] = []
  const reading = (async () => {
    for await (const part of followStream(deps, { start, signal: stop.signal })) told_.push(...reported(part))
  })()
  await until(() => told_.length === 2)
  stop.abort()
  await reading
  assert.not(told_.includes('complete'))
})

following.run()
