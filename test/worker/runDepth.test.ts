import { KeptPayloads } from '../../src/worker/keptPayloads.ts'
import * as assert from 'uvu/assert'
import { dispatchEvent } from '../../src/commands/events/dispatchEvent.ts'
import { isOf, type Recorded } from '../../src/events/event.ts'
import type { EventOf, EventType } from '../../src/events/index.ts'
import type { RunPlan } from '../../src/events/run.ts'
import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import type { HostCall } from '../../src/ports/runtime.ts'
import { publishEvent } from '../../src/commands/events/publishEvent.ts'
import { serveHostCall } from '../../src/worker/serveHostCall.ts'
import { openCommands } from '../commands/openCommands.ts'
import { plantBuild, plantEnv } from '../commands/plantEnv.ts'
import { refusedWith } from '../commands/refusedWith.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const node = await openCommands()
const { deps } = node
const env = await plantEnv(node, 'acme')
await plantBuild(node, env, { name: 'shop', functions: [{ ns: 'loop', var: 'again', on_event: 'again' }] })
const worker_id = newId()

const factsOf = async <Type extends EventType>(stream_id: string, type: Type) =>
  (await Array.fromAsync(node.store.read(streamOf.stream(stream_id)))).filter(
    (fact): fact is Recorded<EventOf<Type>> => isOf(fact, type),
  )

/** A run that a client began, at depth 0. */
const begin = async (): Promise<RunPlan> => {
  const { event } = await publishEvent(
    deps,
    { event_type: 'again', event_data: null, source: 'api' },
    env.caller,
  )
  return dispatched(event.stream_id, event.event_id)
}

const dispatched = async (stream_id: string, event_id: string, maxRunDepth?: number): Promise<RunPlan> => {
  const published = (await factsOf(stream_id, 'EventPublished')).find(({ id }) => id === event_id)
  assert.ok(published)
  const [plan] =
    (await dispatchEvent(deps, {
      published,
      worker_id,
      ...(maxRunDepth !== undefined && { maxRunDepth }),
    })) ?? []
  assert.ok(plan, 'no run was planned')
  return plan
}

const ask = (plan: RunPlan, call: HostCall, maxRunDepth = 100) =>
  serveHostCall(
    { ...deps, maxRunDepth },
    {
      kept: new KeptPayloads(node.payloads),
      plan,
      env_id: env.env_id,
      correlation_id: newId(),
      rights: null,
      signal: new AbortController().signal,
      turns: null,
    },
    call,
  )

const again = { op: 'send', event_type: 'again', event_data: null } as const
const calls: Readonly<Record<string, HostCall>> = {
  send: again,
  call: { op: 'call', fn: 'loop/again', args: [] },
  run: { op: 'run', fn: 'loop/again', args: [] },
}

const depth = suite('the depth of a run')
depth.after(() => node.close())

depth('is 0 for a run that a client began, and grows by one with each run that starts another', async () => {
  let plan = await begin()
  for (const expected of [undefined, 1, 2, 3]) {
    assert.is(plan.depth, expected)
    const { event_id } = (await ask(plan, again)) as { event_id: string }
    plan = await dispatched(plan.stream_id, event_id)
  }
})

depth('is passed on by `call` and `run` as by `send`', async () => {
  const parent = { ...(await begin()), depth: 7 }
  const { event_id } = (await ask(parent, calls['call'] as HostCall)) as { event_id: string }
  assert.is((await dispatched(parent.stream_id, event_id)).depth, 8)
  void ask(parent, calls['run'] as HostCall).catch(() => {})
  await until(async () => (await factsOf(parent.stream_id, 'RunRequested')).length === 1)
  const [requested] = await factsOf(parent.stream_id, 'RunRequested')
  assert.is(requested?.event.depth, 8)
})

for (const [name, call] of Object.entries(calls))
  depth(`at the limit refuses \`${name}\`, and stores nothing`, async () => {
    const plan = { ...(await begin()), depth: 3 }
    const before = await node.store.head()
    await refusedWith('depth_exceeded', () => ask(plan, call, 3))
    assert.is(await node.store.head(), before)
  })

depth('below the limit allows `send`', async () => {
  const plan = { ...(await begin()), depth: 2 }
  assert.ok(await ask(plan, again, 3))
})

depth('is 0 again for an event with which a client continues the stream', async () => {
  const plan = { ...(await begin()), depth: 99 }
  const { event } = await publishEvent(
    deps,
    { event_type: 'again', event_data: null, source: 'api', stream_id: plan.stream_id },
    env.caller,
  )
  assert.is((await dispatched(plan.stream_id, event.event_id)).depth, undefined)
})

depth('beyond a limit that was lowered starts no runs', async () => {
  const plan = { ...(await begin()), depth: 9 }
  const { event_id } = (await ask(plan, again)) as { event_id: string }
  const published = (await factsOf(plan.stream_id, 'EventPublished')).find(({ id }) => id === event_id)
  assert.ok(published)
  assert.equal(await dispatchEvent(deps, { published, worker_id, maxRunDepth: 9 }), [])
})

depth.run()
