import * as assert from 'uvu/assert'
import type { Doc } from '../../../src/ports/readModels.ts'
import { runs } from '../../../src/projections/runs.ts'
import { allDocsOf } from '../../support/docsOf.ts'
import { suite } from '../../support/suite.ts'
import type { Frame, Records, Transcript } from '../records.ts'
import { checkEvents } from './events.ts'
import type { Rule } from './finding.ts'
import { check } from './index.ts'
import { eventOf, type FactName, facts, inS, logOf, recordsOf, type StreamFact } from './planted.ts'
import { runStoriesOf } from './runStories.ts'

const names = Object.keys(facts) as FactName[]

/** The records of clients that saw all facts, with another log. */
const withLog = (log: readonly StreamFact[]): Records => ({ ...recordsOf(), log: logOf(log) })
const without = (...left: readonly FactName[]): Records =>
  withLog(names.filter((name) => !left.includes(name)).map((name) => facts[name]))
const withAfter = (name: FactName, ...more: readonly StreamFact[]): Records =>
  withLog(names.flatMap((each) => (each === name ? [facts[each], ...more] : [facts[each]])))

const finds = (records: Records, rule: Rule, message: RegExp): void => {
  const findings = check(records)
  assert.ok(
    findings.some((finding) => finding.rule === rule && message.test(finding.message)),
    `Expected ${rule} ${message}, got ${JSON.stringify(findings)}`,
  )
}

const changed = (name: string, change: (frames: readonly Frame[]) => readonly Frame[]): Records => {
  const records = recordsOf()
  const transcripts: Transcript[] = records.transcripts.map((transcript) =>
    transcript.name === name ? { ...transcript, frames: change(transcript.frames) } : transcript,
  )
  return { ...records, transcripts }
}

const right = suite('the checker of a soak')

right('finds nothing in records that agree', () => assert.equal(check(recordsOf()), []))
right('names the facts that are involved', () => {
  const [finding] = check(withAfter('succeeded', facts.succeeded))
  assert.match(finding?.facts.join('\n') ?? '', /RunSucceeded v1, id id-9, revision 8 of stream-s/)
})
right.run()

/** An event with two handlers, of which its dispatch names one and counts both. `more`: the runs that it does not name. */
const countedLog = (...more: readonly string[]) => {
  const functions = ['quick', 'slow'].map((name) => ({ ns: 'jobs', var: name, on_event: 'work' }))
  const start = eventOf('started', 'RunStarted')
  return logOf([
    ['project-p', { ...eventOf('deployed', 'BuildDeployed'), functions }],
    facts.created,
    facts.published,
    inS({ ...eventOf('handled', 'EventHandled'), runs: 2 }),
    facts.started,
    ...more.map((run_id) => inS({ ...start, run_id, target: { ns: 'jobs', var: 'slow' } })),
  ])
}
const eventFindings = (...more: readonly string[]): string[] => {
  const log = countedLog(...more)
  return checkEvents(log, runStoriesOf(log).stories).map(({ rule, message }) => `${rule} ${message}`)
}

const counted = suite('the checker of a soak, for an event that counts more runs than it names,')
counted('finds nothing if all of them started', () => assert.equal(eventFindings('other'), []))
counted('finds one that never started', () =>
  assert.equal(eventFindings(), [
    'lost Event e (work): it has 1 runs, and its dispatch counts 2',
    'lost Event e (work): its handler jobs/slow has no run',
  ]),
)
counted('finds one that started twice', () =>
  assert.equal(eventFindings('other', 'third'), [
    'duplicated Event e (work): it has 3 runs, and its dispatch counts 2',
    'duplicated Event e (work): its handler jobs/slow has two runs',
  ]),
)
counted.run()

const lost = suite('the checker of a soak finds a loss:')

lost('an acknowledged event is not in the log', () =>
  finds(without('published'), 'lost', /Event e was acknowledged and is not in the log/),
)
lost('an acknowledged event is not in the log, and the lists could not be read', () =>
  finds({ ...without('published'), lists: null }, 'lost', /Event e was acknowledged and is not in the log/),
)
lost('an acknowledged deployment is not in the log', () =>
  finds(without('deployed'), 'lost', /The deployment of build b is stored 0 times/),
)
lost('a handler has no run', () => {
  const handled = inS({ ...eventOf('handled', 'EventHandled'), run_ids: [] })
  finds(
    withLog([facts.deployed, facts.created, facts.published, handled]),
    'lost',
    /its handler jobs\/quick has no run/,
  )
})
lost('the run of a handled event never started', () =>
  finds(without('started'), 'lost', /its run run never started/),
)
lost('a retry is missing', () =>
  finds(without('requested', 'restarted', 'succeeded'), 'lost', /The retry again/),
)
lost('a run succeeded without its code', () =>
  finds({ ...recordsOf(), effects: [] }, 'lost', /its code never began/),
)
lost('the code of a run began before its mark', () => {
  const marked = inS({ ...eventOf('started', 'RunStarted'), will_mark: true })
  const log = names.map((name) => (name === 'started' ? marked : facts[name]))
  finds(withLog(log), 'lost', /The code of run run began before its mark/)
})
lost('user code began in a run that the log does not contain', () => {
  const effects = [...recordsOf().effects, { fn: 'jobs/quick', run_id: 'other', event_id: 'e' }]
  finds({ ...recordsOf(), effects }, 'lost', /Run other of jobs\/quick began and is not in the log/)
})
lost('a webhook request returned 200, and its run failed', () => {
  const effects = recordsOf().effects.map((effect) => ({ ...effect, token: effect.run_id }))
  finds({ ...recordsOf(), effects, webhooks: [{ token: 'run', status: 200 }] }, 'lost', /its run is failed/)
})
lost('a follower of the environment has a gap', () =>
  finds(
    changed('follower', (frames) => frames.toSpliced(3, 1)),
    'lost',
    /follower: 1 events are missing/,
  ),
)
lost('a client of a stream has a gap', () =>
  finds(
    changed('client', (frames) => frames.toSpliced(2, 1)),
    'lost',
    /client: 1 events are missing/,
  ),
)
lost('a named consumer has a gap', () => {
  const [follower] = recordsOf().transcripts
  const frames = follower?.frames.slice(1) ?? []
  finds(
    { ...recordsOf(), transcripts: [{ name: 'consumer', kind: 'consumer', frames }] },
    'lost',
    /consumer: 1 events are missing/,
  )
})
lost('calls of a function succeeded, and their effects are not in the log', () => {
  const calls = [{ run_id: 'again', sent: ['f'], called: ['r'], stored: ['a'], emitted: 1 }]
  for (const what of [
    /caused event f/,
    /caused run r/,
    /caused file a/,
    /emitted 1 times, and the log contains 0/,
  ])
    finds({ ...recordsOf(), calls }, 'lost', what)
})
lost('an acknowledged file is not in the log', () =>
  finds(
    { ...recordsOf(), files: [{ path: 'a', etag: '"1"', acknowledged: true }] },
    'lost',
    /File a with "1" was acknowledged/,
  ),
)
lost.run()

const duplicated = suite('the checker of a soak finds a duplicate:')

duplicated('an event is published twice', () =>
  finds(withAfter('published', facts.published), 'duplicated', /Event e is published twice/),
)
duplicated('a repeated request published a second event', () => {
  const again = inS({ ...eventOf('published', 'EventPublished'), event_id: 'f' })
  finds(withAfter('published', again), 'duplicated', /The event with token t is stored 2 times/)
})
duplicated('one key got two events', () =>
  finds(
    { ...recordsOf(), publications: [{ token: 't', event_ids: ['e', 'f'] }] },
    'duplicated',
    /One request got the events e, f/,
  ),
)
duplicated('an event is handled twice', () =>
  finds(withAfter('handled', facts.handled), 'duplicated', /Event e is handled twice/),
)
duplicated('a handler has two runs', () => {
  const handled = inS({ ...eventOf('handled', 'EventHandled'), run_ids: ['run', 'twin'] })
  const twin = inS({ ...eventOf('started', 'RunStarted'), run_id: 'twin' })
  const log = names.flatMap((name) => (name === 'handled' ? [handled, twin] : [facts[name]]))
  finds(withLog(log), 'duplicated', /its handler jobs\/quick has two runs/)
})
duplicated('a deployment is stored twice', () =>
  finds(withAfter('deployed', facts.deployed), 'duplicated', /build b is stored 2 times/),
)
duplicated('a run is claimed by two workers', () => {
  const claim = inS({ ...eventOf('started', 'RunStarted'), worker_id: 'other' })
  finds(withAfter('started', claim), 'illegal transition', /RunStarted of run run, which is running/)
})
duplicated('a run ends twice', () =>
  finds(
    withAfter('succeeded', facts.succeeded),
    'illegal transition',
    /RunSucceeded of run again, which is succeeded/,
  ),
)
duplicated('the code of a run began twice', () => {
  const { effects } = recordsOf()
  finds(
    { ...recordsOf(), effects: [...effects, ...effects.slice(0, 1)] },
    'duplicated',
    /Run run began 2 times/,
  )
})
duplicated('a function with once began for two attempts', () => {
  const log = logOf(Object.values(facts)).map((fact) =>
    fact.event.type === 'RunStarted' || fact.event.type === 'RunRequested'
      ? { ...fact, event: { ...fact.event, once: true } }
      : fact,
  )
  finds({ ...recordsOf(), log }, 'duplicated', /jobs\/quick for event e began 2 times/)
  finds({ ...recordsOf(), log }, 'illegal transition', /a second start, although it may start once only/)
})
duplicated('live data of a run is stored twice', () => {
  const data = inS({ type: 'StreamDataEmitted', run_id: 'again', stream_id: 's', data_type: 'x', payload: 1 })
  const calls = [{ run_id: 'again', sent: [], called: [], stored: [], emitted: 1 }]
  const records = withAfter('restarted', data, data)
  finds({ ...records, calls }, 'duplicated', /emitted 1 times, and the log contains 2/)
})
duplicated('a tick fired twice', () => {
  const tick = (run_id: string): StreamFact =>
    inS({
      ...eventOf('requested', 'RunRequested'),
      run_id,
      run_type: 'schedule',
      attempt: 1,
      input: { kind: 'tick', value: { scheduled_time: 'noon' } },
    })
  finds(withAfter('succeeded', tick('a'), tick('b')), 'duplicated', /The tick .*noon.* fired 2 times/)
})
duplicated('a follower received an event twice', () => {
  const twice = (frames: readonly Frame[]) => [...frames, ...frames.slice(-1)]
  finds(changed('follower', twice), 'duplicated', /follower: 1 events came again/)
})
duplicated('a follower received an event that is not in the log', () =>
  finds(
    changed('follower', (frames) => [...frames, { id: 'x', event: 'run:start' }]),
    'duplicated',
    /1 events are not in the log/,
  ),
)
duplicated('a named consumer may receive an event twice', () => {
  const [follower] = recordsOf().transcripts
  const frames = [...(follower?.frames ?? []), ...(follower?.frames ?? [])]
  assert.equal(check({ ...recordsOf(), transcripts: [{ name: 'c', kind: 'consumer', frames }] }), [])
})
duplicated.run()

const reordered = suite('the checker of a soak finds a wrong order:')

for (const name of ['follower', 'client'])
  reordered(`the ${name} received two events the wrong way round`, () => {
    const swap = ([first, a, b, ...rest]: readonly Frame[]) =>
      [first, b, a, ...rest].filter((frame) => frame !== undefined)
    finds(changed(name, swap), 'reordered', /event \d is not the one of the log/)
  })
reordered('a list is not sorted', () => {
  const { lists } = recordsOf()
  finds(
    { ...recordsOf(), lists: { ...lists, runs: lists.runs.toReversed() } },
    'reordered',
    /GET \/runs: item 0/,
  )
})
reordered.run()

const stuck = suite('the checker of a soak finds stuck work:')

stuck('a run is still running', () => finds(without('succeeded'), 'stuck', /Run again is still running/))
stuck('a retry was never claimed', () =>
  finds(without('restarted', 'succeeded'), 'stuck', /Run again is still requested/),
)
stuck('a retry was never requested', () =>
  finds(without('retried', 'requested', 'restarted', 'succeeded'), 'stuck', /Run run is still pending_retry/),
)
stuck('an event was never handled', () =>
  finds(
    withLog([facts.deployed, facts.created, facts.published]),
    'stuck',
    /Event e \(work\) was never handled/,
  ),
)
stuck('a followed stream was never complete', () =>
  finds(
    changed('client', (frames) => frames.slice(0, -1)),
    'stuck',
    /client: the stream was never complete/,
  ),
)
stuck.run()

const stale = suite('the checker of a soak finds a stale read:')

stale('an acknowledged event is not found', () =>
  finds(
    { ...recordsOf(), looks: [{ event_id: 'e', status: 404 }] },
    'stale read',
    /Event e was acknowledged/,
  ),
)
stale('a list lacks a document', () => {
  const { lists } = recordsOf()
  finds({ ...recordsOf(), lists: { ...lists, events: [] } }, 'stale read', /GET \/events: 1 are missing/)
})
stale('a list has an old status', () => {
  const { lists } = recordsOf()
  const runs = lists.runs.map((run) => ({ ...run, status: 'running' as const }))
  finds({ ...recordsOf(), lists: { ...lists, runs } }, 'stale read', /GET \/runs: 2 are missing, 2 are stale/)
})
stale('a count is wrong', () => {
  const { lists } = recordsOf()
  const stats = { ...lists.stats, running: 1 }
  finds({ ...recordsOf(), lists: { ...lists, stats } }, 'stale read', /stats/)
})
stale('a stored document is missing', () => {
  const models = recordsOf().models.map((model) => ({ ...model, docs: [] }))
  finds({ ...recordsOf(), models }, 'stale read', /Read model events: 1 are missing, 0 are stale/)
})
stale('a stored document is old', () => {
  const models = recordsOf().models.map((model) => ({
    ...model,
    docs: model.docs.map((doc) => ({ ...doc, event_type: 'x' })),
  }))
  finds({ ...recordsOf(), models }, 'stale read', /Read model events: 1 are missing, 1 are stale/)
})
stale('a statistic is wrong', () => {
  const { log, models } = recordsOf()
  const docs = allDocsOf(runs, log)
  const withRuns = (stored: readonly Doc[]) => ({
    ...recordsOf(),
    models: [...models, { name: 'runs', docs: stored, checkpoint: log.at(-1)?.cursor ?? '' }],
  })
  assert.equal(check(withRuns(docs)), [])
  const counted = docs.map((doc) => ('summary_id' in doc ? { ...doc, tallies: {} } : doc))
  finds(withRuns(counted), 'stale read', /Read model runs: (\d+) are missing, \1 are stale/)
})
stale('a file has old content', () => {
  const version = (etag: string, acknowledged: boolean) => ({ path: 'a', etag, acknowledged })
  const files = [version('"1"', true), version('"2"', true), version('"3"', false)]
  const { lists } = recordsOf()
  const listing = (etag: string): Records => ({
    ...recordsOf(),
    files,
    lists: { ...lists, files: [{ path: 'a', etag }] },
  })
  finds(listing('"1"'), 'stale read', /File a has "1", not "2"/)
  for (const etag of ['"2"', '"3"'])
    assert.not.ok(check(listing(etag)).some(({ rule }) => rule === 'stale read')) // a version without a reply may be stored
})
stale.run()

const wrong = suite('the checker of a soak finds a wrong end:')

wrong('a run failed for no reason of its own', () => {
  const { retry_at: _, ...failure } = eventOf('lost', 'RunFailed')
  const failed = inS({ ...failure, run_id: 'again' })
  const records = withLog(names.map((name) => (name === 'succeeded' ? failed : facts[name])))
  finds(records, 'wrong outcome', /Run again of jobs\/quick failed for no reason of its own: worker_lost/)
})
wrong('a run has more attempts than its policy and three losses', () => {
  const log = logOf(Object.values(facts)).map((fact) =>
    fact.event.type === 'RunStarted' && fact.event.run_id === 'again'
      ? { ...fact, event: { ...fact.event, lost: 0 } }
      : fact.event.type === 'RunRequested'
        ? { ...fact, event: { ...fact.event, lost: 0 } }
        : fact,
  )
  finds({ ...recordsOf(), log }, 'illegal transition', /Run again has attempt 2 with 0 lost/)
})
wrong('a run was cancelled without a request', () => {
  const { run_id, stream_id, run_type, started_revision, stop_time } = eventOf('succeeded', 'RunSucceeded')
  const cancelled = inS({
    type: 'RunCancelled',
    run_id,
    stream_id,
    run_type,
    started_revision,
    stop_time,
    was: 'running',
  })
  const records = withLog(names.map((name) => (name === 'succeeded' ? cancelled : facts[name])))
  finds(records, 'wrong outcome', /was cancelled, and nobody asked for it/)
})
wrong('a reply has an unexpected status', () =>
  finds(
    { ...recordsOf(), wrongReplies: [{ request: 'GET /runs', status: 500, text: 'x' }] },
    'wrong reply',
    /GET \/runs returned 500/,
  ),
)
wrong('a node ended by itself', () =>
  finds({ ...recordsOf(), incidents: ['api 1 ended'] }, 'incident', /api 1 ended/),
)
wrong.run()
