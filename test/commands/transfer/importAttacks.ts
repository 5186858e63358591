import * as assert from 'uvu/assert'
import { streamOf } from '../../../src/events/streams.ts'
import { newId } from '../../../src/ids.ts'
import { type Entry, eventOf, factOf, type Line } from './importHarness.ts'

/** Changes of a file that an import has to refuse, by what the file has then. */
type Attacks = Readonly<Record<string, (entries: Entry[]) => unknown>>

/** The environment of the file. */
interface Mine {
  readonly env_id: string
  readonly project_id: string
}

/** The environment of a file: the beginning of its stream `cut` has expired. */
interface Aged {
  readonly project_id: string
  readonly build_id: string
  readonly cut: string
}

/** Ids of another tenant: `facts` are those of its stream, and the facts of its stream `expired` have expired. */
interface Theirs {
  readonly env_id: string
  readonly project_id: string
  readonly build_id: string
  readonly event_id: string
  readonly stream_id: string
  readonly file_id: string
  readonly run_id: string
  readonly facts: readonly { readonly id: string }[]
  readonly expired: string
}

/** Moves the event of the file into another stream. */
const intoStream = (entries: readonly Entry[], stream_id: string): readonly Line[] =>
  ['StreamCreated', 'EventPublished', 'EventHandled'].map((type) => {
    eventOf(entries, type)['stream_id'] = stream_id
    const fact = factOf(entries, type)
    fact['stream'] = `stream-${stream_id}`
    return fact
  })

const someId = newId()

/** For a file with what `fill` stores, and with counted calls and runs. */
export const attacksBy = (mine: Mine, theirs: Theirs): Attacks => ({
  'a fact of another environment': (all) =>
    ((factOf(all, 'EventPublished')['metadata'] as Line)['env_id'] = theirs.env_id),
  'a fact in the stream of another project': (all) =>
    (factOf(all, 'ProjectCreated')['stream'] = `project-${theirs.project_id}`),
  'a project with the id of another': (all) => {
    eventOf(all, 'ProjectCreated')['project_id'] = theirs.project_id
    factOf(all, 'ProjectCreated')['stream'] = `project-${theirs.project_id}`
  },
  'an event with the id of another': (all) => (eventOf(all, 'EventPublished')['event_id'] = theirs.event_id),
  'an event in the stream of another': (all) => intoStream(all, theirs.stream_id),
  'an event in the stream of another, after its last fact': (all) =>
    intoStream(all, theirs.stream_id).forEach((fact, n) => (fact['revision'] = theirs.facts.length + n)),
  'an event in the stream of another, with the ids of its facts': (all) =>
    intoStream(all, theirs.stream_id).forEach((fact, n) => (fact['id'] = theirs.facts[n]?.id)),
  'a project of another, after its last fact': (all) => {
    eventOf(all, 'ProjectCreated')['project_id'] = theirs.project_id
    Object.assign(factOf(all, 'ProjectCreated'), { stream: `project-${theirs.project_id}`, revision: 1 })
  },
  'a stream without its first fact': (all) => (factOf(all, 'EventPublished')['revision'] = 2),
  'a file with the id of another': (all) => (eventOf(all, 'FileStored')['file_id'] = theirs.file_id),
  'a file with the content of another': (all) =>
    (eventOf(all, 'FileStored')['key'] = `files/${theirs.env_id}/00/x`),
  'a file at a path that leads elsewhere': (all) =>
    (eventOf(all, 'FileStored')['path'] = '../../secrets.json'),
  'a payload of another': (all) => {
    const event = eventOf(all, 'EventPublished')
    event['event_data_ref'] = { key: `payloads/${theirs.env_id}/x`, size: 1, sha256: 'x' }
  },
  'a variable of another project': (all) => {
    eventOf(all, 'ContextVariableCreated')['project_id'] = theirs.project_id
    factOf(all, 'ContextVariableCreated')['stream'] = `context-${theirs.project_id}`
  },
  'the beginning of a run that the file does not contain': (all) => {
    const { stream_id } = eventOf(all, 'StreamCreated') as { stream_id: string }
    const event = { type: 'RunBegun', run_id: someId, stream_id, worker_id: someId }
    const fact = { ...factOf(all, 'EventPublished'), id: newId(), revision: 3, event }
    all.splice(-1, 0, { line: fact, bytes: Buffer.alloc(0) })
  },
  'a run of the build of another': (all) => {
    const { stream_id } = eventOf(all, 'StreamCreated') as { stream_id: string }
    const plan = {
      run_type: 'call',
      build_id: theirs.build_id,
      project_id: mine.project_id,
      project_name: 'shop',
      attempt: 1,
    }
    const event = { type: 'RunRequested', run_id: newId(), stream_id, target: { ns: 'a', var: 'b' }, ...plan }
    const fact = { ...factOf(all, 'EventPublished'), id: newId(), revision: 3, event }
    all.splice(-1, 0, { line: fact, bytes: Buffer.alloc(0) })
  },
  'a type of fact that is not transferred': (all) =>
    (factOf(all, 'EventPublished')['event'] = { type: 'EnvDeleted', env_id: theirs.env_id }),
  'a type of fact that does not exist': (all) =>
    (factOf(all, 'EventPublished')['event'] = { type: '__proto__' }),
  'a field that does not exist': (all) => (eventOf(all, 'EventPublished')['admin'] = true),
  'a fact of a later version': (all) => ((factOf(all, 'EventPublished')['metadata'] as Line)['v'] = 99),
  'a file with less than no bytes': (all) => (eventOf(all, 'FileStored')['size'] = -1),
  'a file with fewer bytes than its content': (all) => (eventOf(all, 'FileStored')['size'] = 6),
  'a deleted file with more bytes than it had': (all) => {
    const { file_id, path, key } = eventOf(all, 'FileStored')
    const event = { type: 'FileDeleted', file_id, path, former: { key, size: 8 } }
    const line = { ...factOf(all, 'FileStored'), id: newId(), revision: 1, event }
    all.splice(-1, 0, { line, bytes: Buffer.alloc(0) })
  },
  'a day with less than no runs': (all) => (eventOf(all, 'CallDayCounted')['runs'] = -1),
  'statistics with less than no runs': (all) =>
    (eventOf(all, 'RunDayCounted')['tallies'] = { call: { n: [-1], d: {} } }),
  'a day that is none': (all) => (eventOf(all, 'RunDayCounted')['day'] = 'yesterday'),
  'a counted day that has not come': (all) => (eventOf(all, 'CallDayCounted')['day'] = '9999-12-31'),
  'a counted day without runs that has not come': (all) =>
    Object.assign(eventOf(all, 'RunDayCounted'), { day: '9999-12-31', tallies: {} }),
  'calls that expire before their time': (all) => (eventOf(all, 'CallsExpired')['before'] = '9999-12-31'),
  'a time in the future': (all) => (factOf(all, 'EventPublished')['at'] = '2999-01-01T00:00:00.000Z'),
  'a blob of another': (all) => {
    const blob = all.find(({ line }) => 'blob' in line)
    if (blob) blob.line['blob'] = `files/${theirs.env_id}/00/x`
  },
  'a blob outside of every folder': (all) => {
    const blob = all.find(({ line }) => 'blob' in line)
    if (blob) blob.line['blob'] = `files/${mine.env_id}/../../../x`
  },
  'a zip without the hash in its key': (all) => {
    const blob = all.find(({ line }) => 'blob' in line)
    if (blob) blob.line['blob'] = `builds/${mine.project_id}/${newId()}-${'a'.repeat(64)}.zip`
  },
  'a data key of another project': (all) => {
    const key = all.find(({ line }) => 'key' in line)
    if (key) key.line['project_id'] = theirs.project_id
  },
  'the name of another organization': (all) => ((all[0] as Entry).line['org'] = 'victim'),
  'the id of another environment': (all) => ((all[0] as Entry).line['env_id'] = theirs.env_id),
  'deeply nested data': (all) =>
    (eventOf(all, 'EventPublished')['event_data'] = JSON.parse(
      '['.repeat(1500) + ']'.repeat(1500),
    ) as unknown),
  'fewer facts than its end counts': (all) => all.splice(-2, 1),
  'no end': (all) => all.splice(-1, 1),
  'something after its end': (all) => all.push({ line: { key: newId() }, bytes: Buffer.alloc(0) }),
})

const firstOf = (cut: string, all: readonly Entry[]): Line => {
  const first = all.find(({ line }) => line['stream'] === cut)
  assert.ok(first, cut)
  return first?.line ?? {}
}

/** For a file with a stream whose beginning has expired. */
export const attacksOnExpired = (aged: Aged, theirs: Theirs): Attacks => ({
  'an event in the stream of another whose facts have expired': (all) => {
    const first = firstOf(aged.cut, all)
    ;(first['event'] as Line)['stream_id'] = theirs.expired
    first['stream'] = streamOf.stream(theirs.expired)
  },
  'an end of a run of another, in a stream whose beginning has expired': (all) =>
    ((firstOf(aged.cut, all)['event'] as Line)['run_id'] = theirs.run_id),
  'a run with the input of another': (all) => {
    const first = firstOf(aged.cut, all)
    const { stream_id, run_id } = first['event'] as { stream_id: string; run_id: string }
    const plan = {
      run_type: 'call',
      project_id: aged.project_id,
      project_name: 'old',
      build_id: aged.build_id,
    }
    const input_at = { stream_id: theirs.stream_id, revision: 1 }
    const ids = { run_id, stream_id, target: { ns: 'a', var: 'b' }, attempt: 1 }
    first['event'] = { type: 'RunRequested', ...ids, ...plan, input_at }
  },
  ...Object.fromEntries(
    [
      ['project', { project_id: theirs.project_id }],
      ['build', { build_id: theirs.build_id }],
      ['input', { input_at: { stream_id: theirs.stream_id, revision: 1 } }],
    ].map(([what, named]) => [
      `an unclaimed retry with the ${String(what)} of another`,
      (all: Entry[]) => {
        const first = firstOf(aged.cut, all)
        const { stream_id, run_id } = first['event'] as { stream_id: string; run_id: string }
        const ids = { run_id, stream_id, run_type: 'call' }
        const { project_id, build_id } = aged
        const target = { ns: 'a', var: 'b' }
        const own = { ...ids, project_id, build_id, project_name: 'old', target, attempt: 2 }
        first['event'] = {
          type: 'RunCancelled',
          ...ids,
          was: 'requested',
          started_revision: null,
          stop_time: new Date(0).toISOString(),
          unclaimed: { ...own, ...(named as object) },
        }
      },
    ]),
  ),
  'a build with fewer bytes than its zip': (all) => (eventOf(all, 'BuildUploaded')['size'] = 0),
  'more expired facts than fit': (all) => (firstOf(aged.cut, all)['revision'] = 10_000_001),
  'a revision that is no number': (all) => (firstOf(aged.cut, all)['revision'] = 1e300),
  'a gap after the expired facts': (all) => {
    const first = firstOf(aged.cut, all)
    const later = { ...first, id: newId(), revision: Number(first['revision']) + 2 }
    all.splice(-1, 0, { line: later, bytes: Buffer.alloc(0) })
  },
  'a project without its beginning': (all) => {
    for (const { line } of all.filter(({ line }) => line['stream'] === `project-${aged.project_id}`))
      line['revision'] = Number(line['revision']) + 1
  },
})
