import { clock } from '../clock.ts'
import { sessionOf } from '../ports/claimer.ts'
import { streamOf } from '../events/streams.ts'
import type { RunInput, RunPlan } from '../events/run.ts'
import { endingOf, type Ending } from '../projections/outcome.ts'
import { wantRun } from './wantRun.ts'
import type { CommandDeps } from './deps.ts'
import type { NewId } from '../ids.ts'
import { atMost } from '../loops/deadline.ts'

/** How long a reply may still wait once the server stops: a little less than its connection has. */
const STOPPING_MS = 4500

/** How long a worker may take to claim what it was offered, until everybody is asked, milliseconds. */
const OFFERED_MS = 250
/** And what only one can know: a REPL's declarations. */
const OFFERED_SESSION_MS = 3000

/** Where a run is asked for in a stream that is made for it. */
const REQUESTED_AT = 1

type Deps = Pick<CommandDeps, 'store' | 'aggregates' | 'claimer' | 'offers' | 'stopping'>

/**
 * Asks for a run on a stream of its own and waits for its end, for replies that are the function's result.
 * A worker at hand, or one elsewhere that it is offered to (always the same one for a REPL), claims it in the append that asks for it. `ending` is null
 * when the time (`timeoutMs`) was over first; the run goes on.
 */
export const requestRun = async (
  deps: Deps,
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
  const plan: RunPlan = {
    ...wanted,
    run_id,
    stream_id,
    attempt: 1,
    input_at: { stream_id, revision: REQUESTED_AT },
  }
  const cause = { env_id, correlation_id: request_id, ...(actor !== undefined && { actor }) }
  const run = { plan, input, cause, now: clock.iso() }
  const over = overAfter(timeoutMs, deps.stopping)
  const ended = (onFact?: () => void) =>
    endingOf(deps.store, run_id, {
      stream: streamOf.stream(stream_id),
      after: REQUESTED_AT,
      signal: over.signal,
      ...(onFact && { onFact }),
    })
  try {
    const here = deps.claimer?.hasRoom ? deps.claimer : null
    const isSession = sessionOf(run) !== undefined
    if ((!here || isSession) && deps.offers?.make(run)) {
      const begun = Promise.withResolvers<true>()
      const ending = ended(() => begun.resolve(true))
      ending.catch(() => {}) // awaited below, unless asking for the run fails first
      // Who takes the offer later finds that the run was asked for.
      const offeredMs = isSession ? OFFERED_SESSION_MS : OFFERED_MS
      const taken = await atMost(offeredMs, Promise.race([begun.promise, ending]))
      if (!taken) await wantRun(deps.aggregates, run)
      return { run_id, stream_id, ending: await ending }
    }
    if (here) await here.take(run)
    else await wantRun(deps.aggregates, run)
    return { run_id, stream_id, ending: await ended() }
  } finally {
    over.clear()
  }
}

/** Aborts when the time is over; soon after the server began to stop. */
const overAfter = (ms: number, stopping: AbortSignal): { signal: AbortSignal; clear: () => void } => {
  const over = new AbortController()
  let timer = setTimeout(() => over.abort(), ms)
  const hurry = () => {
    clearTimeout(timer)
    timer = setTimeout(() => over.abort(), Math.min(ms, STOPPING_MS))
  }
  stopping.addEventListener('abort', hurry)
  if (stopping.aborted) hurry()
  return {
    signal: over.signal,
    clear() {
      clearTimeout(timer)
      stopping.removeEventListener('abort', hurry)
    },
  }
}
