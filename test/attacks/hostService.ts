import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A service of the host that functions must not reach. It counts connections and requests. */
export const openHostService = async () => {
  let reached = 0
  const server = createServer((_request, reply) => {
    reached++
    reply.end('a secret of the host')
  }).listen(0, '127.0.0.1')
  server.on('connection', () => reached++)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    get reached() {
      return reached
    },
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
