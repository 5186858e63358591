import * as assert from 'uvu/assert'
import { publishEvent } from '../../../src/commands/events/publishEvent.ts'
import { deleteProject } from '../../../src/commands/projects/deleteProject.ts'
import { ChildEndings } from '../../../src/commands/runs/childEndings.ts'
import { payloadsOf } from '../../../src/content/payloads.ts'
import { AppError } from '../../../src/errors.ts'
import { MAX_EVENT_TYPE } from '../../../src/events/eventType.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { derivedIdBeside, newId } from '../../../src/ids.ts'
import type { RunPlan } from '../../../src/events/run.ts'
import type { HostCall } from '../../../src/sdk/wire.ts'
import { KeptPayloads } from '../../../src/worker/keptPayloads.ts'
import { serveHostCall } from '../../../src/worker/serveHostCall.ts'
import { now } from '../../support/openNode.ts'
import { noKeys } from '../../support/noKeys.ts'
import { noRoom } from '../../support/rooms.ts'
import { suite } from '../../support/suite.ts'
import { callerOf, openCommands } from '../openCommands.ts'
import { plantBuild, plantEnv } from '../plantEnv.ts'
import { refusedWith } from '../refusedWith.ts'

const node = await openCommands()
const env_id = newId()
const caller = callerOf(env_id)
const { event: begun } = await publishEvent(
  node.deps,
  { event_type: 'begun', event_data: null, source: 'api' },
  caller,
)
const plan = {
  run_id: newId(),
  stream_id: begun.stream_id,
  run_type: 'event',
  build_id: newId(),
  project_id: newId(),
  project_name: 'shop',
  target: { ns: 'orders', var: 'onCreated' },
  attempt: 1,
} as const

await node.aggregates.streams.handle(
  streamOf.stream(begun.stream_id),
  { type: 'RequestRun', env_id, plan, create: false, claim: { worker_id: newId(), now } },
  caller.cause,
)

const hostCall = (call: HostCall, calling: RunPlan = plan) =>
  serveHostCall(
    { ...node.deps, idempotency: noKeys, childEndings: new ChildEndings(node.store), maxRunDepth: 100 },
    {
      kept: new KeptPayloads(node.payloads),
      plan: calling,
      env_id,
      cause: { env_id, correlation_id: newId() },
      rights: null,
      signal: new AbortController().signal,
    },
    call,
    () => {},
  )

/** The two ways to publish: the API, and `send` of a running function. */
const ways = {
  'POST /v1/events': (event_type: string, event_data: unknown) =>
    publishEvent(node.deps, { event_type, event_data, source: 'api' }, caller),
  'send() of a function': (event_type: string, event_data: unknown) =>
    hostCall({ op: 'send', event_type, event_data }),
}

const refused: [what: string, event_type: string, event_data: unknown, code: 'bad_request' | 'not_found'][] =
  [
    ['a reserved name that means nothing', 'svc:nonsense', {}, 'bad_request'],
    ['a type of 5,000 characters', 'x'.repeat(5000), {}, 'bad_request'],
    ['an empty type', '', {}, 'bad_request'],
    ['a type of 1 MB', 'x'.repeat(1 << 20), {}, 'bad_request'],
    ['a type with line breaks', 'a\r\nb', {}, 'bad_request'],
    ['a type with a NUL', 'a\0b', {}, 'bad_request'],
    ['a type with an escape sequence', '\u001b[2Ja', {}, 'bad_request'],
    ['a type with a C1 control character', 'a\u0085b', {}, 'bad_request'],
    ['a type with half of a surrogate pair', 'a\ud800', {}, 'bad_request'],
    ['svc:call without a function', 'svc:call', {}, 'bad_request'],
    ['svc:call of a function that does not exist', 'svc:call', { fn: 'none/none' }, 'bad_request'],
    ['svc:call whose arguments are no array', 'svc:call', { fn: 'a/b', args: {} }, 'bad_request'],
    ['svc:call in a project that does not exist', 'svc:call', { fn: 'a/b', project: 'none' }, 'bad_request'],
    ['svc:cancel of a number', 'svc:cancel', { run_id: 7 }, 'bad_request'],
    ['svc:cancel of nothing', 'svc:cancel', null, 'bad_request'],
    ['svc:cancel of an unknown run', 'svc:cancel', { run_id: newId() }, 'not_found'],
    ['svc:replay of an unknown run', 'svc:replay', { run_id: newId() }, 'not_found'],
  ]

for (const [name, publish] of Object.entries(ways)) {
  const publishing = suite(`${name}`)
  for (const [what, event_type, event_data, code] of refused)
    publishing(`refuses ${what} and stores nothing`, async () => {
      const before = await node.store.head()
      await refusedWith(code, () => publish(event_type, event_data))
      assert.is(await node.store.head(), before)
    })
  publishing('accepts a type of the longest length', async () => {
    const before = await node.store.head()
    await publish('x'.repeat(MAX_EVENT_TYPE), null)
    assert.ok((await node.store.head()) > before)
  })
  publishing.run()
}

const emitting = suite('emit() of a function')
for (const [what, data_type] of [
  ['of 1 MB', 'x'.repeat(1 << 20)],
  ['with line breaks', 'a\nevent: run:stop'],
  ['without characters', ''],
])
  emitting(`refuses a type ${what}`, () =>
    refusedWith('bad_request', () => hostCall({ op: 'emit', data_type: data_type ?? '', payload: null })),
  )
emitting.run()

const stream = suite('an event')

/** Data that would be a blob. */
const large = 'x'.repeat(100_000)

/** Begins a stream; `publishUnder` continues it with the ids of a claim, as under an `Idempotency-Key`. */
const beginStream = async () => {
  const {
    event: { stream_id },
  } = await publishEvent(node.deps, { event_type: 'a', event_data: 1, source: 'api' }, caller)
  const publishUnder = (claim_id: string, deps = node.deps) =>
    publishEvent(
      deps,
      { event_type: 'a', event_data: 1, source: 'api', stream_id },
      { ...caller, newId: (what) => derivedIdBeside(claim_id, what) },
    )
  return { stream_id, publishUnder }
}

stream('begins a stream of its own unless it names one', async () => {
  const { event, revision } = await publishEvent(
    node.deps,
    { event_type: 'a', event_data: 1, source: 'api' },
    caller,
  )
  assert.is(revision, 1)
  assert.equal(await node.typesIn(event.stream_id), ['StreamCreated', 'EventPublished'])
  const next = await publishEvent(
    node.deps,
    { event_type: 'b', event_data: 2, stream_id: event.stream_id, source: 'api' },
    caller,
  )
  assert.is(next.event.stream_id, event.stream_id)
  assert.is(next.revision, 2)
})

stream('cannot continue an invalid stream id', () =>
  refusedWith('bad_request', () =>
    publishEvent(node.deps, { event_type: 'a', event_data: 1, stream_id: 'mine', source: 'api' }, caller),
  ),
)

stream('cannot continue a stream of another environment', async () => {
  const { event } = await publishEvent(node.deps, { event_type: 'a', event_data: 1, source: 'api' }, caller)
  await refusedWith('not_found', () =>
    publishEvent(
      node.deps,
      { event_type: 'b', event_data: 1, stream_id: event.stream_id, source: 'api' },
      callerOf(newId()),
    ),
  )
})

stream('is stored once when its request is sent again with the same ids', async () => {
  const claim_id = newId()
  const again = { ...caller, newId: (what: string) => derivedIdBeside(claim_id, what) }
  const publish = () => publishEvent(node.deps, { event_type: 'a', event_data: 1, source: 'api' }, again)
  const [first, second] = [await publish(), await publish()]
  assert.equal([second.event, second.revision], [first.event, first.revision])
  assert.equal(await node.typesIn(first.event.stream_id), ['StreamCreated', 'EventPublished'])
})

stream('is stored once when its request is sent again after many others with keys', async () => {
  const { stream_id, publishUnder } = await beginStream()
  const claim_id = newId()
  const published = await publishUnder(claim_id)
  for (let n = 0; n < 130; n++) await publishUnder(newId())
  const again = await publishUnder(claim_id)
  assert.equal([again.event, again.revision], [published.event, published.revision])
  assert.is((await node.typesIn(stream_id)).length, 133)
})

stream('is stored although its key is older than many others of the stream', async () => {
  const late = newId()
  const { publishUnder } = await beginStream()
  for (let n = 0; n < 130; n++) await publishUnder(newId())
  assert.is((await publishUnder(late)).revision, 132)
})

/** The quotas of a full plan. */
const full = Object.assign(Object.create(node.deps.quotas) as typeof node.deps.quotas, {
  checkRun: () => Promise.reject(new AppError('quota_exceeded', 'full')),
  dataFor: noRoom,
})

for (const [what, others] of [
  ['is sent again', 0],
  ['is sent again after many others with keys', 130],
] as const)
  stream(`is found by its request, which ${what}, although the plan is full by now`, async () => {
    const { stream_id, publishUnder } = await beginStream()
    const claim_id = newId()
    const published = await publishUnder(claim_id)
    for (let n = 0; n < others; n++) await publishUnder(newId())
    const again = await publishUnder(claim_id, { ...node.deps, quotas: full })
    assert.equal([again.event, again.revision], [published.event, published.revision])
    assert.is((await node.typesIn(stream_id)).length, 3 + others)
  })

stream('is refused by a full plan if its request has published nothing', async () => {
  const { stream_id, publishUnder } = await beginStream()
  await publishUnder(newId())
  await refusedWith('quota_exceeded', () => publishUnder(newId(), { ...node.deps, quotas: full }))
  const other = callerOf(newId())
  await refusedWith('quota_exceeded', () =>
    publishEvent(
      { ...node.deps, quotas: full },
      { event_type: 'a', event_data: 1, source: 'api', stream_id },
      { ...other, newId: (what) => derivedIdBeside(newId(), what) },
    ),
  )
})

stream('of a call is found by its request, although the function is deleted by now', async () => {
  const env = await plantEnv(node, 'acme')
  const { project_id } = await plantBuild(node, env, { name: 'shop', functions: [{ ns: 'a', var: 'b' }] })
  const claim_id = newId()
  const again = { ...env.caller, newId: (what: string) => derivedIdBeside(claim_id, what) }
  const call = () =>
    publishEvent(
      node.deps,
      { event_type: 'svc:call', event_data: { fn: 'a/b', args: [large] }, source: 'api' },
      again,
    )
  const first = await call()
  await deleteProject(node.deps, { project: project_id }, env.caller)
  assert.equal((await call()).event, first.event)
})

stream('keeps data over 64 KiB out of the log', async () => {
  const event_data = 'x'.repeat(100_000)
  const { event } = await publishEvent(node.deps, { event_type: 'a', event_data, source: 'api' }, caller)
  assert.is(event.event_data, event_data)
  for await (const { event: fact } of node.store.read(`stream-${event.stream_id}`))
    assert.ok(JSON.stringify(fact).length < 1000)
})

const blobsOf = (env: string) => Array.fromAsync(node.blobs.list(payloadsOf(env)))

for (const [what, stream_id] of [
  ['that does not exist', newId()],
  ['of another environment (I7)', begun.stream_id],
] as const)
  stream(`stores no large data for a stream ${what}`, async () => {
    const stranger = callerOf(newId())
    const wanted = { event_type: 'a', event_data: large, source: 'api', stream_id }
    await refusedWith('not_found', () => publishEvent(node.deps, wanted, stranger))
    assert.equal(await blobsOf(stranger.cause.env_id), [])
  })

for (const call of [
  { op: 'send', event_type: 'a', event_data: `late ${large}` },
  { op: 'emit', data_type: 'a', payload: `later ${large}` },
] as const satisfies HostCall[])
  stream(`stores no large data of a run that is not running: ${call.op}`, async () => {
    const before = await blobsOf(env_id)
    await refusedWith('conflict', () => hostCall(call, { ...plan, run_id: newId() }))
    assert.equal(await blobsOf(env_id), before)
  })

stream('of a cancellation stores the id of the run only, because no quota refuses it', async () => {
  const { run_id } = plan
  const event_data = { run_id, more: 'x'.repeat(50_000) }
  const { event } = await publishEvent(
    node.deps,
    { event_type: 'svc:cancel', event_data, source: 'api' },
    caller,
  )
  assert.equal(event.event_data, { run_id })
  for await (const { event: fact } of node.store.read(streamOf.stream(event.stream_id)))
    assert.ok(JSON.stringify(fact).length < 1000)
})

stream.after(() => node.close())
stream.run()
