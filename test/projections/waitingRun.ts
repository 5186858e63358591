import type { EventOf } from '../../src/events/index.ts'

const plan = (run_id: string) =>
  ({
    run_id,
    stream_id: 's',
    run_type: 'schedule',
    build_id: 'b',
    project_id: 'p',
    project_name: 'shop',
    target: { ns: 'orders', var: 'nightly' },
    attempt: 1,
  }) as const

/** A run of a schedule waits for a worker. */
export const requestedRun = (run_id: string): EventOf<'RunRequested'> => ({
  type: 'RunRequested',
  ...plan(run_id),
})

/** It waits no more. */
export const startedRun = (run_id: string): EventOf<'RunStarted'> => ({
  type: 'RunStarted',
  ...plan(run_id),
  worker_id: 'w',
  start_time: '2026-05-01T10:00:00.000Z',
})
