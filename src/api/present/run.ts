import type { Payloads } from '../../content/payloads.ts'
import { payloadOf } from '../../events/payload.ts'
import type { RunDoc } from '../../projections/runs.ts'
import type { Run } from '../schemas.ts'

/**
 * Returns a run as the API describes it (SPEC.md, Run). `result` of a failed run is its error (DESIGN.md, Contract).
 */
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
  ...(doc.error
    ? { result: { error: doc.error }, error: doc.error }
    : { result: await payloads.load(payloadOf('result', doc)) }),
  project_id: doc.project_id,
  project_name: doc.project_name,
  fn: doc.fn,
  attempt: doc.attempt,
  retry_at: doc.retry_at,
  parent_run_id: doc.parent_run_id,
  replay_of: doc.replay_of,
})
