import { clock } from '../../clock.ts'
import { isAppError } from '../../errors.ts'
import type { EnvCause } from '../../events/event.ts'
import type { RunError, RunPlan } from '../../events/run.ts'
import { streamOf } from '../../events/streams.ts'
import type { Outcome } from '../../ports/runtime.ts'
import type { CommandDeps } from '../deps.ts'

/**
 * Stores the end of a run that a worker executed (SPEC.md, Run status). A no-op if the run has ended or belongs to
 * another worker (I4). A lost run starts again as its next attempt. A result that cannot be stored fails the run. Rejects with `unavailable`; the caller then
 * retries.
 */
export const endRun = async (
  { aggregates, payloads }: Pick<CommandDeps, 'aggregates' | 'payloads'>,
  {
    plan: { run_id, stream_id },
    outcome,
    worker_id,
  }: { plan: Pick<RunPlan, 'run_id' | 'stream_id'>; outcome: Outcome; worker_id: string },
  cause: EnvCause,
): Promise<void> => {
  const stream = streamOf.stream(stream_id)
  const end = async (type: 'FailRun' | 'LoseRun', error: RunError, isFinal = false): Promise<void> => {
    const ended = { run_id, error, worker_id, now: clock.iso() }
    const command = type === 'LoseRun' ? { ...ended, type, withProcess: true } : { ...ended, type, isFinal }
    await aggregates.streams.handle(stream, command, cause)
  }
  if (outcome.status === 'failed') return end('FailRun', outcome.error, outcome.isFinal)
  if (outcome.status === 'lost') return end('LoseRun', outcome.error)
  try {
    const result = await payloads.keep(outcome.result, cause)
    const command = { type: 'SucceedRun', run_id, result, worker_id, now: clock.iso() } as const
    await aggregates.streams.handle(stream, command, cause)
  } catch (error) {
    if (!isAppError(error, 'bad_request')) throw error
    await end('FailRun', { code: 'result_not_serializable', message: error.message })
  }
}
