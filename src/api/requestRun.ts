import { clock } from '../clock.ts'
import { recordedOf } from '../commands/recorded.ts'
import { streamOf } from '../events/streams.ts'
import type { RunInput, RunPlan } from '../events/run.ts'
import { endingOf, type Ending } from '../projections/outcome.ts'
import type { ApiDeps } from './deps.ts'
import type { NewId } from './http/idempotency.ts'

/** How long a reply may still wait once the server stops: a little less than its connection has. */
const STOPPING_MS = 4500

/** Where a run is asked for in a stream that is made for it. */
const REQUESTED_AT = 1

/**
 * Asks for a run on a stream of its own and waits for its end, for replies that are the function's result.
 * A worker at hand claims it in the append that asks for it. `ending` is null when the time (`timeoutMs`) was over
 * first; the run goes on.
 */
export const requestRun = async (
  { store, commands, claimer, stopping }: Pick<ApiDeps, 'store' | 'commands' | 'claimer' | 'stopping'>,
  wanted: Omit<RunPlan, 'run_id' | 'stream_id' | 'attempt' | 'input_at'>,
  input: RunInput,
  {
    env_id,
    request_id,
    actor,
    timeoutMs,
    newId,
  }: { env_id: string; request_id: string; actor?: string; timeoutMs: number; newId: NewId },
): Promise<{ run_id: string; stream_id: string; ending: Ending | null }> => {
  const run_id = newId('run')
  const stream_id = newId('stream')
  const stream = streamOf.stream(stream_id)
  const now = clock.iso()
  const plan: RunPlan = {
    ...wanted,
    run_id,
    stream_id,
    attempt: 1,
    input_at: { stream_id, revision: REQUESTED_AT },
  }
  const by = claimer?.hasRoom ? claimer : null
  const worker_id = by?.worker_id ?? ''
  const cause = { env_id, correlation_id: request_id, ...(actor !== undefined && { actor }) }
  const handled = await commands.streams.handle(
    stream,
    {
      type: 'RequestRun',
      env_id,
      plan,
      input,
      create: true,
      ...(by && { claim: { worker_id, now } }),
    },
    cause,
    { fresh: true },
  )
  if (handled.events.length > 0) {
    by?.execute(plan, recordedOf(handled, 'RunRequested', { stream, at: now, metadata: cause }), worker_id)
  } // else it was asked for before, by a node that died: then its end is waited for
  const over = new AbortController()
  let timer = setTimeout(() => over.abort(), timeoutMs)
  const hurry = () => {
    clearTimeout(timer)
    timer = setTimeout(() => over.abort(), Math.min(timeoutMs, STOPPING_MS))
  }
  stopping.addEventListener('abort', hurry)
  if (stopping.aborted) hurry()
  try {
    return {
      run_id,
      stream_id,
      ending: await endingOf(store, run_id, { stream, after: REQUESTED_AT, signal: over.signal }),
    }
  } finally {
    clearTimeout(timer)
    stopping.removeEventListener('abort', hurry)
  }
}
