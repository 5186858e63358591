import type { Socket } from 'node:net'

/**
 * Resets a connection. A reset while its own end is under way fails in libuv, and Node then forgets the handle: the socket never
 * closes, and the process spins at its exit (Node 26). Such a socket is destroyed instead.
 */
export const resetSocket = (socket: Socket): void => {
  if (socket.writableEnded && !socket.writableFinished) socket.destroy()
  else socket.resetAndDestroy()
}
