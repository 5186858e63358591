import { termsOf, UNLIMITED } from '../plans/plans.ts'
import type { Recorded } from '../events/event.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { Directory } from '../projections/directory.ts'

const DAY_SECONDS = 86_400

/** Answers under an `Idempotency-Key` are replayed for one day; who holds the claim has had its time by then. */
const KEYED_DAYS = 2

/**
 * Tells the event store how long it must keep each svc stream, and what its runs printed: by the plan of its
 * organization (SPEC.md, Limits: `call_retention_days`); and answers under an `Idempotency-Key`. A group keeps the
 * place, so a stream is told of at least once, by any one node.
 */
export const retention = async (
  { store, directory }: { store: EventStore; directory: Pick<Directory, 'env' | 'reach'> },
  signal: AbortSignal,
): Promise<void> => {
  for await (const delivery of store.consume('retention', {
    types: ['StreamCreated', 'RunLogged', 'RequestClaimed'],
    signal,
  })) {
    const { event } = delivery
    if (isFirst(event)) {
      const days = await daysOf(event, directory, signal)
      if (days !== UNLIMITED) await store.expire(event.stream, days * DAY_SECONDS)
    }
    delivery.ack()
  }
}

/** Later facts of a stream are told of by its first. */
const isFirst = ({ event }: Recorded): boolean => event.type !== 'RunLogged' || event.part === 0

const daysOf = async (
  { event, metadata, cursor }: Recorded,
  directory: Pick<Directory, 'env' | 'reach'>,
  signal: AbortSignal,
): Promise<number> => {
  if (event.type === 'RequestClaimed') return KEYED_DAYS
  await directory.reach(cursor, signal)
  const env = directory.env(metadata.env_id ?? '')
  return env ? termsOf[env.plan].limits.call_retention_days : UNLIMITED
}
