import { retryIdOf } from '../../domain/run.ts'
import type { DomainEvent, EventOf } from '../../events/index.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

/** The fact that ended a run. */
export type Ending = EventOf<'RunSucceeded' | 'RunFailed' | 'RunCancelled'>

/**
 * Follows a stream after a revision until the run, or the last of its retries, ends there; null when the signal aborts
 * first. The revision is that of the caller's own append, so the ending is after it. `onFact` is called when the first facts arrive.
 * A fact for which `isOver` returns true ends the wait too.
 */
export const awaitEnding = async <Over extends DomainEvent = never>(
  { store }: Pick<CommandDeps, 'store'>,
  { run_id, stream_id, after }: { run_id: string; stream_id: string; after: number },
  {
    signal,
    onFact,
    isOver,
  }: {
    signal: AbortSignal
    onFact?: (() => void) | undefined
    isOver?: (event: DomainEvent) => event is Over
  },
): Promise<Ending | Over | null> => {
  const chain = new Set([run_id])
  for await (const { events } of store.follow(streamOf.stream(stream_id), { after, signal })) {
    if (events.length > 0) onFact?.()
    for (const { event } of events) {
      if (isOver?.(event)) return event
      if (!isEnding(event) || !chain.has(event.run_id)) continue
      const next = attemptAfter(event)
      if (next === undefined) return event
      chain.add(next)
    }
  }
  return null
}

export const isEnding = (event: DomainEvent): event is Ending =>
  event.type === 'RunSucceeded' || event.type === 'RunFailed' || event.type === 'RunCancelled'

/** Returns the id of the attempt that follows the end of a run; undefined if there is none. */
export const attemptAfter = (ending: Ending): string | undefined =>
  ending.type === 'RunFailed' && ending.retry_at !== undefined ? retryIdOf(ending.run_id) : undefined
