import { USE_RECORDED_EVERY_MS } from '../events/credential.ts'
import type { EventOf } from '../events/index.ts'
import { type Decider, type Folded, foreign } from './decider.ts'

/** `now`: ISO 8601 UTC. */
export interface UseServiceKey {
  readonly type: 'UseServiceKey'
  readonly service_key_id: string
  readonly api_key_id: string
  readonly now: string
}

/**
 * The uses of one service key on one day, at most one fact a minute. They have streams of their own, so that no command about
 * the key reads them.
 */
export const keyUse: Decider<{ readonly used: number }, UseServiceKey, EventOf<'ServiceKeyUsed'>> = {
  initial: () => ({ used: -Infinity }),

  decide({ service_key_id, api_key_id, now }, { used }) {
    if (Date.parse(now) < used + USE_RECORDED_EVERY_MS) return []
    return [{ type: 'ServiceKeyUsed', service_key_id, api_key_id, at: now }]
  },

  evolve: (_, { event }: Folded<EventOf<'ServiceKeyUsed'>>) =>
    event.type === 'ServiceKeyUsed' ? { used: Date.parse(event.at) } : foreign(event.type),
}
