import { renewRetention } from '../commands/orgs/renewRetention.ts'
import type { Logger } from '../logger.ts'
import { earlierNow } from '../loops/twoClocks.ts'
import type { Delivery } from '../ports/eventStore.ts'
import type { Saga, SagaCore } from './saga.ts'

export interface PlanInput {
  readonly delivery: Delivery
}

/** Each change of an organization is carried out once. */
export const renewRetentionsCore: SagaCore<null, PlanInput, Delivery> = {
  initial: null,
  react: (state, { delivery }) => ({
    state,
    steps: [{ do: 'carryOut', key: delivery.event.id, command: delivery }],
  }),
}

/**
 * Sets the retention of all streams of an organization again when its plan changes: `applyRetention` knows the plan at the
 * beginning of a stream. All nodes share a consumer group, so each change is carried out at least once.
 */
export const renewRetentions = (
  deps: Parameters<typeof renewRetention>[0] & { readonly logger: Logger },
): Saga<null, PlanInput, Delivery> => ({
  name: 'renewRetentions',
  ...renewRetentionsCore,

  async *inputs(signal) {
    const { store } = deps
    const from = await store.head() // a new group: earlier changes have no effect on new streams
    for await (const delivery of store.consume('plans', { types: ['OrgChanged'], from, signal }))
      yield { delivery }
  },

  async carryOut(delivery) {
    const { event, cursor } = delivery.event
    if (event.type === 'OrgChanged' && event.plan !== undefined) {
      const { org_id, plan } = event
      await deps.views.directory.reach(cursor)
      const streams = await renewRetention(deps, { org_id, now: earlierNow(deps.store) })
      if (streams > 0)
        deps.logger.info('The retention of streams follows a new plan', { org_id, plan, streams })
    }
    delivery.ack()
    return undefined
  },

  afterFailure(delivery) {
    delivery.ack() // otherwise it would be delivered again and fail again
    return undefined
  },
})
