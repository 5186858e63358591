import type { Recorded } from '../../../src/events/event.ts'
import type { DomainEvent, EventOf } from '../../../src/events/index.ts'
import type { RunPlan } from '../../../src/events/run.ts'
import { type Finding, findingOf } from './finding.ts'

type Plan = EventOf<'RunStarted'> | EventOf<'RunRequested'>

export type RunState =
  | 'requested'
  | 'running'
  | 'returned'
  | 'pending_retry'
  | 'succeeded'
  | 'failed'
  | 'cancelled'

/** All facts of one run. */
export interface RunStory {
  readonly plan: RunPlan
  readonly fn: string | null
  readonly facts: Recorded[]
  /** Its first `RunStarted`. */
  readonly start: Recorded | null
  readonly state: RunState
  /** The failure that it ended with. */
  readonly error: EventOf<'RunFailed'>['error'] | null
  /** The next attempt of its chain. */
  readonly retry_run_id: string | null
}

interface Moves {
  readonly from: readonly (RunState | 'absent')[]
  readonly to: RunState
}

/** Every legal change of a run, written apart from the decider in src/domain/run.ts. */
const movesOf = (event: DomainEvent): Moves | null => {
  switch (event.type) {
    case 'RunRequested':
      return event.returned_by === undefined
        ? { from: ['absent'], to: 'requested' }
        : { from: ['running'], to: 'returned' }
    case 'RunStarted':
      return { from: event.reclaimed ? ['returned'] : ['absent', 'requested'], to: 'running' }
    case 'RunBegun':
    case 'StreamDataEmitted':
      return { from: ['running'], to: 'running' }
    case 'RunSucceeded':
      return { from: ['running'], to: 'succeeded' }
    case 'RunFailed':
      return event.retry_at === undefined
        ? { from: ['running', 'requested', 'returned', 'pending_retry'], to: 'failed' }
        : { from: ['running'], to: 'pending_retry' }
    case 'RunRetried':
      return { from: ['pending_retry'], to: 'failed' }
    case 'RunCancelled':
      return { from: CANCELLED[event.was], to: 'cancelled' }
    default:
      return null
  }
}

const CANCELLED = {
  requested: ['requested', 'returned'],
  running: ['running'],
  pending_retry: ['pending_retry'],
} as const

const isOpen = (state: RunState): boolean =>
  state === 'requested' || state === 'running' || state === 'returned' || state === 'pending_retry'

/** Folds the facts of all runs, and finds every illegal change and every run that never ended. */
export const runStoriesOf = (
  log: readonly Recorded[],
): { readonly stories: ReadonlyMap<string, RunStory>; readonly findings: Finding[] } => {
  const stories = new Map<string, RunStory>()
  const findings: Finding[] = []
  for (const fact of log) {
    const { event } = fact
    const moves = movesOf(event)
    if (!moves || !('run_id' in event) || event.run_id === undefined) continue
    const known = stories.get(event.run_id)
    const facts = [...(known?.facts ?? []), fact]
    if (!moves.from.includes(known?.state ?? 'absent'))
      findings.push(
        findingOf(
          'illegal transition',
          `${event.type} of run ${event.run_id}, which is ${known?.state ?? 'absent'}`,
          facts,
        ),
      )
    const plan = known?.plan ?? planIn(event)
    if (!plan) continue
    stories.set(event.run_id, {
      plan,
      fn: 'ns' in plan.target ? `${plan.target.ns}/${plan.target.var}` : null,
      facts,
      start: known?.start ?? (isListedFrom(event) ? fact : null),
      state: moves.to,
      error: event.type === 'RunFailed' ? event.error : (known?.error ?? null),
      retry_run_id: event.type === 'RunRetried' ? event.retry_run_id : (known?.retry_run_id ?? null),
    })
  }
  for (const [run_id, { state, facts }] of stories)
    if (isOpen(state)) findings.push(findingOf('stuck', `Run ${run_id} is still ${state}`, facts))
  return { stories, findings }
}

/** Whether a run is listed from this fact on: its claim, or the end of a retry without one. */
const isListedFrom = (event: DomainEvent): boolean =>
  event.type === 'RunStarted' || ('unclaimed' in event && event.unclaimed !== undefined)

const planIn = (event: DomainEvent): Plan | undefined =>
  event.type === 'RunStarted' || event.type === 'RunRequested' ? event : undefined
