import type { Payloads } from '../../content/payloads.ts'
import { payloadOf } from '../../events/payload.ts'
import type { RunDoc } from '../../projections/runs.ts'
import type { Run } from '../schemas.ts'
import type { PageValues } from './pageValues.ts'

/**
 * Returns a run as the API describes it (SPEC.md, Run). `result` of a failed run is its error (DESIGN.md, Contract). A
 * large result remains in the blobs.
 */
export const presentRun = (doc: RunDoc, payloads: Pick<Payloads, 'stored'>): Run =>
  withResult(
    doc,
    doc.error ? { result: { error: doc.error } } : { result: payloads.stored(payloadOf('result', doc)) },
  )

/** Returns a run of a list, where a large result is a reference. */
export const presentListedRun = (doc: RunDoc, values: PageValues): Run => {
  if (!doc.error)
    return withResult(doc, values.fields('result', payloadOf('result', doc), `/v1/runs/${doc.run_id}`))
  const error = values.error(doc.error)
  return withResult({ ...doc, error }, { result: { error } })
}

const withResult = (doc: RunDoc, result: Pick<Run, 'result' | 'result_ref'>): Run => ({
  run_id: doc.run_id,
  env_id: doc.env_id,
  stream_id: doc.stream_id,
  build_id: doc.build_id,
  run_type: doc.run_type,
  status: doc.status,
  requested_at: doc.requested_at,
  claimed_at: doc.claimed_at,
  start_time: doc.start_time,
  stop_time: doc.stop_time,
  origin_run_id: doc.origin_run_id,
  event_id: doc.event_id,
  ...result,
  ...(doc.error && { error: doc.error }),
  project_id: doc.project_id,
  project_name: doc.project_name,
  fn: doc.fn,
  attempt: doc.attempt,
  retry_at: doc.retry_at,
  retried_by: doc.retried_by,
  parent_run_id: doc.parent_run_id,
  replay_of: doc.replay_of,
})
