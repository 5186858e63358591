import { clock } from '../clock.ts'
import type { Credential } from './credential.ts'

/** A streamed reply that stays open after its request was admitted. */
export interface OpenReply {
  readonly credential: Credential
  /** Aborts when the reply has ended. */
  readonly gone: AbortSignal
  /** Whether a request with this credential would be admitted now. */
  mayStill(credential: Credential): Promise<boolean>
  end(): void
}

/** The longest time that a timer can wait. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** The open streams of this node, by the API key of their credentials. Each ends when its credential expires. */
export class OpenReplies {
  readonly #byApiKey = new Map<string, Set<OpenReply>>()
  readonly #timers = new Map<OpenReply, NodeJS.Timeout>()

  add(reply: OpenReply): void {
    if (reply.gone.aborted) return
    const { api_key_id, expires } = reply.credential
    const replies = this.#byApiKey.get(api_key_id) ?? new Set()
    this.#byApiKey.set(api_key_id, replies.add(reply))
    this.expire(reply, expires)
    const over = () => {
      this.expire(reply, Infinity)
      replies.delete(reply)
      if (replies.size === 0 && this.#byApiKey.get(api_key_id) === replies) this.#byApiKey.delete(api_key_id)
    }
    reply.gone.addEventListener('abort', over, { once: true })
  }

  /** Ends the reply at the time in milliseconds since 1970, instead of at an earlier set one. */
  expire(reply: OpenReply, expires: number): void {
    clearTimeout(this.#timers.get(reply))
    this.#timers.delete(reply)
    const left = expires - clock.now()
    if (reply.gone.aborted || left >= LONGEST_TIMER_MS) return
    this.#timers.set(
      reply,
      setTimeout(() => reply.end(), Math.max(0, left)),
    )
  }

  /** The open streams of the API key and of the credentials that it issued, by credential id. */
  under(api_key_id: string): ReadonlyMap<string, readonly OpenReply[]> {
    return Map.groupBy(this.#byApiKey.get(api_key_id) ?? [], ({ credential }) => credential.id)
  }
}
