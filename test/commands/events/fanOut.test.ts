import * as assert from 'uvu/assert'
import { dispatchEvent } from '../../support/dispatchEvent.ts'
import { Dispatch } from '../../../src/commands/events/dispatch.ts'
import { publishEvent } from '../../../src/commands/events/publishEvent.ts'
import { openAggregates } from '../../../src/domain/aggregates.ts'
import { AppError, isAppError } from '../../../src/errors.ts'
import { isOf, type Recorded } from '../../../src/events/event.ts'
import type { EventOf } from '../../../src/events/index.ts'
import type { RunPlan } from '../../../src/events/run.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { newId } from '../../../src/ids.ts'
import type { Claimer } from '../../../src/ports/claimer.ts'
import { forwarding } from '../../support/forwarding.ts'
import { suite } from '../../support/suite.ts'
import { openCommands } from '../openCommands.ts'
import { plantBuild, plantEnv } from '../plantEnv.ts'

const HANDLERS = 10_000

/** The most bytes of one append that EventStoreDB accepts. */
const MOST_BYTES = 1 << 20

const node = await openCommands()
const env = await plantEnv(node, 'acme')
await plantBuild(node, env, {
  name: 'shop',
  functions: Array.from({ length: HANDLERS }, (_, n) => ({ ns: 'handlers', var: `on${n}`, on_event: 'big' })),
})

/** The commands of another node, whose event store refuses large appends, and is away after `lasts` of them. */
const opened = (lasts = Infinity) => {
  let appends = 0
  const store = forwarding(node.store, {
    append(stream, events, expected) {
      if (JSON.stringify(events).length > MOST_BYTES) throw new AppError('payload_too_large', 'Too large')
      if (appends++ >= lasts) throw new AppError('unavailable', 'Away')
      return node.store.append(stream, events, expected)
    },
  })
  return { ...node.deps, store, aggregates: openAggregates(store), appends: () => appends }
}

const publish = async (deps = opened(), { caller } = env) => {
  const { event } = await publishEvent(deps, { event_type: 'big', event_data: 1, source: 'api' }, caller)
  const facts = await factsIn(event.stream_id)
  const published = facts.find((fact): fact is Recorded<EventOf<'EventPublished'>> =>
    isOf(fact, 'EventPublished'),
  )
  assert.ok(published)
  return { published, stream_id: event.stream_id }
}

const factsIn = (stream_id: string) => Array.fromAsync(node.store.read(streamOf.stream(stream_id)))

const startedIn = async (stream_id: string) =>
  (await factsIn(stream_id)).flatMap(({ event }) => (event.type === 'RunStarted' ? [event] : []))

/** Each handler has one run, and the event names all of them. */
const assertComplete = async (stream_id: string) => {
  const started = (await startedIn(stream_id)).map(({ run_id }) => run_id)
  assert.equal([started.length, new Set(started).size], [HANDLERS, HANDLERS])
  const handled = (await factsIn(stream_id)).flatMap(({ event }) =>
    event.type === 'EventHandled' ? [event] : [],
  )
  assert.is(handled.length, 1)
  assert.equal(new Set(handled[0]?.run_ids), new Set(started))
}

const idsOf = (plans: readonly RunPlan[] | null) => new Set(plans?.map(({ run_id }) => run_id))

const deployed = suite('an event for which more handlers are deployed between two of its parts')

deployed('starts those that were deployed at its first part', async () => {
  const other = await plantEnv(node, 'other')
  const functions = Array.from({ length: 300 }, (_, n) => ({ ns: 'a', var: `on${n}`, on_event: 'big' }))
  const { build_id } = await plantBuild(node, other, { name: 'shop', functions })
  const { published, stream_id } = await publish(opened(), other)
  const dispatch = new Dispatch(opened(), { published })
  const worker_id = newId()
  assert.is((await dispatch.claim(worker_id))?.isLast, false)
  await plantBuild(node, other, { name: 'later', functions })
  assert.is((await dispatch.claim(worker_id))?.isLast, true)
  const started = await startedIn(stream_id)
  assert.is(started.length, 300)
  for (const run of started) assert.is(run.build_id, build_id)
})

deployed.run()

const many = suite('an event with ten thousand handlers', { timeoutMs: 60_000 })

many('is published and claimed, although its runs do not fit into one append', async () => {
  const executed: RunPlan[] = []
  const claimer: Claimer = {
    worker_id: newId(),
    isOpen: true,
    hasRoom: () => true,
    isFullFor: () => false,
    fullFor: [],
    claiming: (_id, append) => append(),
    take: () => Promise.resolve(),
    execute: (plans) => void executed.push(...plans),
  }
  const deps = opened()
  const { published, stream_id } = await publish(Object.assign(deps, { claimer }))
  assert.is(executed.length, 0)
  const plans = await dispatchEvent(deps, { published, worker_id: claimer.worker_id })
  assert.is(idsOf(plans).size, HANDLERS)
  await assertComplete(stream_id)
  assert.is(await dispatchEvent(deps, { published, worker_id: newId() }), null)
})

many('is continued by another worker after a crash between two appends', async () => {
  const { published, stream_id } = await publish()
  const [first, second] = [newId(), newId()]
  const dying = await dispatchEvent(opened(3), { published, worker_id: first }).catch(
    (error: unknown) => error,
  )
  assert.ok(isAppError(dying, 'unavailable'))
  const before = idsOf(await startedIn(stream_id))
  assert.ok(before.size > 0 && before.size < HANDLERS)
  const rest = idsOf(await dispatchEvent(opened(), { published, worker_id: second }))
  assert.is(rest.size, HANDLERS - before.size)
  for (const { run_id, worker_id } of await startedIn(stream_id))
    assert.is(worker_id, before.has(run_id) ? first : second)
  await assertComplete(stream_id)
})

many('belongs as a whole to the worker that continues after an outage', async () => {
  const { published, stream_id } = await publish()
  const worker_id = newId()
  await dispatchEvent(opened(2), { published, worker_id }).catch(() => {})
  assert.is(idsOf(await dispatchEvent(opened(), { published, worker_id })).size, HANDLERS)
  await assertComplete(stream_id)
})

many('is claimed once by two workers at a time', async () => {
  const { published, stream_id } = await publish()
  await Promise.all([newId(), newId()].map((worker_id) => dispatchEvent(opened(), { published, worker_id })))
  await assertComplete(stream_id)
})

many.after(() => node.close())
many.run()
