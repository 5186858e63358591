import { bySystem } from '../events/actor.ts'
import { envIdOf, type Recorded } from '../events/event.ts'
import { everyDoc } from '../loops/everyDoc.ts'
import type { FairTurns } from '../loops/fairTurns.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { Views } from '../projections/views.ts'
import type { CommandDeps } from '../commands/deps.ts'
import { type DeletedProject, endRetries } from '../commands/runs/endRetries.ts'
import { retryRun } from '../commands/runs/retryRun.ts'
import type { Saga, SagaCore } from './saga.ts'

interface WaitingRun {
  readonly run_id: string
  readonly stream_id: string
  readonly env_id: string
}

type Command = WaitingRun | DeletedProject

/** A retry that failed for a reason that may pass is tried again after this time. */
const AGAIN_MS = 60_000

export type RetryInput =
  /** `failed_at` and `retry_at` are those of the worker: the time between them is the delay. */
  | {
      readonly type: 'waits'
      readonly run: WaitingRun
      readonly failed_at: string
      readonly retry_at: string
    }
  | { readonly type: 'due'; readonly run: WaitingRun }
  /** The retry could not be requested, because of a defect. */
  | { readonly type: 'failed'; readonly run: WaitingRun }
  /** The run was retried or cancelled, or has failed for good. */
  | { readonly type: 'over'; readonly run_id: string }
  | { readonly type: 'deleted'; readonly project: DeletedProject }

/** Retries a failed run when its retry is due. */
export const retryRunsCore: SagaCore<null, RetryInput, Command> = {
  initial: null,
  react(state, input, now) {
    switch (input.type) {
      case 'waits': {
        const { run, failed_at, retry_at } = input
        const delayMs = Date.parse(retry_at) - Date.parse(failed_at)
        const at = Math.min(Date.parse(retry_at), now + delayMs) // else a worker whose clock was ahead delays it for as long
        const alarm = { do: 'setAlarm', key: run.run_id, at } as const
        return { state, steps: [{ ...alarm, input: { type: 'due', run } }] }
      }
      case 'failed': {
        const { run } = input
        const alarm = { do: 'setAlarm', key: run.run_id, at: now + AGAIN_MS } as const
        return { state, steps: [{ ...alarm, input: { type: 'due', run } }] }
      }
      case 'due':
        return { state, steps: [{ do: 'carryOut', key: input.run.run_id, command: input.run }] }
      case 'over':
        return { state, steps: [{ do: 'drop', key: input.run_id }] }
      case 'deleted':
        return { state, steps: [{ do: 'carryOut', key: input.project.project_id, command: input.project }] }
      default:
        return input satisfies never
    }
  },
}

/**
 * Retries failed runs (SPEC.md, Retry behavior), until their project is deleted. If several nodes try, the decider accepts one. Runs that wait come
 * from the read model, and later ones from the log after its position, so retries do not wait until it has caught up.
 */
export const retryRuns = (
  deps: Pick<CommandDeps, 'aggregates'> & {
    readonly store: Pick<EventStore, 'subscribe'>
    readonly views: Pick<Views, 'runs' | 'completeTo' | 'directory' | 'reach'>
    readonly turns: Pick<FairTurns, 'take'>
  },
): Saga<null, RetryInput, Command> => ({
  name: 'retryRuns',
  ...retryRunsCore,

  async *inputs(signal) {
    const { store, views } = deps
    const from = await views.completeTo('runs', signal)
    if (signal.aborted) return
    const waiting = { id: 'run_id', equal: {}, sort: 'retry_at', from: '' } as const
    for await (const run of everyDoc(views.runs, waiting)) {
      const { run_id, stream_id, env_id, retry_at, start_time, stop_time } = run
      const failed_at = stop_time ?? start_time
      yield {
        type: 'waits',
        run: { run_id, stream_id, env_id },
        failed_at,
        retry_at: retry_at ?? failed_at,
      }
    }
    const types = ['RunFailed', 'RunRetried', 'RunCancelled', 'ProjectDeleted'] as const
    for await (const { events } of store.subscribe({ after: from, types, signal })) {
      for (const recorded of events) yield* inputsOf(recorded)
    }
  },

  async carryOut(command) {
    if ('project_id' in command) {
      const { env_id, project_id } = command
      const cause = { env_id, correlation_id: project_id, causation_id: project_id, ...bySystem('retries') }
      await endRetries(deps, command, { cause })
      return undefined
    }
    const { run_id, stream_id, env_id } = command
    const turn = deps.turns.take(deps.views.directory.orgIdOf(env_id)) // all retries of a former outage are due at once
    if (turn) await turn
    const cause = { env_id, correlation_id: run_id, causation_id: run_id, ...bySystem('retries') }
    await retryRun(deps, { run_id, stream_id }, { cause })
    return undefined
  },

  afterFailure: (command) => ('project_id' in command ? undefined : { type: 'failed', run: command }),
})

const inputsOf = (recorded: Recorded): RetryInput[] => {
  const { event } = recorded
  switch (event.type) {
    case 'RunFailed': {
      const { run_id, stream_id, stop_time: failed_at, retry_at } = event
      if (recorded.metadata.first_at !== undefined) return [] // imported: its retry follows
      if (retry_at === undefined) return [{ type: 'over', run_id }]
      return [{ type: 'waits', run: { run_id, stream_id, env_id: envIdOf(recorded) }, failed_at, retry_at }]
    }
    case 'ProjectDeleted': {
      const { project_id } = event
      return [{ type: 'deleted', project: { env_id: envIdOf(recorded), project_id, at: recorded.cursor } }]
    }
    case 'RunRetried':
    case 'RunCancelled':
      return [{ type: 'over', run_id: event.run_id }]
    default:
      return []
  }
}
