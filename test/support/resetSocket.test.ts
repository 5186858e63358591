import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import * as assert from 'uvu/assert'
import { resetSocket } from './resetSocket.ts'
import { suite } from './suite.ts'

const sockets = suite('reset sockets')

/** Resolves after an error too, which a reset may report. */
const closing = (socket: Socket): Promise<void> =>
  new Promise((resolve) => {
    socket.on('error', () => {}).on('close', () => resolve())
  })

const reset = async (before: (socket: Socket) => void): Promise<void> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').resume()
  const [[socket]] = (await Promise.all([once(server, 'connection'), once(client, 'connect')])) as [
    [Socket],
    unknown,
  ]
  const closed = Promise.all([client, socket].map(closing))
  before(socket)
  resetSocket(socket)
  assert.ok(socket.destroyed)
  await closed
  server.close()
}

sockets('close', () => reset(() => {}))

sockets('close also while their own end is under way', () => reset((socket) => socket.end()))

sockets.run()
