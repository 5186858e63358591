import { refuse } from '../subject.ts'
import { BUILDS, CHILDREN, type Ending, EVENTS, type RunsCommand } from './runsSetup.ts'

interface Run {
  status: 'requested' | 'running' | 'pending_retry' | 'succeeded' | 'failed' | 'cancelled'
  /** The worker that claimed it last; null before. A returned run that waits for another worker has one. Empty: a retry that ended before. */
  worker: string | null
  build: string
  retries: number
  once: boolean
  /** Its worker marks the begin of its code. */
  marks: boolean
  /** Its code may have begun. */
  begun: boolean
  attempt: number
  /** Attempts that were lost through no fault of their own. */
  lost: number
  /** It replaces a lost attempt, so it does not count as a run of the plan. */
  free: boolean
  stream: string
}

export interface RunsState {
  deployed: string | null
  events: Record<string, { stream: string; handled: boolean; abandoned: boolean }>
  runs: Record<string, Run>
  /** Children that were requested, or could not be. */
  asked: Record<string, true>
  /** The stored parts of the output of each run. */
  output: Record<string, number[]>
}

/** Losses after which a chain is not started again for free. */
const MAX_LOST = 3

/** The life of events and runs as SPEC.md (Run status, Retry behavior) and decisions 0030 and 0033 describe it. */
export const step = (state: RunsState, command: RunsCommand): unknown => {
  const { events, runs } = state
  switch (command.op) {
    case 'deploy':
      state.deployed = command.build
      return
    case 'publish':
      return publish(state, command)
    case 'dispatch':
      return dispatch(state, command)
    case 'abandonEvent': {
      const event = events[command.event]
      if (event && !event.handled) Object.assign(event, { handled: true, abandoned: true })
      return
    }
    case 'tick':
      if (state.deployed) runs[command.run] ??= newRun(state.deployed, 'first', command.run)
      return
    case 'request':
      runs[command.run] ??= {
        ...newRun('many', 'called', command.run),
        once: true,
        ...(command.claim && { status: 'running', worker: 'w0', begun: true }),
      }
      return
    case 'child':
      return requestChild(state, command.run)
    case 'output': {
      const parts = (state.output[command.run] ??= [])
      if (command.part > (parts.at(-1) ?? -1)) parts.push(command.part)
      return
    }
    case 'loseWorker':
      for (const [id, run] of Object.entries(runs))
        if (run.status === 'running' && run.worker === command.worker) end(runs, id, 'lost')
      return
    case 'cancel':
      cancel(state, command.run)
      return
  }
  const run = runs[command.run]
  switch (command.op) {
    case 'claim':
      if (run?.status !== 'requested') return false
      claim(run, command.worker)
      return true
    case 'begin':
      if (run?.status !== 'running' || run.worker !== command.worker) return refuse('not_found')
      run.begun = true
      return
    case 'return':
      if (run?.status === 'running' && run.worker === command.worker) run.status = 'requested'
      return
    case 'emit':
      if (run?.status !== 'running') refuse('conflict')
      return
    case 'abandonRun':
      if (run?.status === 'requested') endUnbegun(run, 'failed')
      return
    case 'retry':
      if (run?.status === 'pending_retry') retry(runs, command.run, { ...run, free: false })
      return
    case 'end': // the first end counts, and only that of the worker which has the run
      if (run?.status === 'running' && run.worker === command.worker) end(runs, command.run, command.outcome)
      return
    default:
      return command satisfies never
  }
}

export const view = ({ events, runs, output }: RunsState): unknown => ({
  events: Object.fromEntries(
    Object.entries(events).map(([id, { handled, abandoned }]) => [id, { handled, abandoned }]),
  ),
  /** Lists have a run from its first claim on, and a retry also if it ends before. */
  runs: Object.fromEntries(
    Object.entries(runs).flatMap(([id, { status, worker, build, attempt }]) =>
      worker === null
        ? []
        : [
            [
              id,
              {
                status: status === 'requested' ? 'running' : status,
                worker,
                build,
                attempt,
                has: status === 'running',
              },
            ],
          ],
    ),
  ),
  output,
  counted: Object.values(runs).filter(({ worker, free }) => worker && !free).length,
  waiting: idsOf(runs, ({ status, worker }) => status === 'requested' && worker === null),
  idle: [...new Set([...Object.values(events), ...Object.values(runs)].map(({ stream }) => stream))]
    .filter(
      (stream) =>
        !Object.values(events).some((event) => event.stream === stream && !event.handled) &&
        !Object.values(runs).some((run) => run.stream === stream && isOpen(run)),
    )
    .sort(),
})

/** A run requests a child only while it runs. */
const requestChild = (state: RunsState, child: string): void => {
  const { asked, runs } = state
  const parent = runs[CHILDREN[child] ?? '']
  const isNew = !asked[child]
  asked[child] = true
  if (isNew && !targetOf(state, 'called')) refuse('not_found')
  if (!isNew || parent?.status !== 'running') return refuse('conflict')
  runs[child] = newRun(state.deployed ?? '', 'called', parent.stream)
}

const publish = (state: RunsState, { event, claim }: Extract<RunsCommand, { op: 'publish' }>): void => {
  const { events, runs } = state
  const { type, on, run, by, replays } = EVENTS[event] ?? refuse('not_found')
  const isNew = !events[event]
  if (!isNew && by === undefined) return // the first request with this key published it, whatever would refuse it now
  if (type === 'svc:call' && !targetOf(state, 'called'))
    refuse(by === undefined ? 'bad_request' : 'not_found')
  if (isNew && by !== undefined && runs[by]?.status !== 'running') refuse('conflict')
  if (type === 'svc:replay' && (runs[run ?? '']?.worker ?? null) === null) refuse('not_found')
  if (type === 'svc:replay' && !targetOf(state, run?.split('/')[1] ?? '')) refuse('bad_request')
  if (type === 'svc:cancel' && !isKnown(state, run ?? '')) refuse('not_found')
  if ([on, replays].some((other) => other !== undefined && !events[other])) refuse('not_found')
  if (!isNew) return // the first request with this key published it
  const stream = on === undefined ? event : (events[on]?.stream ?? '')
  events[event] = { stream, handled: false, abandoned: false }
  if (claim && on === undefined && !type.startsWith('svc:'))
    dispatch(state, { op: 'dispatch', event, worker: 'w0' })
}

/** A run that can be cancelled: one that was ever claimed, that waits, or that an event will call. */
const isKnown = (state: RunsState, id: string): boolean => {
  const run = state.runs[id]
  return (run && (run.worker !== null || run.status === 'requested')) || callOf(state, id) !== undefined
}

/** The event that calls a run. */
const callOf = ({ events, deployed }: RunsState, id: string) => {
  const [event = '', fn] = id.split('/')
  const isCall = EVENTS[event]?.type === 'svc:call' && fn === 'called' && deployed === 'many'
  return isCall ? events[event] : undefined
}

const dispatch = (
  state: RunsState,
  { event: id, worker }: Extract<RunsCommand, { op: 'dispatch' }>,
): string[] | null => {
  const event = state.events[id]
  const { type, run } = EVENTS[id] ?? refuse('not_found')
  if (!event || event.handled) return null
  event.handled = true
  if (type === 'svc:cancel') cancel(state, run ?? '')
  const started = functionsFor(state, type, run)
    .filter((fn) => targetOf(state, fn))
    .map((fn) => `${id}/${fn}`)
  for (const name of started) {
    const run = newRun(state.deployed ?? '', name.split('/')[1] ?? '', event.stream)
    claim(run, worker)
    state.runs[name] = run
  }
  return started.sort()
}

const functionsFor = (state: RunsState, type: string, run = ''): string[] => {
  if (type === 'paid') return ['first', 'second']
  if (type === 'svc:call') return ['called']
  return type === 'svc:replay' && (state.runs[run]?.worker ?? null) !== null ? [run.split('/')[1] ?? ''] : []
}

const targetOf = ({ deployed }: RunsState, fn: string) =>
  BUILDS[deployed ?? '']?.find((candidate) => candidate.var === fn)

const newRun = (build: string, fn: string, stream: string): Run => {
  const { retry, once = false } = BUILDS[build]?.find((candidate) => candidate.var === fn) ?? {}
  return {
    status: 'requested',
    worker: null,
    build,
    retries: retry?.attempts ?? 0,
    once,
    marks: once,
    begun: false,
    attempt: 1,
    lost: 0,
    free: false,
    stream,
  }
}

const end = (runs: RunsState['runs'], id: string, outcome: Ending): void => {
  const run = runs[id] ?? refuse('not_found')
  if (outcome === 'succeeded') run.status = 'succeeded'
  else if (outcome === 'lost' && !run.begun) run.status = 'requested'
  else if (outcome === 'lost' && run.once) run.status = 'failed'
  else if (outcome === 'lost' && run.lost < MAX_LOST)
    retry(runs, id, { ...run, lost: run.lost + 1, free: true })
  else run.status = run.attempt - run.lost <= run.retries ? 'pending_retry' : 'failed'
}

const claim = (run: Run, worker: string): void => {
  Object.assign(run, { status: 'running', worker, begun: !run.marks })
}

/** The run has failed, and its next attempt waits for a worker. */
const retry = (runs: RunsState['runs'], id: string, next: Run): void => {
  const run = runs[id]
  if (run) run.status = 'failed'
  runs[`${id}!`] = { ...next, status: 'requested', worker: null, attempt: next.attempt + 1 }
}

const cancel = (state: RunsState, id: string): void => {
  const { runs } = state
  const call = callOf(state, id)
  if (!runs[id] && call && !call.handled) call.handled = true
  let attempt = id
  let run = runs[attempt]
  while (run && !isOpen(run)) run = runs[(attempt += '!')]
  if (run) endUnbegun(run, 'cancelled')
}

/** The run before a retry names it, so lists have it also if no worker ever claimed it. */
const endUnbegun = (run: Run, status: Run['status']): void => {
  run.status = status
  if (run.attempt > 1) run.worker ??= ''
}

const isOpen = ({ status }: Run): boolean =>
  status === 'requested' || status === 'running' || status === 'pending_retry'

const idsOf = (runs: RunsState['runs'], isWanted: (run: Run) => boolean): string[] =>
  Object.keys(runs)
    .filter((id) => runs[id] && isWanted(runs[id]))
    .sort()
