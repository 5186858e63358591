import type { Metadata, Recorded } from '../../../src/events/event.ts'
import type { DomainEvent, EventOf } from '../../../src/events/index.ts'
import type { RunPlan } from '../../../src/events/run.ts'
import type { Lists, Records } from '../records.ts'

const ENV = 'env'
const timeOf = (n: number): string => new Date(Date.UTC(2026, 4, 1) + n).toISOString()
const cursorOf = (n: number): string => String(n + 1).padStart(16, '0')

/** A fact and the name of its stream. */
export type StreamFact = readonly [stream: string, event: DomainEvent]

/** A log with these facts, in order. */
export const logOf = (facts: readonly StreamFact[]): Recorded[] => {
  const lengths = new Map<string, number>()
  const metadata: Metadata = { env_id: ENV, correlation_id: 'c' }
  return facts.map(([stream, event], n) => {
    const revision = lengths.get(stream) ?? 0
    lengths.set(stream, revision + 1)
    return { id: `id-${n}`, stream, revision, cursor: cursorOf(n), at: timeOf(n), event, metadata }
  })
}

const plan: RunPlan = {
  run_id: 'run',
  stream_id: 's',
  run_type: 'event',
  build_id: 'b',
  project_id: 'p',
  project_name: 'jobs',
  target: { ns: 'jobs', var: 'quick' },
  attempt: 1,
  event_id: 'e',
  input_at: { stream_id: 's', revision: 1 },
}
const ending = {
  run_id: 'run',
  stream_id: 's',
  run_type: 'event',
  started_revision: 3,
  stop_time: timeOf(0),
} as const

/** A fact of the svc stream of the event. */
export const inS = (event: DomainEvent): StreamFact => ['stream-s', event]

const deployed: StreamFact = [
  'project-p',
  {
    type: 'BuildDeployed',
    build_id: 'b',
    project_id: 'p',
    hash: 'h',
    functions: [{ ns: 'jobs', var: 'quick', on_event: 'work' }],
  },
]

/** The facts of a build with one handler, an event, and its run that is lost once and then succeeds. */
export const facts = {
  deployed,
  created: inS({ type: 'StreamCreated', stream_id: 's' }),
  published: inS({
    type: 'EventPublished',
    event_id: 'e',
    stream_id: 's',
    event_type: 'work',
    event_data: { token: 't' },
    source: 'api',
    event_time: timeOf(0),
  }),
  handled: inS({ type: 'EventHandled', event_id: 'e', stream_id: 's', run_ids: ['run'] }),
  started: inS({ type: 'RunStarted', ...plan, worker_id: 'w', start_time: timeOf(0) }),
  lost: inS({
    type: 'RunFailed',
    ...ending,
    error: { code: 'worker_lost', message: 'x' },
    retry_at: timeOf(0),
  }),
  retried: inS({ type: 'RunRetried', run_id: 'run', stream_id: 's', retry_run_id: 'again' }),
  requested: inS({
    type: 'RunRequested',
    ...plan,
    run_id: 'again',
    attempt: 2,
    lost: 1,
    origin_run_id: 'run',
  }),
  restarted: inS({
    type: 'RunStarted',
    ...plan,
    run_id: 'again',
    attempt: 2,
    lost: 1,
    origin_run_id: 'run',
    worker_id: 'v',
    start_time: timeOf(0),
  }),
  succeeded: inS({ type: 'RunSucceeded', ...ending, run_id: 'again', started_revision: 7, result: 't' }),
}

export type FactName = keyof typeof facts

/** The event of a fact, to change it. */
export const eventOf = <Type extends DomainEvent['type']>(name: FactName, type: Type): EventOf<Type> => {
  const [, event] = facts[name]
  if (event.type !== type) throw new Error(`Expected ${type}, got ${event.type}`)
  return event as EventOf<Type>
}

/** What everybody has to have recorded, if the log has these facts and nothing is wrong. */
export const recordsOf = (
  log: readonly Recorded[] = logOf(Object.values(facts)),
): Records & { readonly lists: Lists } => ({
  log,
  env_id: ENV,
  expected: new Map([['jobs/quick', 'succeeds']]),
  publications: [{ token: 't', event_ids: ['e'] }],
  deployed: ['b'],
  webhooks: [],
  files: [],
  looks: [{ event_id: 'e', status: 200 }],
  wrongReplies: [],
  cancelled: [],
  effects: ['run', 'again'].map((run_id) => ({ fn: 'jobs/quick', run_id, event_id: 'e' })),
  calls: [],
  transcripts: [
    {
      name: 'follower',
      kind: 'environment',
      frames: framesOf(log, {
        StreamCreated: 'stream:created',
        EventPublished: 'event:created',
        EventHandled: 'event:handled',
        RunStarted: 'run:start',
        RunFailed: 'run:fail',
        RunSucceeded: 'run:stop',
      }),
    },
    {
      name: 'client',
      kind: 'stream',
      stream_id: 's',
      frames: [
        { id: '1', event: 'event:published' },
        { id: '3', event: 'run:start' },
        { id: '4', event: 'run:fail' },
        { id: '7', event: 'run:start' },
        { id: '8', event: 'run:stop' },
        { id: '8', event: 'stream:complete' },
      ],
    },
  ],
  lists: {
    runs: [
      { run_id: 'again', status: 'succeeded', attempt: 2 },
      { run_id: 'run', status: 'failed', attempt: 1 },
    ],
    events: [{ event_id: 'e' }],
    files: [],
    stats: { total_runs: 2, running: 0, succeeded: 1, failed: 1, cancelled: 0 },
  },
  models: [
    {
      name: 'events',
      checkpoint: log.at(-1)?.cursor ?? '',
      docs: [
        {
          event_id: 'e',
          env_id: ENV,
          stream_id: 's',
          event_type: 'work',
          event_data: { token: 't' },
          event_time: timeOf(0),
          created_at: timeOf(0),
          order: `${timeOf(2)}/${cursorOf(2)}`,
          sent_by: null,
          call_id: null,
        },
      ],
    },
  ],
  quietAt: log.at(-1)?.cursor ?? '',
  incidents: [],
})

const framesOf = (log: readonly Recorded[], names: Readonly<Partial<Record<DomainEvent['type'], string>>>) =>
  log.flatMap(({ event, cursor }) => {
    const name = names[event.type]
    return name === undefined ? [] : [{ id: cursor, event: name }]
  })
