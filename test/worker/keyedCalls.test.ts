import * as assert from 'uvu/assert'
import { runIdOf } from '../../src/commands/events/planRuns.ts'
import { createProject } from '../../src/commands/projects/createProject.ts'
import { deleteProject } from '../../src/commands/projects/deleteProject.ts'
import type { FunctionSpec } from '../../src/events/project.ts'
import type { RunPlan } from '../../src/events/run.ts'
import { newId } from '../../src/ids.ts'
import type { HostCall } from '../../src/ports/runtime.ts'
import { plantBuild } from '../commands/plantEnv.ts'
import { refusedWith } from '../commands/refusedWith.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { openCalls } from './openCalls.ts'

const { node, env, factsOf, begin, ask, keysOf } = await openCalls()

const sending = (idempotency_key: string, event_data: unknown = { n: 1 }): HostCall => ({
  op: 'send',
  event_type: 'again',
  event_data,
  idempotency_key,
})
const calling = (idempotency_key: string, args: readonly unknown[] = [1]): HostCall => ({
  op: 'call',
  fn: 'loop/again',
  args,
  idempotency_key,
})
const idOf = (reply: unknown) => (reply as { event_id: string }).event_id

/** The events that the runs published, with their streams. */
const published = async (...plans: RunPlan[]) =>
  (await Promise.all(plans.map(({ stream_id }) => factsOf(stream_id, 'EventPublished'))))
    .flat()
    .filter(({ event }) => event.source.startsWith('run:'))
    .map(({ event }) => event)

const keyed = suite('send and call with an idempotency key')
keyed.after(() => node.close())

for (const [name, call] of [
  ['send', sending],
  ['call', calling],
] as const) {
  keyed(`${name} publishes once in a run, and replies with the same ids`, async () => {
    const plan = await begin()
    const key = newId()
    const first = await ask(plan, call(key))
    assert.equal(await ask(plan, call(key)), first)
    const events = await published(plan)
    assert.equal(
      events.map(({ event_id, source }) => [event_id, source]),
      [[idOf(first), `run:${plan.run_id}`]],
    )
  })

  keyed(`${name} replies with the same ids also in a run that may start nothing new`, async () => {
    const plan = await begin()
    const key = newId()
    const first = await ask(plan, call(key))
    assert.equal(await ask(plan, call(key), { maxRunDepth: 0 }), first)
    await refusedWith('depth_exceeded', () => ask(plan, call(newId()), { maxRunDepth: 0 }))
  })

  keyed(`${name} publishes once for runs of two streams that ask at the same time`, async () => {
    const plans = await Promise.all([begin(), begin(), begin()])
    const key = newId()
    const replies = await Promise.all(plans.map((plan) => ask(plan, call(key))))
    assert.equal(replies, [replies[0], replies[0], replies[0]])
    assert.is((await published(...plans)).length, 1)
  })

  keyed(`${name} with a key that was used for other data is refused by name`, async () => {
    const plan = await begin()
    const key = newId()
    await ask(plan, call(key))
    const other = name === 'send' ? sending(key, { n: 2 }) : calling(key, [2])
    const { message } = await refusedWith('idempotency_key_reused', () => ask(plan, other))
    assert.match(message, /^idempotencyKey: /)
    assert.is((await published(plan)).length, 1)
  })
}

keyed('a key of send is not a key of call', async () => {
  const plan = await begin()
  const key = newId()
  await ask(plan, sending(key))
  await ask(plan, calling(key))
  assert.is((await published(plan)).length, 2)
})

keyed('a key belongs to its project', async () => {
  const plan = await begin()
  const other = await plantBuild(node, env, { name: 'other', functions: [] })
  const key = newId()
  await ask(plan, sending(key))
  await ask({ ...plan, project_id: other.project_id }, sending(key))
  assert.is((await published(plan)).length, 2)
})

keyed('evaluated code has keys of its own, so that it cannot occupy those of functions', async () => {
  const plan = await begin()
  const evaluator = { kind: 'api-key' as const, id: newId(), permissions: [] }
  const key = newId()
  await ask({ ...plan, evaluator }, sending(key))
  await ask(plan, sending(key))
  assert.is((await published(plan)).length, 2)
})

keyed('a key that a header could not have is refused', async () => {
  const plan = await begin()
  for (const key of ['', 'with space', 'é', 'x'.repeat(256)]) {
    const { message } = await refusedWith('bad_request', () => ask(plan, sending(key)))
    assert.match(message, /^idempotencyKey: expected 1 to 255 visible ASCII characters/)
  }
})

keyed('a refused call occupies no key', async () => {
  const plan = await begin()
  const key = newId()
  const wrong = { op: 'call', fn: 'loop/missing', args: [1], idempotency_key: key } as const
  await refusedWith('not_found', () => ask(plan, wrong))
  await plantBuild(node, env, { name: `later-${key}`, functions: [{ ns: 'loop', var: 'missing' }] })
  assert.ok(await ask(plan, wrong))
})

/** The keys of a process that dies after the event of its first attempt is stored, before the reply is. */
const dying = () => {
  const keys = keysOf('dead')
  const once: typeof keys.once = (asked, work) =>
    keys.once(asked, async (...given) => {
      await work(...given)
      return new Promise<never>(() => {})
    })
  return { once }
}

for (const [name, call] of [
  ['send', sending],
  ['call', calling],
] as const)
  keyed(`${name} of a process that died is found by a run in another stream`, async () => {
    const [lost, next] = await Promise.all([begin(), begin()])
    const key = newId()
    void ask(lost, call(key), { idempotency: dying() })
    await until(async () => (await published(lost)).length > 0)
    const living = keysOf('living', (holder) => holder === 'dead')
    const reply = await ask(next, call(key), { idempotency: living })
    const events = await published(lost, next)
    assert.equal(
      events.map(({ event_id, stream_id }) => [event_id, stream_id]),
      [[idOf(reply), lost.stream_id]],
    )
  })

const changes: Readonly<
  Record<string, (called: string, own: string, ref: FunctionSpec) => Promise<unknown>>
> = {
  'is deleted': (called) => deleteProject(node.deps, { project: called }, env.caller),
  'is found in another project': (_, own, ref) =>
    plantBuild(node, env, { name: '', project_id: own, functions: [ref] }),
}
for (const [n, [what, change]] of Object.entries(changes).entries())
  keyed(`call of a process that died is found although its function ${what} by now`, async () => {
    const own = await createProject(node.deps, { name: `own-${n}` }, env.caller)
    const ref = { ns: `late-${n}`, var: 'job' }
    const called = await plantBuild(node, env, { name: `called-${n}`, functions: [ref] })
    const run = { ...(await begin()), project_id: own.project_id }
    const key = newId()
    const call: HostCall = { op: 'call', fn: `${ref.ns}/job`, args: [], idempotency_key: key }
    const deployed = node.deps.views.directory.functionAt(env.env_id, call.fn)
    assert.ok(deployed)
    void ask(run, call, { idempotency: dying() })
    const [event] = await until(async () => {
      const events = await published(run)
      return events.length > 0 ? events : undefined
    })
    assert.ok(event)
    await change(called.project_id, own.project_id, ref)
    const living = keysOf('living', (holder) => holder === 'dead')
    const { event_id } = event
    assert.equal(await ask(run, call, { idempotency: living }), {
      event_id,
      run_id: runIdOf(event_id, deployed),
    })
  })

keyed('data is the same in any order of its fields', async () => {
  const plan = await begin()
  const key = newId()
  const first = await ask(plan, sending(key, { a: 1, b: { c: 2, d: 3 } }))
  assert.equal(await ask(plan, sending(key, { b: { d: 3, c: 2 }, a: 1 })), first)
  await refusedWith('idempotency_key_reused', () => ask(plan, sending(key, { b: { d: 2, c: 3 }, a: 1 })))
})

keyed('large data is compared by its content', async () => {
  const plan = await begin()
  const key = newId()
  const first = await ask(plan, sending(key, 'x'.repeat(200_000)))
  assert.equal(await ask(plan, sending(key, 'x'.repeat(200_000))), first)
  await refusedWith('idempotency_key_reused', () => ask(plan, sending(key, 'y'.repeat(200_000))))
})

keyed.run()
