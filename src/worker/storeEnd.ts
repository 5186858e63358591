import type { CommandDeps } from '../commands/deps.ts'
import { endRun } from '../commands/runs/endRun.ts'
import { returnRun } from '../commands/runs/returnRun.ts'
import { isRetryable, messageOf } from '../errors.ts'
import type { EnvCause } from '../events/event.ts'
import type { RunPlan } from '../events/run.ts'
import type { Logger } from '../logger.ts'
import { Backoff } from '../loops/backoff.ts'
import type { Outcome } from '../ports/runtime.ts'

/** Pauses between attempts to store the end of a run. */
const PAUSES = { firstMs: 50, longestMs: 2000 }

/**
 * Stores the end of a run, or returns it if `outcome` is null. Tries until it succeeds or the signal aborts (W3). `warn`
 * logs outages, which many runs meet at once.
 */
export const storeEnd = async (
  deps: Pick<CommandDeps, 'aggregates' | 'payloads'> & {
    readonly logger: Logger
    readonly warn: Logger['warn']
  },
  { outcome, ...run }: { plan: RunPlan; outcome: Outcome | null; worker_id: string },
  cause: EnvCause,
  signal: AbortSignal,
): Promise<void> => {
  const backoff = new Backoff(PAUSES)
  while (!signal.aborted) {
    try {
      await (outcome ? endRun(deps, { ...run, outcome }, cause) : returnRun(deps, run, cause))
      if (outcome?.status === 'succeeded') outcome.done?.()
      return
    } catch (error) {
      const message = 'The end of a run could not be stored and is retried'
      const fields = { run_id: run.plan.run_id, error: messageOf(error) }
      if (isRetryable(error)) deps.warn(message, fields)
      else deps.logger.warn(message, fields)
      await backoff.pause({ signal, ref: false })
    }
  }
}
