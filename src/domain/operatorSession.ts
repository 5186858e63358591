import type { EventOf } from '../events/index.ts'
import { type Decider, type Folded, foreign } from './decider.ts'

/** `now`: ISO 8601 UTC. */
export interface EndOperatorSession {
  readonly type: 'EndOperatorSession'
  readonly session_id: string
  readonly now: string
}

/** A session of the operator in the dashboard. Its cookie proves that it began, so only a sign-out is stored. */
export const operatorSession: Decider<
  { readonly isEnded: boolean },
  EndOperatorSession,
  EventOf<'OperatorSignedOut'>
> = {
  initial: () => ({ isEnded: false }),

  decide: ({ session_id, now: at }, { isEnded }) =>
    isEnded ? [] : [{ type: 'OperatorSignedOut', session_id, at }],

  evolve: (_, { event }: Folded<EventOf<'OperatorSignedOut'>>) =>
    event.type === 'OperatorSignedOut' ? { isEnded: true } : foreign(event.type),
}
