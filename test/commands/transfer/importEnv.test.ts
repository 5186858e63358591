import { expireCalls } from '../../../src/commands/orgs/expireCalls.ts'
import { buffer } from 'node:stream/consumers'
import * as assert from 'uvu/assert'
import { clock } from '../../../src/clock.ts'
import { readVariable } from '../../../src/commands/context/readVariable.ts'
import { publishEvent } from '../../../src/commands/events/publishEvent.ts'
import { changeOrg } from '../../../src/commands/orgs/changeOrg.ts'
import { findOrg } from '../../../src/commands/orgs/findTenant.ts'
import { importEnv } from '../../../src/commands/transfer/importEnv.ts'
import { isAppError } from '../../../src/errors.ts'
import { MAX_JSON_DEPTH } from '../../../src/events/jsonDepth.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { newId } from '../../../src/ids.ts'
import { TransferKey } from '../../../src/secrets/transferKey.ts'
import { forwarding } from '../../support/forwarding.ts'
import { suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'
import { openCommands } from '../openCommands.ts'
import { plantBuild, plantEnv } from '../plantEnv.ts'
import { attacksBy, attacksOnExpired } from './importAttacks.ts'
import {
  cause,
  entriesOf,
  type Entry,
  fileOf,
  fill,
  handle,
  importInto,
  type Node,
  type Tenant,
  transferKey,
} from './importHarness.ts'

/** `fresh`, `later` and `twice` have no fact of an earlier import. */
const [source, target, fresh, later, twice] = await Promise.all([
  openCommands(),
  openCommands(),
  openCommands(),
  openCommands(),
  openCommands(),
])

/** Stores a run that succeeds after the facts before its end have expired. Resolves with its stream. */
const cutStream = async ({ deps }: Node, { env_id }: Tenant): Promise<string> => {
  const { store, aggregates } = deps
  const [stream_id, run_id, event_id] = [newId(), newId(), newId()]
  const target = {
    project_id: newId(),
    project_name: 'gone',
    build_id: newId(),
    target: { ns: 'a', var: 'b' },
  }
  const plan = { run_id, stream_id, event_id, run_type: 'event', attempt: 1, ...target } as const
  const inEnv = { ...cause, env_id }
  const stream = streamOf.stream(stream_id)
  const data = { event_id, event_type: 'x', data: { value: 1 }, source: 'api', create: true } as const
  const claim = { plans: [plan], worker_id: newId() }
  const now = clock.iso()
  await aggregates.streams.handle(
    stream,
    { type: 'PublishEvent', stream_id, env_id, ...data, claim, now },
    inEnv,
  )
  const log = streamOf.runLog(run_id)
  const lines = [{ at: now, source: 'stdout', text: 'x' }] as const
  for (const part of [0, 1]) {
    await aggregates.runLogs.handle(log, { type: 'LogLines', run_id, writer: 'w', part, lines }, inEnv)
    if (part === 0) await expireNow(store, log)
  }
  await expireNow(store, stream)
  const end = { type: 'SucceedRun', run_id, result: { value: 2 }, worker_id: claim.worker_id, now } as const
  await aggregates.streams.handle(stream, end, inEnv)
  return stream_id
}

/** Starts a run that does not end. Resolves with its id. */
const startedRun = async ({ deps, views }: Node, { env_id }: Tenant): Promise<string> => {
  const [stream_id, run_id] = [newId(), newId()]
  const target = {
    project_id: newId(),
    project_name: 'gone',
    build_id: newId(),
    target: { ns: 'a', var: 'b' },
  }
  const plan = { run_id, stream_id, run_type: 'call', attempt: 1, ...target } as const
  const claim = { worker_id: newId(), now: clock.iso() }
  await deps.aggregates.streams.handle(
    streamOf.stream(stream_id),
    { type: 'RequestRun', env_id, plan, create: true, claim },
    { ...cause, env_id },
  )
  await views.settled('runs')
  return run_id
}

const expireNow = async (store: Node['deps']['store'], stream: string): Promise<void> => {
  await store.expire(stream, 0)
  await until(() => store.isExpired(stream))
  await store.scavenge?.()
  await store.expire(stream, null)
}

const mine = await plantEnv(source, 'acme')
const project_id = await fill(source, mine)
const days = { env_id: mine.env_id, day: '2026-05-01' }
const calls = `calls-${mine.env_id}`
const count = (command: Parameters<typeof source.deps.aggregates.calls.handle>[1]) =>
  source.deps.aggregates.calls.handle(calls, command, { ...cause, env_id: mine.env_id })
await count({ type: 'CountDay', ...days, runs: 3, bytes: 100 })
await count({ type: 'CountRuns', ...days, tallies: { call: { n: [3], d: { 7: 3 } } } })
await count({ type: 'ExpireCalls', env_id: mine.env_id, before: '2026-05-02' })
/** An environment with a stream whose beginning has expired. */
const aged = await plantEnv(source, 'aged', 'starter')
const agedBuild = await plantBuild(source, aged, { name: 'old' })
const cut = streamOf.stream(await cutStream(source, aged))
const callsIn = async (node: Node) =>
  (await Array.fromAsync(node.deps.store.read(calls))).map(({ event }) => event)
const victim = await plantEnv(target, 'victim')
const victims = await fill(target, victim)
const { build_id: victimsBuild } = await plantBuild(target, victim, { name: 'built' })

const exported = (tenant: Tenant = mine, node: Node = source): Promise<Entry[]> => entriesOf(node, tenant)

/** Everything of an environment that another tenant could have changed. */
const stateOf = async ({ views, blobs }: Node, { env_id }: Tenant): Promise<string> => {
  await views.settled()
  const all = { equal: { env_id }, limit: 100, offset: 0 }
  const keys = (await Array.fromAsync(blobs.list(''))).filter(({ key }) => key.includes(env_id))
  const bytes = await Promise.all(
    keys.map(async ({ key }) => [key, (await buffer(await blobs.get(key))).toString('hex')]),
  )
  return JSON.stringify([
    await views.projects.find({ ...all, sort: 'order' }),
    await views.builds.find({ equal: { env_id }, limit: 100, offset: 0, sort: 'order' }),
    await views.events.find({ ...all, sort: 'order' }),
    await views.files.find({ ...all, sort: 'path' }),
    await views.runs.find({ ...all, sort: 'order' }),
    bytes,
  ])
}

const transfer = suite('an import', { timeoutMs: 60_000 })

const theirs = await (async () => {
  const all = { equal: { env_id: victim.env_id }, limit: 1, offset: 0 }
  await target.views.settled('events', 'files')
  const [event] = (await target.views.events.find({ ...all, sort: 'order' })).items
  const [file] = (await target.views.files.find({ ...all, sort: 'path' })).items
  const stream_id = event?.stream_id ?? ''
  return {
    env_id: victim.env_id,
    project_id: victims,
    build_id: victimsBuild,
    event_id: event?.event_id ?? '',
    stream_id,
    file_id: file?.file_id ?? '',
    expired: await cutStream(target, victim),
    run_id: await startedRun(target, victim),
    facts: await Array.fromAsync(target.deps.store.read(streamOf.stream(stream_id))),
  }
})()
const attacks = attacksBy({ env_id: mine.env_id, project_id }, theirs)
const attacksOnAged = attacksOnExpired({ ...agedBuild, cut }, theirs)

/** Attacks on the counts themselves. */
const COUNTING = /\bend\b/

/** Makes the end agree with a changed file, so that it is refused for its change. */
const recount = (entries: readonly Entry[]): void => {
  const end = entries.at(-1)?.line['end'] as { keys: number; blobs: number; facts: number }
  end.facts = entries.filter(({ line }) => 'event' in line).length
}

for (const [what, change] of [...Object.entries(attacks), ...Object.entries(attacksOnAged)])
  transfer(`of a file with ${what} is refused, and no other tenant is changed`, async () => {
    const before = await stateOf(target, victim)
    const tenant = what in attacksOnAged ? aged : mine
    const entries = await exported(tenant)
    change(entries)
    if (!COUNTING.test(what)) recount(entries)
    const error = await importInto(target, entries).then(
      () => null,
      (thrown: unknown) => thrown,
    )
    assert.ok(isAppError(error) && error.status < 500, String(error))
    assert.not.match((error as Error).message, '\n')
    assert.is(await stateOf(target, victim), before)
    const { views } = target
    assert.is(await views.envs.get(tenant.env_id), null, 'the environment was not created')
  })

transfer('is refused with another transfer key', async () => {
  const error = await importInto(target, await exported(), new TransferKey(Buffer.alloc(32, 6))).catch(String)
  assert.match(String(error), 'do not open')
})

transfer('of the whole file creates the environment, and a repetition changes nothing', async () => {
  const entries = await exported()
  const { facts } = await importInto(target, entries)
  const state = await stateOf(target, mine)
  assert.is(await stateOf(source, mine).then((text) => text.length), state.length)
  const place = { env_id: mine.env_id, project_id }
  assert.is(await readVariable(target.deps, { ...place, key: 'KEY' }), 'secret')
  assert.equal(await callsIn(target), await callsIn(source))
  assert.is((await importInto(target, entries)).facts, facts)
  assert.is(await stateOf(target, mine), state)
})

transfer('keeps the revisions of a stream whose beginning has expired, and sets its retention', async () => {
  const facts = (node: Node, stream: string) => Array.fromAsync(node.deps.store.read(stream))
  const [left] = await facts(source, cut)
  const log = streamOf.runLog((left?.event as { run_id?: string } | undefined)?.run_id ?? '')
  const set = new Map<string, number | null>()
  const expire = (stream: string, seconds: number | null) => Promise.resolve(void set.set(stream, seconds))
  const store = forwarding(fresh.deps.store, { expire })
  await importEnv({ ...fresh.deps, store }, { content: fileOf(await exported(aged)), transferKey }, cause)
  const moved = await facts(fresh, cut)
  assert.equal(
    moved.map(({ revision, event }) => [revision, event.type]),
    [...[0, 1, 2, 3].map((n) => [n, 'FactExpired']), [4, 'RunSucceeded']],
  )
  assert.equal([moved.at(-1)?.id, moved.at(-1)?.at], [left?.id, left?.at])
  assert.equal(
    (await facts(fresh, log)).map(({ event }) => event.type),
    ['FactExpired', 'RunLogged'],
  )
  assert.equal([...set].sort(), [[log, 31.5 * 86_400] as const, [cut, 31.5 * 86_400] as const].sort())
  const again = await importInto(fresh, await exported(aged))
  assert.is((await facts(fresh, cut)).length, moved.length)
  await importInto(later, await exported(aged, fresh))
  assert.equal(
    (await facts(later, cut)).map(({ id, revision }) => [id, revision]),
    moved.map(({ id, revision }) => [id, revision]),
  )
  assert.ok(again.facts > 0)
})

transfer('contains values as deep as those that a function may return and send', async () => {
  const tenant = await plantEnv(source, 'deep')
  let nested: unknown = 1
  for (let level = 0; level < MAX_JSON_DEPTH; level++) nested = [nested]
  const sent = { event_type: 'sent', event_data: nested, source: 'function' }
  const { event } = await publishEvent(source.deps, sent, tenant.caller)
  await handle(source, { event })
  await importInto(target, await exported(tenant))
  const [, stored] = await Array.fromAsync(target.deps.store.read(streamOf.stream(event.stream_id)))
  assert.equal(stored?.event, (await Array.fromAsync(source.deps.store.read(stored?.stream ?? '')))[1]?.event)
})

transfer('keeps the longest name that an organization may have', async () => {
  const tenant = await plantEnv(source, 'named')
  const org_name = '😀'.repeat(200)
  await changeOrg(source.deps, { org: 'named', name: org_name }, cause)
  await source.views.settled()
  await importInto(target, await exported(tenant))
  await target.views.settled()
  assert.is((await findOrg(target.deps, 'named')).name, org_name)
})

transfer('by two operators at once is the same as one import', async () => {
  const entries = await exported()
  const [one, other] = await Promise.all([importInto(twice, entries), importInto(twice, entries)])
  assert.equal(one, other)
  assert.is(await stateOf(twice, mine).then((text) => text.length), (await stateOf(source, mine)).length)
  assert.equal(await callsIn(twice), await callsIn(source))
})

transfer('of a later export continues that of an earlier one', async () => {
  const entries = await exported()
  const earlier = entries.toSpliced(-2, 1)
  recount(earlier)
  await importInto(later, earlier)
  assert.equal((await callsIn(later)).length, 2)
  recount(entries)
  await importInto(later, entries)
  assert.equal(await callsIn(later), await callsIn(source))
})

transfer('continues after the plan of the installation has expired days of the environment', async () => {
  const swept = await openCommands()
  await plantEnv(swept, 'acme', 'free')
  const sweep = async () => {
    await expireCalls(swept.deps, { now: clock.now() })
    await swept.views.settled()
  }
  const ofSource = (await callsIn(source)).map((event) => JSON.stringify(event))
  const counts = async () =>
    (await callsIn(swept)).map((event) => JSON.stringify(event)).filter((event) => ofSource.includes(event))
  await sweep()
  assert.equal(
    (await callsIn(swept)).map(({ type }) => type),
    ['CallsExpired'],
  )
  const entries = await exported()
  const earlier = entries.toSpliced(-2, 1)
  recount(earlier)
  await importInto(swept, earlier)
  await sweep()
  recount(entries)
  await importInto(swept, entries)
  const once = ofSource.filter((event) => !event.includes('CallsExpired'))
  assert.equal(await counts(), once, 'a day that has expired here stays expired')
  await importInto(swept, entries)
  assert.equal(await counts(), once)
  await swept.views.settled()
  const { runs } = (await swept.views.callDays.get(`${mine.env_id}/${days.day}`)) ?? {}
  assert.is(runs, 3)
})

transfer('is not possible with an event that no worker has taken: the export says so', async () => {
  const event = { event_type: 'asked', event_data: null, source: 'api' }
  const published = await publishEvent(source.deps, event, mine.caller)
  const entries = await exported()
  assert.match(
    String(entries.at(-1)?.line['error']),
    'The environment has 1 events and requested runs that no worker has taken; repeat the export when',
  )
  await handle(source, published)
  assert.ok((await exported()).at(-1)?.line['end'])
})

transfer('does not bring back a key that was erased since', async () => {
  await target.deps.dataKeys.destroy(
    { env_id: mine.env_id },
    { final: false },
    { ...cause, env_id: mine.env_id },
  )
  await importInto(target, await exported())
  const keys = await Array.fromAsync(target.blobs.list(`keys/${mine.env_id}/`))
  assert.equal(keys, [])
})
transfer.run()
