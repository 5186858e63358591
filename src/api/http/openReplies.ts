import { clock } from '../../clock.ts'
import type { Credential } from './credential.ts'

/** A reply that goes on after its request was let in: a stream. */
export interface OpenReply {
  readonly credential: Credential
  /** Aborts when the reply is over. */
  readonly gone: AbortSignal
  /** Whether a request with this credential would be let in now. */
  mayStill(credential: Credential): Promise<boolean>
  end(): void
}

/** Longer than this a timer cannot wait. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** The streams that are open on this node, by the API key of their credentials; each ends when its credential expires. */
export class OpenReplies {
  readonly #byApiKey = new Map<string, Set<OpenReply>>()

  add(reply: OpenReply): void {
    if (reply.gone.aborted) return
    const { api_key_id, expires } = reply.credential
    const replies = this.#byApiKey.get(api_key_id) ?? new Set()
    this.#byApiKey.set(api_key_id, replies.add(reply))
    const left = expires - clock.now()
    const timer = left < LONGEST_TIMER_MS ? setTimeout(() => reply.end(), Math.max(0, left)) : undefined
    const over = () => {
      clearTimeout(timer)
      replies.delete(reply)
      if (replies.size === 0 && this.#byApiKey.get(api_key_id) === replies) this.#byApiKey.delete(api_key_id)
    }
    reply.gone.addEventListener('abort', over, { once: true })
  }

  /** Those of the API key and of what was issued under it, by the id of their credential. */
  under(api_key_id: string): ReadonlyMap<string, readonly OpenReply[]> {
    return Map.groupBy(this.#byApiKey.get(api_key_id) ?? [], ({ credential }) => credential.id)
  }
}
