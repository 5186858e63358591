import { streamOf } from '../events/streams.ts'
import type { RunInput, RunPlan } from '../events/run.ts'
import { newId } from '../ids.ts'
import { endingOf, type Ending } from '../projections/outcome.ts'
import type { ApiDeps } from './deps.ts'

/**
 * Asks for a run on a stream of its own and waits for its end, for replies that are the function's result.
 * `ending` is null when the time was over first; the run goes on.
 */
export const requestRun = async (
  { store, commands }: Pick<ApiDeps, 'store' | 'commands'>,
  plan: Omit<RunPlan, 'run_id' | 'stream_id' | 'attempt'>,
  input: RunInput,
  { env_id, request_id, actor, signal }: { env_id: string; request_id: string; actor?: string; signal: AbortSignal },
): Promise<{ run_id: string; stream_id: string; ending: Ending | null }> => {
  const run_id = newId()
  const stream_id = newId()
  const stream = streamOf.stream(stream_id)
  const { firstRevision, events } = await commands.streams.handle(
    stream,
    { type: 'RequestRun', env_id, plan: { ...plan, run_id, stream_id, attempt: 1 }, input, create: true },
    { env_id, correlation_id: request_id, ...(actor !== undefined && { actor }) },
    { fresh: true },
  )
  const after = firstRevision + events.length - 1
  return { run_id, stream_id, ending: await endingOf(store, run_id, { stream, after, signal }) }
}
