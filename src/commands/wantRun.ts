import type { Handled } from '../domain/commandHandler.ts'
import type { Aggregates } from '../domain/aggregates.ts'
import type { WantedRun } from '../ports/claimer.ts'
import { streamOf } from '../events/streams.ts'

/**
 * Stores that the run is wanted, and that a worker claims it when one is given. No facts: it was wanted before, here or
 * elsewhere.
 */
export const wantRun = (
  { streams }: Pick<Aggregates, 'streams'>,
  { plan, input, cause, now }: WantedRun,
  worker_id?: string,
): Promise<Handled> =>
  streams.handle(
    streamOf.stream(plan.stream_id),
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
