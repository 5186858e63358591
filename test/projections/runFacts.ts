import type { NewEvent } from '../../src/events/event.ts'
import type { DomainEvent, EventOf } from '../../src/events/index.ts'
import type { RunType } from '../../src/events/run.ts'
import { newId } from '../../src/ids.ts'

interface RunOf {
  readonly run_id: string
  readonly start: string
  readonly env_id?: string
  readonly project_id?: string
  readonly fn?: string
  readonly run_type?: RunType
}

/** The facts of one run, each for its environment. */
export const runFacts = ({
  run_id,
  start,
  env_id = 'env',
  project_id = 'shop',
  fn = 'orders/onCreated',
  run_type = 'event',
}: RunOf) => {
  const [ns = '', name = ''] = fn.split('/')
  const stopAfter = (ms: number) => new Date(Date.parse(start) + ms).toISOString()
  const ending = { run_id, stream_id: 's', run_type, started_revision: 1 } as const
  const fact = (event: DomainEvent): NewEvent => ({
    id: newId(),
    event,
    metadata: { env_id, correlation_id: 'c' },
  })
  const started: EventOf<'RunStarted'> = {
    type: 'RunStarted',
    run_id,
    stream_id: 's',
    run_type,
    build_id: 'b',
    project_id,
    project_name: project_id,
    target: { ns, var: name },
    attempt: 1,
    worker_id: 'w',
    start_time: start,
  }
  return {
    started: fact(started),
    succeeded: (ms: number) => fact({ type: 'RunSucceeded', ...ending, stop_time: stopAfter(ms), result: 1 }),
    failed: (ms: number, retry_at?: string) =>
      fact({
        type: 'RunFailed',
        ...ending,
        stop_time: stopAfter(ms),
        error: { code: 'function_failed', message: 'broke' },
        ...(retry_at !== undefined && { retry_at }),
      }),
    retried: () => fact({ type: 'RunRetried', run_id, stream_id: 's', retry_run_id: 'again' }),
    cancelled: (ms: number, was: 'running' | 'pending_retry') =>
      fact({ type: 'RunCancelled', ...ending, stop_time: stopAfter(ms), was }),
  }
}
