import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { tempDir } from './tempDir.ts'

/** Two connected sockets, as the pipe between the service and a child. */
export const socketPair = async (): Promise<readonly [Socket, Socket]> => {
  const path = join(tempDir(), 'pair.sock')
  const server = createServer().listen(path)
  await once(server, 'listening')
  const one = connect(path)
  const [other] = (await once(server, 'connection')) as [Socket]
  server.close()
  return [one, other]
}
