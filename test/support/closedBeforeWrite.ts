import net, { type Socket } from 'node:net'

export interface ClosedBeforeWrite {
  /** Resolves when the connection was closed. */
  readonly closed: Promise<void>
  /** Lets later connections be. */
  stop(): void
}

/**
 * Closes one of the connections that this process opens to a port, in the moment of one of its writes; both are counted
 * from 1. The end of the other side arrives in such a moment now and then: the socket is destroyed without an error, and
 * has not yet said so.
 */
export const closeBeforeWrite = (
  port: number,
  { connection, write }: { readonly connection: number; readonly write: number },
): ClosedBeforeWrite => {
  const { createConnection } = net
  const closed = Promise.withResolvers<void>()
  const prepare = (socket: Socket): void => {
    const original = socket.write.bind(socket) as (...args: unknown[]) => boolean
    let writes = 0
    socket.write = (...args: unknown[]) => {
      if (++writes === write) {
        socket.destroy()
        closed.resolve()
      }
      return original(...args)
    }
  }
  let connections = 0
  net.createConnection = ((...args: Parameters<typeof createConnection>) => {
    const socket = createConnection(...args)
    const [options] = args as unknown as [{ port?: number }]
    if (options.port === port && ++connections === connection) prepare(socket)
    return socket
  }) as typeof createConnection
  return { closed: closed.promise, stop: () => void (net.createConnection = createConnection) }
}
