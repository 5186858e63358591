import type { RequestListener } from 'node:http'
import type { Socket } from 'node:net'

/** Requests of one connection whose replies are not complete. */
export const MAX_UNANSWERED = 8

/**
 * Closes a connection with more requests without a reply. Node parses a thousand of them in one turn and keeps all their
 * replies in memory. The replies come in order, so none can refuse the last request before the first one is done.
 */
export const pipelined = (handle: RequestListener, onExcess: (socket: Socket) => void): RequestListener => {
  const unanswered = new WeakMap<Socket, number>()
  return (request, response) => {
    const { socket } = request
    if (socket.destroyed) return // the parser continues with what has arrived
    const count = (unanswered.get(socket) ?? 0) + 1
    if (count > MAX_UNANSWERED) {
      socket.destroy()
      return onExcess(socket)
    }
    unanswered.set(socket, count)
    response.once('close', () => unanswered.set(socket, (unanswered.get(socket) ?? 1) - 1))
    handle(request, response)
  }
}
