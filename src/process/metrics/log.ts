import type { Metric } from '../../ports/metrics.ts'
import type { Lag } from '../../projections/projectors.ts'
import type { Sources } from './sources.ts'

/** The event log and the read models. */
export const logMetrics = (sources: Sources): readonly Metric[] => {
  const lags = async (): Promise<readonly Lag[]> => (await sources.node?.projectors?.lags()) ?? []
  return [
    {
      kind: 'histogram',
      name: 'svc_log_commit_duration_seconds',
      help: 'Time that a commit to the event log takes until its facts are durable',
      read: () => (sources.node ? [{ histogram: sources.node.store.commits }] : []),
    },
    {
      kind: 'gauge',
      name: 'svc_log_facts',
      help: 'Facts in the event log; only if it is embedded',
      read: () => numberOf(sources.node?.store.size()?.facts),
    },
    {
      kind: 'gauge',
      name: 'svc_log_size_bytes',
      help: 'Bytes of the files of the event log; only if it is embedded',
      read: () => numberOf(sources.node?.store.size()?.bytes),
    },
    {
      kind: 'gauge',
      name: 'svc_projection_lag_seconds',
      help: 'Time for which a read model has not contained the whole log; only on the node that projects',
      labels: ['read_model'],
      read: async () =>
        (await lags()).map(({ name, ms }) => ({ labels: { read_model: name }, value: ms / 1000 })),
    },
    {
      kind: 'gauge',
      name: 'svc_projection_behind_facts',
      help: 'Facts of the log that a read model has not passed; only on the node that projects, if the log is embedded',
      labels: ['read_model'],
      read: async () =>
        (await lags()).flatMap(({ name, facts }) =>
          facts === null ? [] : [{ labels: { read_model: name }, value: facts }],
        ),
    },
    {
      kind: 'gauge',
      name: 'svc_projection_skipped_facts',
      help: 'Facts that a read model lacks, because its fold failed on them; every node returns the same number',
      labels: ['read_model'],
      read: () =>
        [...(sources.skippedFacts?.byReadModel() ?? [])].map(([read_model, value]) => ({
          labels: { read_model },
          value,
        })),
    },
    {
      kind: 'gauge',
      name: 'svc_unreadable_builds',
      help: 'Deployed and live builds whose lists of functions are damaged or missing; every node returns the same number',
      read: () => numberOf(sources.unreadableBuilds?.count()),
    },
  ]
}

const numberOf = (value: number | undefined) => (value === undefined ? [] : [{ value }])
