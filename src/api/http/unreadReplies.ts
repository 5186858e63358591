import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { networkOf } from '../../ports/trustedProxies.ts'

/** Bytes of complete replies that wait in this process because their clients do not read. */
const MAX_UNREAD = 64 << 20

/**
 * Bounds the memory of replies that were written at once, such as lists and documents, while their clients do not read them.
 * U1: above the limit, connections of the network with the most unread bytes are closed, the largest reply first.
 * Replies that are written in pieces wait for their clients.
 */
export class UnreadReplies {
  readonly #max: number
  readonly #onClosed: (socket: Socket) => void
  readonly #replies = new Set<ServerResponse>()

  constructor({ max = MAX_UNREAD, onClosed }: { max?: number; onClosed: (socket: Socket) => void }) {
    this.#max = max
    this.#onClosed = onClosed
  }

  /** A reply was written to its end. */
  add(reply: ServerResponse): void {
    if (reply.writableLength === 0) return
    this.#replies.add(reply)
    reply.once('close', () => this.#replies.delete(reply))
    for (let unread = bytesOf(this.#replies); unread > this.#max;) {
      const largest = this.#largest()
      unread -= largest.writableLength
      this.#replies.delete(largest)
      const { socket } = largest.req
      this.#onClosed(socket)
      socket.destroy()
    }
  }

  #largest(): ServerResponse {
    const byNetwork = Map.groupBy(this.#replies, ({ req }) => networkOf(req.socket.remoteAddress ?? ''))
    const most = [...byNetwork.values()].reduce((a, b) => (bytesOf(b) > bytesOf(a) ? b : a))
    return most.reduce((a, b) => (b.writableLength > a.writableLength ? b : a))
  }
}

const bytesOf = (replies: Iterable<ServerResponse>): number => {
  let sum = 0
  for (const { writableLength } of replies) sum += writableLength
  return sum
}

/** The class of the replies that `unread` bounds. */
export const repliesIn = (unread: UnreadReplies) =>
  class<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
    override end(...written: unknown[]): this {
      super.end(...(written as Parameters<ServerResponse['end']>))
      unread.add(this)
      return this
    }
  }
