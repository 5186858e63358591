import Type from 'typebox'
import { fact, Id, PayloadRef, Time } from './scalars.ts'

/**
 * Somebody works on a request that carries an `Idempotency-Key`. `fingerprint` is a MAC of what was asked, so that
 * another request under the same key can be told; `holder` is the process that works. `attempt` counts from 1: when the
 * holder died, another one goes on as the next attempt, with the same `claim_id`, from which the ids of what the request
 * makes are derived.
 */
export const RequestClaimed = fact('RequestClaimed', {
  claim_id: Id,
  attempt: Type.Integer(),
  fingerprint: Type.String(),
  holder: Id,
  at: Time,
  /** From then on the key is free. */
  until: Time,
})

/** The answer that everybody gets from now on: sealed, since it may hold a token (I6). */
export const RequestAnswered = fact('RequestAnswered', {
  claim_id: Id,
  attempt: Type.Integer(),
  sealed: Type.Optional(Type.String()),
  sealed_ref: Type.Optional(PayloadRef),
  until: Time,
})

/** There was no answer to keep: the request may be sent again. */
export const RequestReleased = fact('RequestReleased', { claim_id: Id, attempt: Type.Integer() })
