import type { EventOf } from '../events/index.ts'
import type { PayloadFields } from '../events/payload.ts'
import { type Decider, type Folded, foreign } from './decider.ts'
import { reusedKey } from '../events/idempotencyKey.ts'

/** The state of an `Idempotency-Key`: its request has a holder that works on it, or an answer at a revision. */
export type RequestState =
  | { readonly status: 'free' }
  | (Claim & { readonly status: 'claimed'; readonly holder: string; readonly at: string })
  | (Claim & { readonly status: 'released' })
  | (Claim & { readonly status: 'answered'; readonly revision: number })

interface Claim {
  readonly claim_id: string
  readonly attempt: number
  readonly fingerprint: string
  readonly sorted_fingerprint?: string
  readonly until: string
  /** The stream of the run that first used the key. */
  readonly stream_id?: string
}

export type RequestCommand =
  | {
      readonly type: 'ClaimRequest'
      /** The id of a new claim; a claim that continues an earlier one of the same request keeps its id. */
      readonly claim_id: string
      readonly fingerprint: string
      /** That of the same request with the keys of its objects in order, if it differs. */
      readonly sorted_fingerprint?: string | undefined
      /** The name of the key in refusals. */
      readonly keyName: string
      readonly holder: string
      /** ISO 8601 UTC: a claim that is valid until then is over. */
      readonly now: string
      /** When the claim begins. */
      readonly at: string
      readonly until: string
      /** The stream of the run that uses the key; a claim that continues an earlier one keeps that of the first. */
      readonly stream_id?: string | undefined
      /** An attempt whose holder is known to be dead, or whose answer was erased: this claim replaces it. */
      readonly gone?: number | undefined
    }
  | {
      readonly type: 'AnswerRequest'
      readonly attempt: number
      readonly answer: PayloadFields<'sealed', string>
      readonly until: string
    }
  | { readonly type: 'ReleaseRequest'; readonly attempt: number }

type RequestEvent = EventOf<'RequestClaimed' | 'RequestAnswered' | 'RequestReleased'>

/** The rules of an idempotency key. Each key has its own stream, and the append is the claim: one node does the work. */
export const request: Decider<RequestState, RequestCommand, RequestEvent> = {
  initial: () => ({ status: 'free' }),

  decide(command, state) {
    switch (command.type) {
      case 'ClaimRequest': {
        const { fingerprint, sorted_fingerprint, keyName, holder, now, at, until, gone } = command
        const claimed = (
          { claim_id, stream_id }: typeof command | Claim,
          attempt: number,
        ): RequestEvent[] => [
          {
            type: 'RequestClaimed',
            claim_id,
            attempt,
            fingerprint,
            ...(sorted_fingerprint !== undefined && { sorted_fingerprint }),
            holder,
            at,
            until,
            ...(stream_id !== undefined && { stream_id }),
          },
        ]
        if (state.status === 'free') return claimed(command, 1)
        if (state.until <= now) return claimed(command, state.attempt + 1)
        if (!isSame(state, command)) throw reusedKey(keyName)
        if (state.status === 'released' || state.attempt === gone) return claimed(state, state.attempt + 1)
        return []
      }
      case 'AnswerRequest':
        if (state.status !== 'claimed' || state.attempt !== command.attempt) return [] // taken over
        return [
          {
            type: 'RequestAnswered',
            claim_id: state.claim_id,
            attempt: state.attempt,
            ...command.answer,
            until: command.until,
          },
        ]
      case 'ReleaseRequest':
        if (state.status !== 'claimed' || state.attempt !== command.attempt) return []
        return [{ type: 'RequestReleased', claim_id: state.claim_id, attempt: state.attempt }]
      default:
        return command satisfies never
    }
  },

  evolve(state, { event, revision }: Folded<RequestEvent>) {
    switch (event.type) {
      case 'RequestClaimed': {
        const { type: _, ...claim } = event
        return { status: 'claimed', ...claim }
      }
      case 'RequestAnswered':
        if (state.status === 'free') return state
        return { ...claimOf(state), status: 'answered', until: event.until, revision }
      case 'RequestReleased':
        if (state.status === 'free') return state
        return { ...claimOf(state), status: 'released' }
      default:
        return foreign(event)
    }
  },
}

type Fingerprints = { readonly fingerprint: string; readonly sorted_fingerprint?: string | undefined }

/** A claim of a former version has no sorted fingerprint: its request is repeated in the same order. */
const isSame = (one: Fingerprints, other: Fingerprints): boolean =>
  one.fingerprint === other.fingerprint ||
  (one.sorted_fingerprint ?? one.fingerprint) === (other.sorted_fingerprint ?? other.fingerprint)

const claimOf = ({ claim_id, attempt, fingerprint, sorted_fingerprint, until, stream_id }: Claim): Claim => ({
  claim_id,
  attempt,
  fingerprint,
  ...(sorted_fingerprint !== undefined && { sorted_fingerprint }),
  until,
  ...(stream_id !== undefined && { stream_id }),
})
