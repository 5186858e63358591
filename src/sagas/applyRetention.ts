import { isReply, REPLAYED_MS } from '../commands/idempotency.ts'
import { findRetainingPlan } from '../commands/orgs/findRetainingPlan.ts'
import { RETENTION_GROUP } from '../commands/orgs/renewRetention.ts'
import type { Recorded } from '../events/event.ts'
import type { Plan } from '../events/org.ts'
import { retentionOf } from '../plans/plans.ts'
import type { Delivery, EventStore } from '../ports/eventStore.ts'
import type { Directory } from '../projections/directory.ts'
import type { Saga, SagaCore } from './saga.ts'

const DAY_SECONDS = 86_400

/** A reply with an `Idempotency-Key` is kept a day longer than it is replayed, because its claim ends before that. */
const REPLY_SECONDS = REPLAYED_MS / 1000 + DAY_SECONDS

export interface RetentionInput {
  readonly delivery: Delivery
  /** Undefined if no plan applies. */
  readonly plan: Plan | undefined
}

interface Expiry {
  readonly delivery: Delivery
  /** Seconds for which the event store keeps the stream; null: unlimited, or already set. */
  readonly seconds: number | null
}

/** Keeps each stream for the retention period of its organization's plan (SPEC.md, Limits: `call_retention_days`). */
export const applyRetentionCore: SagaCore<null, RetentionInput, Expiry> = {
  initial: null,
  react: (state, { delivery, plan }) => ({
    state,
    steps: [
      {
        do: 'carryOut',
        key: delivery.event.id,
        command: { delivery, seconds: secondsOf(delivery.event, plan) },
      },
    ],
  }),
}

const secondsOf = ({ event, stream, revision }: Recorded, plan: Plan | undefined): number | null => {
  if (isReply(stream)) return REPLY_SECONDS
  if (event.type === 'RunLogged' && event.part > 0) return null
  if (event.type === 'FactExpired' && revision > 0) return null
  return retentionOf(plan)
}

/**
 * Sets the retention of each svc stream, of run output and of replies with an `Idempotency-Key` in the event store. All
 * nodes share a consumer group, so each retention is set at least once.
 */
export const applyRetention = (deps: {
  readonly store: Pick<EventStore, 'consume' | 'expire'>
  readonly aggregates: Parameters<typeof findRetainingPlan>[0]['aggregates']
  readonly directory: Parameters<typeof findRetainingPlan>[0]['directory'] & Pick<Directory, 'reach'>
}): Saga<null, RetentionInput, Expiry> => ({
  name: 'applyRetention',
  ...applyRetentionCore,

  async *inputs(signal) {
    const { store, directory } = deps
    const types = ['StreamCreated', 'RunLogged', 'RequestClaimed', 'FactExpired'] as const
    for await (const delivery of store.consume(RETENTION_GROUP, { types, signal })) {
      const { cursor, metadata } = delivery.event
      if (delivery.event.event.type === 'RequestClaimed') yield { delivery, plan: undefined }
      else {
        await directory.reach(cursor, signal)
        yield { delivery, plan: await findRetainingPlan(deps, metadata.env_id ?? '') }
      }
    }
  },

  async carryOut({ delivery, seconds }) {
    if (seconds !== null) await deps.store.expire(delivery.event.stream, seconds)
    delivery.ack()
    return undefined
  },

  afterFailure({ delivery }) {
    delivery.ack() // otherwise it would be delivered again and fail again
    return undefined
  },
})
