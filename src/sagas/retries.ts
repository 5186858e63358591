import { clock } from '../clock.ts'
import { everyDoc } from '../loops/pages.ts'
import { derivedIdBeside } from '../ids.ts'
import type { Aggregates } from '../domain/aggregates.ts'
import { streamOf } from '../events/streams.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { Collection } from '../ports/readModels.ts'
import type { RunDoc } from '../projections/runs.ts'
import type { Cursor } from '../events/event.ts'
import type { Alarms } from './alarms.ts'

interface Deps {
  readonly store: EventStore
  readonly aggregates: Pick<Aggregates, 'streams'>
  readonly runs: Collection<RunDoc>
  readonly alarms: Alarms
}

/**
 * Runs waiting for their retry get it when it is due. Any number of nodes may run this: the decider
 * lets one of them win. What was waiting before `from` comes from the read model, the rest from the log.
 */
export const retries = async (deps: Deps, from: Cursor, signal: AbortSignal): Promise<void> => {
  for await (const run of everyDoc(deps.runs, { id: 'run_id', equal: {}, sort: 'retry_at', from: '' })) {
    scheduleRetry(deps, run, run.env_id, run.retry_at ?? run.start_time)
  }
  const types = ['RunFailed', 'RunRetried', 'RunCancelled'] as const
  for await (const { events } of deps.store.subscribe({ after: from, types, signal })) {
    for (const { event, metadata } of events) {
      if (event.type === 'RunFailed') {
        if (event.retry_at) scheduleRetry(deps, event, metadata.env_id ?? '', event.retry_at)
      } else if ('run_id' in event) deps.alarms.clear(keyOf(event.run_id))
    }
  }
}

const keyOf = (run_id: string): string => `retry:${run_id}`

/** A retry that could not be stored is tried again after this long. */
const AGAIN_MS = 1000

const scheduleRetry = (
  { aggregates, alarms }: Deps,
  { run_id, stream_id }: { run_id: string; stream_id: string },
  env_id: string,
  retry_at: string,
): void => {
  const ring = () => {
    const retry_run_id = derivedIdBeside(run_id, 'retry')
    aggregates.streams
      .handle(
        streamOf.stream(stream_id),
        { type: 'RetryRun', run_id, retry_run_id },
        { env_id, correlation_id: run_id, causation_id: run_id },
      )
      .catch(() => alarms.set(keyOf(run_id), clock.now() + AGAIN_MS, ring))
  }
  alarms.set(keyOf(run_id), Date.parse(retry_at), ring)
}
