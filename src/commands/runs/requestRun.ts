import { clock } from '../../clock.ts'
import { recordedOf } from '../../domain/recorded.ts'
import { isRefusal } from '../../errors.ts'
import type { Recorded } from '../../events/event.ts'
import type { RunInput, RunPlan } from '../../events/run.ts'
import { streamOf } from '../../events/streams.ts'
import { isDerived } from '../../ids.ts'
import { atMost } from '../../loops/deadline.ts'
import type { WaitingCalls } from '../../loops/waitingCalls.ts'
import { sessionOf, type WantedRun } from '../../ports/claimer.ts'
import { awaitEnding, type Ending } from './awaitEnding.ts'
import type { Caller, CommandDeps } from '../deps.ts'

/** Time beyond the run's own timeout that a caller waits, so that a worker can claim the run and store its end. */
export const BEYOND_TIMEOUT_MS = 10_000

/** Time in milliseconds in which only the worker that was offered a run may claim it. */
const OFFERED_MS = 250
/** The same for a REPL, whose declarations only that worker has. */
const OFFERED_SESSION_MS = 3000

/** With a reason, an abort creates no error with a stack. */
const CLEARED = 'cleared'

/** Revision of the request in the stream that is created for the run: `StreamCreated` comes first. */
export const REQUESTED_AT = 1

type Deps = Pick<CommandDeps, 'store' | 'aggregates' | 'claimer' | 'offers' | 'calls'>

/** A run without the fields that this command decides. */
export type RunToRequest = Omit<RunPlan, 'run_id' | 'stream_id' | 'attempt' | 'input_at' | 'timeout'> & {
  /** Milliseconds. */
  readonly timeout: number
}

/**
 * Requests a run in a stream of its own and waits for its end. `ending` is null if the time was over first, or `gone`;
 * the run then continues. The worker of this process claims the run in the same append. Otherwise the run is offered to
 * another worker (for a REPL always the same one). `onStored` is called when the request is stored; the wait that follows
 * keeps neither the run nor its input.
 */
export const requestRun = (
  deps: Deps,
  {
    run,
    input,
    gone,
    onStored,
  }: { run: RunToRequest; input: RunInput; gone?: AbortSignal | undefined; onStored?: () => void },
  { cause, newId }: Caller,
): Promise<Requested> => {
  const run_id = newId('run')
  const stream_id = newId('stream')
  const plan: RunPlan = {
    ...run,
    run_id,
    stream_id,
    attempt: 1,
    input_at: { stream_id, revision: REQUESTED_AT },
    ...(cause.traceparent !== undefined && { traceparent: cause.traceparent }),
  }
  const over = overAfter(run.timeout + BEYOND_TIMEOUT_MS, deps.calls, gone)
  const wanted = { plan, input, cause, now: clock.iso() }
  return endOf({ run_id, stream_id }, request(deps, wanted, over.signal), onStored).finally(() =>
    over.clear(),
  )
}

/**
 * Resolves with what is `admitted`. If that is refused, but an earlier attempt of the request with its `Idempotency-Key` has
 * requested its run, resolves with null: a refusal such as that of a full plan does not apply, because nothing more is stored.
 */
export const orRequested = <T>(
  deps: Pick<CommandDeps, 'aggregates'>,
  admitted: Promise<T>,
  caller: Caller,
): Promise<T | null> =>
  admitted.catch(async (error: unknown) => {
    if (isRefusal(error) && (await wasRequested(deps, caller))) return null
    throw error
  })

const wasRequested = async (
  { aggregates }: Pick<CommandDeps, 'aggregates'>,
  { cause, newId }: Caller,
): Promise<boolean> => {
  const stream_id = newId('stream')
  if (!isDerived(stream_id)) return false
  return aggregates.streams.read(streamOf.stream(stream_id), ({ env_id }) => env_id === cause.env_id)
}

/** Waits for the end of a run that an earlier attempt has requested, as `requestRun` does. */
export const awaitRequested = (
  deps: Deps,
  { timeout, onStored }: { timeout: number; onStored?: (() => void) | undefined },
  { newId }: Caller,
): Promise<Requested> => {
  const ids = { run_id: newId('run'), stream_id: newId('stream') }
  const { signal, clear } = overAfter(timeout + BEYOND_TIMEOUT_MS, deps.calls)
  const ending = awaitEnding(deps, { ...ids, after: REQUESTED_AT }, { signal })
  return endOf(ids, Promise.resolve({ ending }), onStored).finally(clear)
}

interface Requested {
  readonly run_id: string
  readonly stream_id: string
  readonly ending: Ending | null
}

/** An own function, because a function that waits keeps its arguments, and the input of the run is not needed any more. */
const endOf = async (
  ids: Pick<Requested, 'run_id' | 'stream_id'>,
  requested: Promise<{ readonly ending: Promise<Ending | null> }>,
  onStored?: () => void,
): Promise<Requested> => {
  const { ending } = await requested
  onStored?.()
  return { ...ids, ending: await ending }
}

/** Resolves when the run is requested. */
const request = async (
  deps: Deps,
  wanted: WantedRun,
  signal: AbortSignal,
): Promise<{ readonly ending: Promise<Ending | null> }> => {
  const { plan, cause } = wanted
  const { run_id, stream_id } = plan
  const ended = (onFact?: () => void) =>
    awaitEnding(deps, { run_id, stream_id, after: REQUESTED_AT }, { signal, onFact })
  const here = deps.claimer?.hasRoom(cause.env_id) ? deps.claimer : null
  const isSession = sessionOf(wanted) !== undefined
  if ((!here || isSession || here.isFullFor(cause.env_id)) && deps.offers?.make(wanted)) {
    const begun = Promise.withResolvers<true>()
    const ending = ended(() => begun.resolve(true))
    ending.catch(() => {}) // awaited by the caller, unless storing the request fails first
    // A worker that accepts the offer too late gets null from `storeRequest`.
    const offeredMs = isSession ? OFFERED_SESSION_MS : OFFERED_MS
    const taken = await atMost(offeredMs, Promise.race([begun.promise, ending]))
    if (!taken) await storeRequest(deps, wanted)
    return { ending }
  }
  if (here) await here.take(wanted)
  else await storeRequest(deps, wanted)
  return { ending: ended() }
}

/**
 * Stores the request of a run, with its claim if a worker is given. Resolves with the stored fact; null when a node has
 * already requested the run.
 */
export const storeRequest = async (
  { aggregates }: Pick<CommandDeps, 'aggregates'>,
  { plan, input, cause, now }: WantedRun,
  worker_id?: string,
): Promise<Recorded | null> => {
  const stream = streamOf.stream(plan.stream_id)
  const handled = await aggregates.streams.handle(
    stream,
    {
      type: 'RequestRun',
      env_id: cause.env_id,
      plan,
      input,
      create: true,
      ...(worker_id !== undefined && { claim: { worker_id, now } }),
    },
    cause,
    { fresh: true },
  )
  if (handled.events.length === 0) return null
  return recordedOf(handled, 'RunRequested', { stream, at: now, metadata: cause })
}

/**
 * Aborts after `ms`, when the server that stops waits no longer, with `gone`, or when it is cleared: a request that failed leaves a
 * follower. It is no combination of signals: Node keeps weak references to these, and each full collection looks at all of them.
 */
const overAfter = (
  ms: number,
  calls: WaitingCalls,
  gone?: AbortSignal,
): { signal: AbortSignal; clear: () => void } => {
  const over = new AbortController()
  const timer = setTimeout(() => over.abort(), ms)
  const end = () => over.abort()
  calls.enter()
  calls.over.addEventListener('abort', end)
  if (calls.over.aborted) end()
  const leave = () => over.abort(gone?.reason)
  gone?.addEventListener('abort', leave)
  if (gone?.aborted) leave()
  return {
    signal: over.signal,
    clear() {
      clearTimeout(timer)
      calls.leave()
      calls.over.removeEventListener('abort', end)
      gone?.removeEventListener('abort', leave)
      over.abort(CLEARED)
    },
  }
}
