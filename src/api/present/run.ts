import type { RunError, RunPlan } from '../../events/run.ts'
import { payloadOf } from '../../events/payload.ts'
import type { EventOf } from '../../events/index.ts'
import type { Payloads } from '../../content/payloads.ts'
import type { Ending } from '../../projections/outcome.ts'
import type { RunDoc } from '../../projections/runs.ts'
import type { Run } from '../schemas.ts'

/** A run from its read model. A failed one carries its error in `result` as well (DESIGN.md, Contract). */
export const presentRun = async (doc: RunDoc, payloads: Payloads): Promise<Run> => ({
  run_id: doc.run_id,
  env_id: doc.env_id,
  stream_id: doc.stream_id,
  build_id: doc.build_id,
  run_type: doc.run_type,
  status: doc.status,
  start_time: doc.start_time,
  stop_time: doc.stop_time,
  origin_run_id: doc.origin_run_id,
  event_id: doc.event_id,
  ...(doc.error ? resultOfError(doc.error) : { result: await payloads.load(payloadOf('result', doc)) }),
  project_id: doc.project_id,
  project_name: doc.project_name,
  fn: doc.fn,
  attempt: doc.attempt,
  retry_at: doc.retry_at,
  parent_run_id: doc.parent_run_id,
  replay_of: doc.replay_of,
})

/** A run straight from its facts: what it was started as, and how it ended if it has. */
export const runOfFacts = async (
  started: Pick<EventOf<'RunStarted'>, 'start_time'> & RunPlan,
  ending: Ending | null,
  { env_id, payloads }: { env_id: string; payloads: Payloads },
): Promise<Run> => ({
  run_id: started.run_id,
  env_id,
  stream_id: started.stream_id,
  build_id: started.build_id,
  run_type: started.run_type,
  status: statusOf(ending),
  start_time: started.start_time,
  stop_time: ending?.stop_time ?? null,
  origin_run_id: started.origin_run_id ?? null,
  event_id: started.event_id ?? null,
  ...(ending?.type === 'RunFailed'
    ? resultOfError(ending.error)
    : { result: await resultOf(ending, payloads) }),
  project_id: started.project_id,
  project_name: started.project_name,
  fn: 'ns' in started.target ? `${started.target.ns}/${started.target.var}` : null,
  attempt: started.attempt,
  retry_at: ending?.type === 'RunFailed' ? (ending.retry_at ?? null) : null,
  parent_run_id: started.parent_run_id ?? null,
  replay_of: started.replay_of ?? null,
})

const resultOfError = (error: RunError) => ({ result: { error }, error })

const resultOf = async (ending: Ending | null, payloads: Payloads): Promise<unknown> =>
  ending?.type === 'RunSucceeded' ? payloads.load(payloadOf('result', ending)) : null

const statusOf = (ending: Ending | null): Run['status'] => {
  if (ending === null) return 'running'
  switch (ending.type) {
    case 'RunSucceeded':
      return 'succeeded'
    case 'RunCancelled':
      return 'cancelled'
    case 'RunFailed':
      return ending.retry_at ? 'pending_retry' : 'failed'
    default:
      return ending satisfies never
  }
}
