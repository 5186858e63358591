import type { Metric } from '../../ports/metrics.ts'
import type { PoolReading } from '../../ports/runtime.ts'
import type { Sources } from './sources.ts'

/** The queue of events, runs and child processes. */
export const runMetrics = (sources: Sources): readonly Metric[] => {
  const pool = (of: (pool: PoolReading) => number) => () =>
    sources.runtime ? [{ value: of(sources.runtime.pool) }] : []
  return [
    {
      kind: 'gauge',
      name: 'svc_queue_oldest_age_seconds',
      help: 'Age of the oldest event or requested run that no worker has taken; only with the role worker or saga',
      read: () => (sources.untaken ? [{ value: sources.untaken.oldestMs / 1000 }] : []),
    },
    {
      kind: 'gauge',
      name: 'svc_queue_waiting',
      help: 'Events and requested runs that no worker has taken, at most 20,000; only with the role worker or saga',
      read: () => (sources.untaken ? [{ value: sources.untaken.waiting }] : []),
    },
    {
      kind: 'counter',
      name: 'svc_runs_total',
      help: 'Runs that ended in this worker; each attempt of a retried run counts',
      labels: ['run_type', 'outcome'],
      read: () => sources.worker?.runs.meter.runs ?? [],
    },
    {
      kind: 'histogram',
      name: 'svc_run_duration_seconds',
      help: 'Time from the claim of a run until its end, with the time in which it waited for a child',
      labels: ['run_type', 'outcome'],
      read: () => sources.worker?.runs.meter.durations ?? [],
    },
    {
      kind: 'histogram',
      name: 'svc_run_start_delay_seconds',
      help: 'Time from the claim of a run until a child process receives it',
      read: () => (sources.worker ? [{ histogram: sources.worker.runs.meter.starts }] : []),
    },
    {
      kind: 'gauge',
      name: 'svc_runs_active',
      help: 'Runs that this worker has claimed and that have not ended: waiting for a child, or running in one',
      labels: ['state'],
      read: () => {
        if (!sources.worker) return []
        const { waiting, running } = sources.worker.runs.counts
        return [
          { labels: { state: 'waiting' }, value: waiting },
          { labels: { state: 'running' }, value: running },
        ]
      },
    },
    {
      kind: 'gauge',
      name: 'svc_children',
      help: 'Child processes for functions, those that start included',
      read: pool(({ children }) => children),
    },
    {
      kind: 'gauge',
      name: 'svc_children_busy',
      help: 'Child processes with runs',
      read: pool(({ busy }) => busy),
    },
    {
      kind: 'gauge',
      name: 'svc_children_max',
      help: 'The most child processes for functions that this node starts at a time',
      read: pool(({ maxChildren }) => maxChildren),
    },
    {
      kind: 'gauge',
      name: 'svc_children_waiting_runs',
      help: 'Runs that wait for a child process or for room in it',
      read: pool(({ waitingRuns }) => waitingRuns),
    },
    {
      kind: 'counter',
      name: 'svc_child_starts_total',
      help: 'Child processes for functions that were started',
      read: pool(({ starts }) => starts),
    },
    {
      kind: 'counter',
      name: 'svc_child_crashes_total',
      help: 'Child processes for functions that ended although the service had not ended them',
      read: pool(({ crashes }) => crashes),
    },
  ]
}
