import { clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { payloadFields } from '../../events/payload.ts'
import { streamOf } from '../../events/streams.ts'
import type { Wired } from '../../projections/wiring.ts'
import type { CommandDeps } from '../deps.ts'
import type { EnvCause } from '../../events/event.ts'
import type { RunInput } from '../../events/run.ts'
import type { NewId } from '../../ids.ts'
import { placeOf } from '../events/planRuns.ts'
import type { Ending } from '../runs/awaitEnding.ts'
import { REQUESTED_AT, requestRun, type RunToRequest } from '../runs/requestRun.ts'
import { withdrawRun } from '../runs/withdrawRun.ts'
import { type Activity, followStream } from '../streams/followStream.ts'
import { readFact } from '../streams/readFact.ts'
import { callIdsOf, type ToolRequest } from './callIds.ts'

type Deps = Parameters<typeof requestRun>[0] &
  Pick<CommandDeps, 'payloads'> & {
    readonly quotas: Pick<CommandDeps['quotas'], 'checkRun' | 'dataFor'>
  }

/** Data that the run, or a run that it called, emitted. */
export type EmittedData = Extract<Activity, { readonly kind: 'data' }>

export interface ToolCall {
  readonly tool: Wired
  /** The only argument of the function. */
  readonly input: Readonly<Record<string, unknown>>
  /** Timeout of a function that has none, milliseconds. */
  readonly defaultTimeoutMs: number
  readonly request: ToolRequest
}

/** A call whose input is stored, so that no large input is in memory while its run is awaited. */
export interface StoredCall {
  readonly run: RunToRequest
  readonly input: RunInput
  readonly newId: NewId
  /** Gives back the reserved room of the plan. */
  readonly release: () => void
}

/** Is called with the emitted data in order, all of it before the call resolves. `gone` ends the waiting, not the run. */
export interface Progress {
  readonly onData: (data: EmittedData) => Promise<void>
  readonly gone: AbortSignal
}

/**
 * Stores the input of a call. `runStored` or `release` must follow. Rejects with `quota_exceeded`, or with `conflict` if the session
 * has used the id of the request.
 */
export const storeCall = async (
  { payloads, quotas, store }: Deps,
  { tool, input, defaultTimeoutMs, request }: ToolCall,
  { env_id }: EnvCause,
): Promise<StoredCall> => {
  const newId = callIdsOf(request)
  if (await readFact(store, streamOf.stream(newId('stream')), 0))
    throw new AppError(
      'conflict',
      `id: expected one that this session has not used, got ${JSON.stringify(request.request_id).slice(0, 80)}`,
    )
  await quotas.checkRun(env_id)
  const room = quotas.dataFor(env_id)
  const release = () => room.release()
  try {
    const value = payloadFields('value', await payloads.keep([input], { env_id }, room))
    const run = {
      run_type: 'call',
      ...placeOf(tool),
      once: true,
      timeout: tool.fn.timeout ?? defaultTimeoutMs,
      requested_at: clock.iso(), // the id contains no time
    } as const
    return { run, input: { kind: 'args', ...value }, newId, release }
  } catch (error) {
    release()
    throw error
  }
}

/**
 * Runs the function of a stored call once and waits for its end: its caller decides whether it calls again. Rejects with
 * `unavailable` when the run did not end in time, or `gone` was first.
 */
export const runStored = async (
  deps: Deps,
  { run, input, newId, release }: StoredCall,
  { cause, progress }: { readonly cause: EnvCause; readonly progress?: Progress | undefined },
): Promise<{ readonly run_id: string; readonly ending: Ending }> => {
  const [run_id, stream_id] = [newId('run'), newId('stream')]
  const follower = progress && following(deps, { run_id, stream_id }, progress)
  try {
    const { ending } = await requestRun(
      deps,
      { run, input, gone: progress?.gone, onStored: release },
      { cause, newId },
    )
    if (!ending) {
      if (!progress?.gone.aborted && (await withdrawRun(deps, { run_id, stream_id }, cause)))
        throw new AppError(
          'unavailable',
          `No worker began the run ${run_id} in time, and it does not start later: call the tool again`,
        )
      throw new AppError('unavailable', `The run ${run_id} did not end in time; it continues`)
    }
    await follower?.ended
    return { run_id, ending }
  } finally {
    follower?.stop()
    release()
  }
}

/** Follows the stream of a run until the run ends. */
const following = (
  deps: Pick<CommandDeps, 'store' | 'aggregates'>,
  { run_id, stream_id }: { readonly run_id: string; readonly stream_id: string },
  { onData, gone }: Progress,
) => {
  const over = new AbortController()
  const follow = async (): Promise<void> => {
    const start = { stream_id, after: REQUESTED_AT, mayBeComplete: false }
    const signal = AbortSignal.any([gone, over.signal])
    for await (const part of followStream(deps, { start, signal })) {
      if (part.kind === 'complete') return
      if (part.kind === 'expired') continue
      for (const activity of part.activities)
        if (activity.kind === 'data') await onData(activity)
        else if (activity.kind !== 'started' && activity.run.run_id === run_id) return
    }
  }
  const ended = follow()
  ended.catch(() => {}) // reported where it is awaited, unless the run failed first
  return { ended, stop: () => over.abort() }
}
