import { REPLAYED_MS } from '../commands/idempotency.ts'
import { envIdOf } from '../events/event.ts'
import type { DomainEvent } from '../events/index.ts'
import type { Plan } from '../events/org.ts'
import { termsOf, UNLIMITED } from '../plans/plans.ts'
import type { Delivery, EventStore } from '../ports/eventStore.ts'
import type { Directory } from '../projections/directory.ts'
import type { Saga, SagaCore } from './saga.ts'

const DAY_SECONDS = 86_400

/** A reply under an `Idempotency-Key` is kept a day longer than it is replayed, so that its claim has ended by then. */
const REPLY_SECONDS = REPLAYED_MS / 1000 + DAY_SECONDS

export interface RetentionInput {
  readonly delivery: Delivery
  /** The plan of its organization; undefined where none applies. */
  readonly plan: Plan | undefined
}

interface Expiry {
  readonly delivery: Delivery
  /** How long the event store keeps the stream; null: for ever, or an earlier fact has set it. */
  readonly seconds: number | null
}

/** Each stream is kept as long as the plan of its organization says (SPEC.md, Limits: `call_retention_days`). */
export const expireStreamsCore: SagaCore<null, RetentionInput, Expiry> = {
  initial: null,
  react: (state, { delivery, plan }) => ({
    state,
    steps: [
      {
        do: 'carryOut',
        key: delivery.event.id,
        command: { delivery, seconds: secondsOf(delivery.event.event, plan) },
      },
    ],
  }),
}

const secondsOf = (event: DomainEvent, plan: Plan | undefined): number | null => {
  if (event.type === 'RequestClaimed') return REPLY_SECONDS
  if (event.type === 'RunLogged' && event.part > 0) return null
  const days = plan ? termsOf[plan].limits.call_retention_days : UNLIMITED
  return days === UNLIMITED ? null : days * DAY_SECONDS
}

/**
 * Sets in the event store how long it keeps each svc stream, the output of runs and the replies under an
 * `Idempotency-Key`. A consumer group keeps the place, so one node sets it, at least once.
 */
export const expireStreams = ({
  store,
  directory,
}: {
  readonly store: Pick<EventStore, 'consume' | 'expire'>
  readonly directory: Pick<Directory, 'env' | 'reach'>
}): Saga<null, RetentionInput, Expiry> => ({
  name: 'expireStreams',
  ...expireStreamsCore,

  async *inputs(signal) {
    const types = ['StreamCreated', 'RunLogged', 'RequestClaimed'] as const
    for await (const delivery of store.consume('retention', { types, signal })) {
      const { event } = delivery
      if (event.event.type === 'RequestClaimed') yield { delivery, plan: undefined }
      else {
        await directory.reach(event.cursor, signal)
        yield { delivery, plan: directory.env(envIdOf(event))?.plan }
      }
    }
  },

  async carryOut({ delivery, seconds }) {
    if (seconds !== null) await store.expire(delivery.event.stream, seconds)
    delivery.ack()
    return undefined
  },

  afterFailure({ delivery }) {
    delivery.ack() // else it would be delivered again, and fail again
    return undefined
  },
})
