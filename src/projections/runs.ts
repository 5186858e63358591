import { envIdOf } from '../events/event.ts'
import type { RunError, RunPlan } from '../events/run.ts'
import { payloadFields, payloadOf } from '../events/payload.ts'
import type { PayloadRef } from '../events/scalars.ts'
import { BY_TIME, orderOf, type Projection } from './projection.ts'

export type RunStatus = 'running' | 'succeeded' | 'failed' | 'cancelled' | 'pending_retry'

/** A run as lists show it (SPEC.md, Run), with further fields for the sagas. */
export type RunDoc = {
  readonly run_id: string
  readonly env_id: string
  readonly stream_id: string
  readonly build_id: string
  readonly run_type: RunPlan['run_type']
  readonly status: RunStatus
  readonly start_time: string
  readonly stop_time: string | null
  readonly origin_run_id: string | null
  readonly event_id: string | null
  readonly result?: unknown
  readonly result_ref?: PayloadRef
  readonly error?: RunError
  readonly project_id: string
  readonly project_name: string
  /** `ns/var`; null for evaluated code. */
  readonly fn: string | null
  readonly attempt: number
  readonly parent_run_id: string | null
  readonly replay_of: string | null
  readonly retry_at: string | null
  readonly worker_id: string
  /** The `order` while the run is running, then null: recovery finds the runs of a lost worker by it. */
  readonly running_since: string | null
  /** The position of the input, for a replay. */
  readonly input_at: RunPlan['input_at'] | null
  readonly order: string
}

export const runs: Projection<RunDoc> = {
  name: 'runs',
  version: 2,
  indexes: [
    { equal: ['env_id'], sort: 'order', counted: true, steps: BY_TIME },
    { equal: ['env_id', 'status'], sort: 'order', counted: true, steps: BY_TIME },
    { equal: ['env_id', 'run_type'], sort: 'order', counted: true, steps: BY_TIME },
    { equal: ['env_id', 'status', 'run_type'], sort: 'order', counted: true, steps: BY_TIME },
    { equal: ['event_id'], sort: 'order' },
    { equal: ['worker_id'], sort: 'running_since', sparse: true },
    { equal: [], sort: 'retry_at', sparse: true },
  ],
  handles: ['RunStarted', 'RunSucceeded', 'RunFailed', 'RunRetried', 'RunCancelled'],
  begins: ['RunStarted'],
  idsOf: ({ event }) => ('run_id' in event ? [event.run_id] : []),

  evolve(doc, recorded) {
    const { event } = recorded
    if (event.type === 'RunStarted') {
      const { target } = event
      return {
        run_id: event.run_id,
        env_id: envIdOf(recorded),
        stream_id: event.stream_id,
        build_id: event.build_id,
        run_type: event.run_type,
        status: 'running',
        start_time: event.start_time,
        stop_time: null,
        origin_run_id: event.origin_run_id ?? null,
        event_id: event.event_id ?? null,
        project_id: event.project_id,
        project_name: event.project_name,
        fn: 'ns' in target ? `${target.ns}/${target.var}` : null,
        attempt: event.attempt,
        parent_run_id: event.parent_run_id ?? null,
        replay_of: event.replay_of ?? null,
        retry_at: null,
        worker_id: event.worker_id,
        running_since: orderOf(recorded),
        input_at: event.input_at ?? null,
        order: orderOf(recorded),
      }
    }
    if (!doc) return null // cancelled before a worker claimed it: it was never a run
    const running_since = null
    switch (event.type) {
      case 'RunSucceeded':
        return {
          ...doc,
          running_since,
          status: 'succeeded',
          stop_time: event.stop_time,
          ...payloadFields('result', payloadOf('result', event)),
        }
      case 'RunFailed':
        return {
          ...doc,
          running_since,
          status: event.retry_at ? 'pending_retry' : 'failed',
          stop_time: event.stop_time,
          error: event.error,
          retry_at: event.retry_at ?? null,
        }
      case 'RunRetried':
        return { ...doc, status: 'failed', retry_at: null }
      case 'RunCancelled':
        return { ...doc, running_since, status: 'cancelled', stop_time: event.stop_time, retry_at: null }
      default:
        return doc
    }
  },
}
