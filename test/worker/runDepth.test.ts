import * as assert from 'uvu/assert'
import { dispatchEvent } from '../support/dispatchEvent.ts'
import { publishEvent } from '../../src/commands/events/publishEvent.ts'
import type { HostCall } from '../../src/ports/runtime.ts'
import { refusedWith } from '../commands/refusedWith.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { again, calls, openCalls } from './openCalls.ts'

const { node, env, worker_id, factsOf, begin, dispatched, ask } = await openCalls()
const { deps } = node

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
    await refusedWith('depth_exceeded', () => ask(plan, call, { maxRunDepth: 3 }))
    assert.is(await node.store.head(), before)
  })

depth('below the limit allows `send`', async () => {
  const plan = { ...(await begin()), depth: 2 }
  assert.ok(await ask(plan, again, { maxRunDepth: 3 }))
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
