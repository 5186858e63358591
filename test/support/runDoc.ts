import type { RunDoc } from '../../src/projections/runs.ts'

const AT = '2026-05-01T10:00:00.000Z'

/** The document of a run that has succeeded. `fields` replaces some of its fields; every time is `at`. */
export const runDoc = ({ at = AT, ...fields }: Partial<RunDoc> & { readonly at?: string } = {}): RunDoc => ({
  run_id: 'run',
  env_id: 'env',
  stream_id: 's',
  build_id: 'b',
  run_type: 'call',
  status: 'succeeded',
  start_time: at,
  stop_time: at,
  origin_run_id: null,
  event_id: 'e',
  project_id: 'p',
  project_name: 'shop',
  fn: 'a/b',
  attempt: 1,
  parent_run_id: null,
  replay_of: null,
  retry_at: null,
  worker_id: 'w',
  running_on: null,
  input_at: null,
  order: `${at}/${'0'.repeat(16)}`,
  requested_at: at,
  claimed_at: at,
  retried_by: null,
  error_code: null,
  error_order: null,
  child_of: null,
  of_schedule: null,
  ...fields,
})
