import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { buffer } from 'node:stream/consumers'
import * as assert from 'uvu/assert'
import { GatheredMessage } from '../../src/api/http/gatheredMessage.ts'
import { suite } from '../support/suite.ts'

const received = Promise.withResolvers<IncomingMessage>()
const server = createServer({ IncomingMessage: GatheredMessage }, received.resolve)
server.listen(0, '127.0.0.1')
await once(server, 'listening')

const gathered = suite('a body in chunks of one byte')
gathered.after(() => server.closeAllConnections())
gathered.after(() => void server.close())

gathered('is read in few chunks, each byte once and in order', async () => {
  const bytes = Buffer.from(Array.from({ length: 200_000 }, (_, n) => n % 251))
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n')
  socket.write(
    Buffer.concat([...bytes].flatMap((byte) => [Buffer.from('1\r\n'), Buffer.of(byte), Buffer.from('\r\n')])),
  )
  socket.write('0\r\n\r\n')
  const request = await received.promise
  let chunks = 0
  request.on('data', () => chunks++)
  assert.equal(await buffer(request), bytes)
  assert.ok(chunks < 1000, `${chunks} chunks`)
  socket.destroy()
})

gathered.run()
