import { createHash } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import * as assert from 'uvu/assert'
import { clock } from '../../../src/clock.ts'
import { createVariable } from '../../../src/commands/context/createVariable.ts'
import { readVariable } from '../../../src/commands/context/readVariable.ts'
import { dispatchEvent } from '../../support/dispatchEvent.ts'
import { publishEvent } from '../../../src/commands/events/publishEvent.ts'
import { removeOrphanZips } from '../../../src/commands/builds/removeOrphanZips.ts'
import { storeFile } from '../../../src/commands/files/storeFile.ts'
import { removeOrphans } from '../../../src/commands/files/removeOrphans.ts'
import { createProject } from '../../../src/commands/projects/createProject.ts'
import { exportEnv } from '../../../src/commands/transfer/exportEnv.ts'
import { importEnv } from '../../../src/commands/transfer/importEnv.ts'
import { RecordWriter, recordsIn } from '../../../src/commands/transfer/records.ts'
import { isAppError } from '../../../src/errors.ts'
import { isOf } from '../../../src/events/event.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { newId } from '../../../src/ids.ts'
import { buildKey } from '../../../src/ports/runtime.ts'
import { TransferKey } from '../../../src/secrets/transferKey.ts'
import { forwarding } from '../../support/forwarding.ts'
import { suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'
import { openCommands } from '../openCommands.ts'
import { plantBuild, plantEnv } from '../plantEnv.ts'

type Line = Record<string, unknown>
interface Entry {
  line: Line
  bytes: Buffer
}

/** `fresh`, `later` and `twice` have no fact of an earlier import. */
const [source, target, fresh, later, twice] = await Promise.all([
  openCommands(),
  openCommands(),
  openCommands(),
  openCommands(),
  openCommands(),
])
const transferKey = new TransferKey(Buffer.alloc(32, 5))
const cause = { correlation_id: newId(), actor: 'operator' }

type Node = typeof source
type Tenant = Awaited<ReturnType<typeof plantEnv>>

/** Does what a worker does for an event without handlers. */
const handle = async (
  node: Node,
  { event }: { readonly event: { readonly stream_id: string } },
): Promise<void> => {
  for await (const fact of node.deps.store.read(`stream-${event.stream_id}`))
    if (isOf(fact, 'EventPublished')) await dispatchEvent(node.deps, { published: fact, worker_id: newId() })
}

const fill = async (node: Node, { caller }: Tenant): Promise<string> => {
  const { project_id } = await createProject(node.deps, { name: 'shop' }, caller)
  await node.views.settled()
  await createVariable(node.deps, { project: 'shop', key: 'KEY', value: 'secret' }, caller)
  await handle(
    node,
    await publishEvent(node.deps, { event_type: 'asked', event_data: { n: 1 }, source: 'api' }, caller),
  )
  const content = async function* () {
    yield Buffer.from('content')
    await Promise.resolve()
  }
  await storeFile(
    node.deps,
    { path: 'a.txt', content_type: 'text/plain', run_id: null, announced: 7, content },
    caller.cause,
  )
  await node.views.settled()
  return project_id
}

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
    await aggregates.runLogs.handle(log, { type: 'LogLines', run_id, part, lines }, inEnv)
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
const { build_id: agedBuild, project_id: agedProject } = await plantBuild(source, aged, { name: 'old' })
/** An environment with a build whose zip is stored. */
const building = await plantEnv(source, 'building')
const zip = await (async () => {
  const bytes = Buffer.from('a zip')
  const hash = createHash('sha256').update(bytes).digest('hex')
  const build = await plantBuild(source, building, { name: 'zipped', hash })
  const key = buildKey(build)
  await source.blobs.put(key, bytes)
  return { bytes, hash, key }
})()
const cut = streamOf.stream(await cutStream(source, aged))
const callsIn = async (node: Node) =>
  (await Array.fromAsync(node.deps.store.read(calls))).map(({ event }) => event)
const victim = await plantEnv(target, 'victim')
const victims = await fill(target, victim)
const { build_id: victimsBuild } = await plantBuild(target, victim, { name: 'built' })

const exported = async ({ env_id }: Tenant = mine, node = source): Promise<Entry[]> => {
  const entries: Entry[] = []
  const records = recordsIn(await exportEnv(node.deps, { env_id, transferKey }))
  for await (const { line, bytes } of records) {
    const { sum: _, ...own } = line
    entries.push({ line: own, bytes: await buffer(bytes) })
  }
  return entries
}

async function* fileOf(
  entries: readonly Entry[],
  writer: RecordWriter = new RecordWriter(),
): AsyncGenerator<Uint8Array> {
  for (const { line, bytes } of entries) {
    yield writer.line(line)
    if (bytes.length > 0) yield* [writer.bytes(bytes), writer.endOfBytes()]
  }
  await Promise.resolve()
}

const importInto = (node: Node, entries: readonly Entry[], key = transferKey) =>
  importEnv(node.deps, { content: fileOf(entries), transferKey: key }, cause)

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

const entryOf = (entries: readonly Entry[], type: string): Entry => {
  const found = entries.find(({ line }) => (line['event'] as Line | undefined)?.['type'] === type)
  if (!found) throw new Error(`The file has no ${type}`)
  return found
}
const factOf = (entries: readonly Entry[], type: string): Line => entryOf(entries, type).line
const eventOf = (entries: readonly Entry[], type: string): Line => factOf(entries, type)['event'] as Line

const transfer = suite('an import', { timeoutMs: 60_000 })

const someId = newId()
const theirs = await (async () => {
  const all = { equal: { env_id: victim.env_id }, limit: 1, offset: 0 }
  await target.views.settled('events', 'files')
  const [event] = (await target.views.events.find({ ...all, sort: 'order' })).items
  const [file] = (await target.views.files.find({ ...all, sort: 'path' })).items
  return { event_id: event?.event_id ?? '', stream_id: event?.stream_id ?? '', file_id: file?.file_id ?? '' }
})()

const expiredOfVictim = await cutStream(target, victim)
const victimsRun = await startedRun(target, victim)
const theirFacts = await Array.fromAsync(target.deps.store.read(`stream-${theirs.stream_id}`))

/** Moves the event of the file into the stream of another tenant. */
const intoTheirStream = (entries: readonly Entry[]): readonly Line[] =>
  ['StreamCreated', 'EventPublished', 'EventHandled'].map((type) => {
    eventOf(entries, type)['stream_id'] = theirs.stream_id
    const fact = factOf(entries, type)
    fact['stream'] = `stream-${theirs.stream_id}`
    return fact
  })

const attacks: Readonly<Record<string, (entries: Entry[]) => unknown>> = {
  'a fact of another environment': (all) =>
    ((factOf(all, 'EventPublished')['metadata'] as Line)['env_id'] = victim.env_id),
  'a fact in the stream of another project': (all) =>
    (factOf(all, 'ProjectCreated')['stream'] = `project-${victims}`),
  'a project with the id of another': (all) => {
    eventOf(all, 'ProjectCreated')['project_id'] = victims
    factOf(all, 'ProjectCreated')['stream'] = `project-${victims}`
  },
  'an event with the id of another': (all) => (eventOf(all, 'EventPublished')['event_id'] = theirs.event_id),
  'an event in the stream of another': intoTheirStream,
  'an event in the stream of another, after its last fact': (all) =>
    intoTheirStream(all).forEach((fact, n) => (fact['revision'] = theirFacts.length + n)),
  'an event in the stream of another, with the ids of its facts': (all) =>
    intoTheirStream(all).forEach((fact, n) => (fact['id'] = theirFacts[n]?.id)),
  'a project of another, after its last fact': (all) => {
    eventOf(all, 'ProjectCreated')['project_id'] = victims
    Object.assign(factOf(all, 'ProjectCreated'), { stream: `project-${victims}`, revision: 1 })
  },
  'a stream without its first fact': (all) => (factOf(all, 'EventPublished')['revision'] = 2),
  'a file with the id of another': (all) => (eventOf(all, 'FileStored')['file_id'] = theirs.file_id),
  'a file with the content of another': (all) =>
    (eventOf(all, 'FileStored')['key'] = `files/${victim.env_id}/00/x`),
  'a file at a path that leads elsewhere': (all) =>
    (eventOf(all, 'FileStored')['path'] = '../../secrets.json'),
  'a payload of another': (all) => {
    const event = eventOf(all, 'EventPublished')
    event['event_data_ref'] = { key: `payloads/${victim.env_id}/x`, size: 1, sha256: 'x' }
  },
  'a variable of another project': (all) => {
    eventOf(all, 'ContextVariableCreated')['project_id'] = victims
    factOf(all, 'ContextVariableCreated')['stream'] = `context-${victims}`
  },
  'the beginning of a run that the file does not contain': (all) => {
    const { stream_id } = eventOf(all, 'StreamCreated') as { stream_id: string }
    const event = { type: 'RunBegun', run_id: someId, stream_id, worker_id: someId }
    const fact = { ...factOf(all, 'EventPublished'), id: newId(), revision: 3, event }
    all.splice(-1, 0, { line: fact, bytes: Buffer.alloc(0) })
  },
  'a run of the build of another': (all) => {
    const { stream_id } = eventOf(all, 'StreamCreated') as { stream_id: string }
    const plan = { run_type: 'call', build_id: victimsBuild, project_id, project_name: 'shop', attempt: 1 }
    const event = { type: 'RunRequested', run_id: newId(), stream_id, target: { ns: 'a', var: 'b' }, ...plan }
    const fact = { ...factOf(all, 'EventPublished'), id: newId(), revision: 3, event }
    all.splice(-1, 0, { line: fact, bytes: Buffer.alloc(0) })
  },
  'a type of fact that is not transferred': (all) =>
    (factOf(all, 'EventPublished')['event'] = { type: 'EnvDeleted', env_id: victim.env_id }),
  'a type of fact that does not exist': (all) =>
    (factOf(all, 'EventPublished')['event'] = { type: '__proto__' }),
  'a field that does not exist': (all) => (eventOf(all, 'EventPublished')['admin'] = true),
  'a fact of a later version': (all) => ((factOf(all, 'EventPublished')['metadata'] as Line)['v'] = 99),
  'a day with less than no runs': (all) => (eventOf(all, 'CallDayCounted')['runs'] = -1),
  'statistics with less than no runs': (all) =>
    (eventOf(all, 'RunDayCounted')['tallies'] = { call: { n: [-1], d: {} } }),
  'a day that is none': (all) => (eventOf(all, 'RunDayCounted')['day'] = 'yesterday'),
  'a time in the future': (all) => (factOf(all, 'EventPublished')['at'] = '2999-01-01T00:00:00.000Z'),
  'a blob of another': (all) => {
    const blob = all.find(({ line }) => 'blob' in line)
    if (blob) blob.line['blob'] = `files/${victim.env_id}/00/x`
  },
  'a blob outside of every folder': (all) => {
    const blob = all.find(({ line }) => 'blob' in line)
    if (blob) blob.line['blob'] = `files/${mine.env_id}/../../../x`
  },
  'a zip without the hash in its key': (all) => {
    const blob = all.find(({ line }) => 'blob' in line)
    if (blob) blob.line['blob'] = `builds/${project_id}/${newId()}-${'a'.repeat(64)}.zip`
  },
  'a data key of another project': (all) => {
    const key = all.find(({ line }) => 'key' in line)
    if (key) key.line['project_id'] = victims
  },
  'the name of another organization': (all) => ((all[0] as Entry).line['org'] = 'victim'),
  'the id of another environment': (all) => ((all[0] as Entry).line['env_id'] = victim.env_id),
  'deeply nested data': (all) =>
    (eventOf(all, 'EventPublished')['event_data'] = JSON.parse('['.repeat(500) + ']'.repeat(500)) as unknown),
  'fewer facts than its end counts': (all) => all.splice(-2, 1),
  'no end': (all) => all.splice(-1, 1),
  'something after its end': (all) => all.push({ line: { key: newId() }, bytes: Buffer.alloc(0) }),
}

const firstOfCut = (all: readonly Entry[]): Line => {
  const first = all.find(({ line }) => line['stream'] === cut)
  assert.ok(first, cut)
  return first?.line ?? {}
}

/** The same for a file with a stream whose beginning has expired. */
const attacksOnExpired: typeof attacks = {
  'an event in the stream of another whose facts have expired': (all) => {
    const first = firstOfCut(all)
    ;(first['event'] as Line)['stream_id'] = expiredOfVictim
    first['stream'] = streamOf.stream(expiredOfVictim)
  },
  'an end of a run of another, in a stream whose beginning has expired': (all) =>
    ((firstOfCut(all)['event'] as Line)['run_id'] = victimsRun),
  'a run with the input of another': (all) => {
    const first = firstOfCut(all)
    const { stream_id, run_id } = first['event'] as { stream_id: string; run_id: string }
    const plan = { run_type: 'call', project_id: agedProject, project_name: 'old', build_id: agedBuild }
    const input_at = { stream_id: theirs.stream_id, revision: 1 }
    const ids = { run_id, stream_id, target: { ns: 'a', var: 'b' }, attempt: 1 }
    first['event'] = { type: 'RunRequested', ...ids, ...plan, input_at }
  },
  'more expired facts than fit': (all) => (firstOfCut(all)['revision'] = 10_000_001),
  'a revision that is no number': (all) => (firstOfCut(all)['revision'] = 1e300),
  'a gap after the expired facts': (all) => {
    const first = firstOfCut(all)
    const later = { ...first, id: newId(), revision: Number(first['revision']) + 2 }
    all.splice(-1, 0, { line: later, bytes: Buffer.alloc(0) })
  },
  'a project without its beginning': (all) => {
    for (const { line } of all.filter(({ line }) => line['stream'] === `project-${agedProject}`))
      line['revision'] = Number(line['revision']) + 1
  },
}

/** Attacks on the counts themselves. */
const COUNTING = /\bend\b/

/** Makes the end agree with a changed file, so that it is refused for its change. */
const recount = (entries: readonly Entry[]): void => {
  const end = entries.at(-1)?.line['end'] as { keys: number; blobs: number; facts: number }
  end.facts = entries.filter(({ line }) => 'event' in line).length
}

for (const [what, change] of [...Object.entries(attacks), ...Object.entries(attacksOnExpired)])
  transfer(`of a file with ${what} is refused, and no other tenant is changed`, async () => {
    const before = await stateOf(target, victim)
    const tenant = what in attacksOnExpired ? aged : mine
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

transfer(
  'whose content is removed as an orphan before its fact is stored is refused, and can be repeated',
  async () => {
    const entries = await exported()
    const { key } = eventOf(entries, 'FileStored') as { key: string }
    const swept = async function* () {
      const facts = entries.findIndex(({ line }) => 'event' in line)
      const writer = new RecordWriter()
      yield* fileOf(entries.slice(0, facts), writer)
      await removeOrphans(fresh.deps, { now: clock.now() + 365 * 24 * 3600_000 })
      assert.is(await fresh.blobs.head(key), null)
      yield* fileOf(entries.slice(facts), writer)
    }
    const error = await importEnv(fresh.deps, { content: swept(), transferKey }, cause).catch(String)
    assert.match(String(error), `The blob ${key} was removed during the import; repeat the import`)
    assert.is(await fresh.views.envs.get(mine.env_id), null, 'the environment was not created')
    await importInto(fresh, entries)
    assert.is((await buffer(await fresh.blobs.get(key))).toString(), 'content')
  },
)

for (const before of ['the first fact', 'BuildDeployed', 'the fact after BuildDeployed'] as const)
  transfer(
    `whose zip is removed as an orphan before ${before} arrives is refused, and can be repeated`,
    async () => {
      const [node, entries] = [await openCommands(), await exported(building)]
      const first = entries.findIndex(({ line }) => 'event' in line)
      const deployed = entries.indexOf(entryOf(entries, 'BuildDeployed'))
      const at = {
        'the first fact': first,
        BuildDeployed: deployed,
        'the fact after BuildDeployed': deployed + 1,
      }[before]
      const suspects = new Set<string>()
      const swept = async function* () {
        const writer = new RecordWriter()
        yield* fileOf(entries.slice(0, at), writer)
        for (const removed of [0, 1]) assert.is(await removeOrphanZips(node.deps, suspects), removed)
        yield* fileOf(entries.slice(at), writer)
      }
      const error = await importEnv(node.deps, { content: swept(), transferKey }, cause).catch(String)
      assert.match(String(error), `The blob ${zip.key} was removed during the import; repeat the import`)
      await importInto(node, entries)
      await node.views.settled()
      const { env_id } = building
      const { items } = await node.views.builds.find({
        equal: { env_id },
        limit: 9,
        offset: 0,
        sort: 'order',
      })
      assert.equal(
        items.map(({ hash, storage_path }) => [hash, storage_path]),
        [[zip.hash, zip.key]],
      )
      assert.equal(await buffer(await node.blobs.get(zip.key)), zip.bytes)
    },
  )

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
  assert.equal([...set].sort(), [[log, 30 * 86_400] as const, [cut, 30 * 86_400] as const].sort())
  const again = await importInto(fresh, await exported(aged))
  assert.is((await facts(fresh, cut)).length, moved.length)
  await importInto(later, await exported(aged, fresh))
  assert.equal(
    (await facts(later, cut)).map(({ id, revision }) => [id, revision]),
    moved.map(({ id, revision }) => [id, revision]),
  )
  assert.ok(again.facts > 0)
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
