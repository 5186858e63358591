import Type from 'typebox'
import { fact, Id, PayloadRef, Time } from './scalars.ts'

/**
 * The process `holder` works on a request with an `Idempotency-Key`. `fingerprint` is a MAC of the request, so that
 * another request with the same key is detected; `sorted_fingerprint` is that of the request with the keys of its objects in
 * order, if it differs. `attempt` counts from 1: after the death of a holder, the next attempt
 * has the same `claim_id`. The ids of what the request creates derive from it. `stream_id` is the svc stream of the run that
 * first used the key: each attempt publishes there.
 */
export const RequestClaimed = fact('RequestClaimed', {
  claim_id: Id,
  attempt: Type.Integer(),
  fingerprint: Type.String(),
  sorted_fingerprint: Type.Optional(Type.String()),
  holder: Id,
  at: Time,
  /** The key is free from this time on. */
  until: Time,
  stream_id: Type.Optional(Id),
})

/** The answer to every repetition of the request: sealed, because it may contain a token (I6). */
export const RequestAnswered = fact('RequestAnswered', {
  claim_id: Id,
  attempt: Type.Integer(),
  sealed: Type.Optional(Type.String()),
  sealed_ref: Type.Optional(PayloadRef),
  until: Time,
})

/** The request has no answer to store: it may be sent again. */
export const RequestReleased = fact('RequestReleased', { claim_id: Id, attempt: Type.Integer() })
