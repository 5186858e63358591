import { termsOf, UNLIMITED } from '../plans.ts'
import type { Recorded } from '../events/event.ts'
import { streamOf } from '../events/streams.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { Directory } from '../projections/directory.ts'

const DAY_SECONDS = 86_400

/**
 * Tells the event store how long it must keep each svc stream, and what its runs printed: by the plan of its
 * organization (SPEC.md, Limits:
 * `call_retention_days`). A group keeps the place, so a stream is told of at least once, by any one node.
 */
export const retention = async (
  { store, directory }: { store: EventStore; directory: Pick<Directory, 'env' | 'reach'> },
  signal: AbortSignal,
): Promise<void> => {
  for await (const delivery of store.consume('retention', {
    types: ['StreamCreated', 'RunLogged'],
    signal,
  })) {
    const { event } = delivery
    const stream = begun(event)
    if (stream !== null) {
      await directory.reach(event.cursor, signal)
      const days = daysOf(directory, event.metadata.env_id)
      if (days !== UNLIMITED) await store.expire(stream, days * DAY_SECONDS)
    }
    delivery.ack()
  }
}

/** The stream that begins with this fact; null when it has been told of. */
const begun = ({ event }: Recorded): string | null => {
  if (event.type === 'StreamCreated') return streamOf.stream(event.stream_id)
  return event.type === 'RunLogged' && event.part === 0 ? streamOf.runLog(event.run_id) : null
}

const daysOf = (directory: Pick<Directory, 'env'>, env_id: string | undefined): number => {
  const env = env_id === undefined ? undefined : directory.env(env_id)
  return env ? termsOf[env.plan].limits.call_retention_days : UNLIMITED
}
