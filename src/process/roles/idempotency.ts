import { Idempotency } from '../../commands/idempotency.ts'
import type { Node } from './node.ts'

/** The keyed requests of one role. Roles share no keys, because their scopes differ. */
export const openIdempotency = (
  { store, aggregates, payloads, quotas, keyring, logger, node_id, liveness, hasEarlierKeys }: Node,
  stopping: AbortSignal,
): Idempotency =>
  new Idempotency({
    store,
    aggregates,
    payloads,
    quotas,
    keyring,
    logger,
    holder: node_id,
    hasEarlierKeys,
    isGone: (holder) => liveness === null || liveness.isLost(holder),
    stopping,
  })
