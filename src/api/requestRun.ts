import { clock } from '../clock.ts'
import { START } from '../events/event.ts'
import type { DomainEvent } from '../events/index.ts'
import { streamOf } from '../events/streams.ts'
import type { RunInput, RunPlan } from '../events/run.ts'
import { newId } from '../ids.ts'
import { endingOf, type Ending } from '../projections/outcome.ts'
import type { ApiDeps } from './deps.ts'

/**
 * Asks for a run on a stream of its own and waits for its end, for replies that are the function's result.
 * A worker at hand claims it in the append that asks for it. `ending` is null when the time was over first; the run goes on.
 */
export const requestRun = async (
  { store, commands, claimer }: Pick<ApiDeps, 'store' | 'commands' | 'claimer'>,
  wanted: Omit<RunPlan, 'run_id' | 'stream_id' | 'attempt' | 'input_at'>,
  input: RunInput,
  { env_id, request_id, actor, signal }: { env_id: string; request_id: string; actor?: string; signal: AbortSignal },
): Promise<{ run_id: string; stream_id: string; ending: Ending | null }> => {
  const run_id = newId()
  const stream_id = newId()
  const stream = streamOf.stream(stream_id)
  const now = clock.iso()
  const plan: RunPlan = { ...wanted, run_id, stream_id, attempt: 1, input_at: { stream_id, revision: 1 } }
  const by = claimer?.hasRoom ? claimer : null
  const cause = { env_id, correlation_id: request_id, ...(actor !== undefined && { actor }) }
  const { events, ids, firstRevision } = await commands.streams.handle(
    stream,
    { type: 'RequestRun', env_id, plan, input, create: true, ...(by && { claim: { worker_id: by.worker_id, now } }) },
    cause,
    { fresh: true },
  )
  const at = events.findIndex(({ type }) => type === 'RunRequested')
  const revision = firstRevision + at
  by?.execute(plan, { id: ids[at] ?? '', stream, revision, cursor: START, at: now, event: events[at] as DomainEvent, metadata: cause })
  return { run_id, stream_id, ending: await endingOf(store, run_id, { stream, after: revision, signal }) }
}
