import { get, createServer, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import * as assert from 'uvu/assert'
import { repliesIn, UnreadReplies } from '../../src/api/http/unreadReplies.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const MIB = 1 << 20
/** More than the kernel takes from a process. */
const REPLY = 'x'.repeat(8 * MIB)
/** Room for five replies and their headers. */
const MAX = 44 * MIB

interface Opened {
  server: Server
  closed: Socket[]
  clients: Socket[]
}

const unread = suite<Opened>('replies that clients do not read')

unread.before.each(async (context) => {
  context.closed = []
  context.clients = []
  const replies = new UnreadReplies({ max: MAX, onClosed: (socket) => context.closed.push(socket) })
  context.server = createServer({ ServerResponse: repliesIn(replies) }, (_, response) => response.end(REPLY))
  await new Promise<void>((resolve) => context.server.listen(0, '127.0.0.1', resolve))
})
unread.after.each(({ server, clients }) => {
  for (const client of clients) client.destroy()
  server.closeAllConnections()
  server.close()
})

const portOf = ({ server }: Opened) => (server.address() as AddressInfo).port

/** Requests and never reads. */
const ask = (context: Opened, requests = 1, localAddress = '127.0.0.1'): Socket => {
  const client = connect({ port: portOf(context), host: '127.0.0.1', localAddress }, () =>
    client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(requests)),
  )
  client.on('error', () => {}).pause()
  context.clients.push(client)
  return client
}

const connectionsOf = ({ server }: Opened): Promise<number> =>
  new Promise((resolve) => server.getConnections((_, count) => resolve(count)))

unread('take a bounded memory: more connections are closed', async (context) => {
  for (let n = 0; n < 12; n++) ask(context)
  await until(() => context.closed.length === 7)
  await until(async () => (await connectionsOf(context)) === 5)
  assert.ok(context.closed.every(({ destroyed }) => destroyed))
})

unread('count also while they wait behind another reply of their connection', async (context) => {
  ask(context, 8)
  await until(() => context.closed.length > 0)
  await until(async () => (await connectionsOf(context)) === 0)
})

unread('cost the network with the most of them its connections, and no other client', async (context) => {
  ask(context, 1, '127.0.0.2')
  await until(async () => (await connectionsOf(context)) === 1)
  for (let n = 0; n < 12; n++) ask(context)
  await until(() => context.closed.length === 8)
  assert.ok(context.closed.every(({ remoteAddress }) => remoteAddress !== '127.0.0.2'))
})

unread('do not concern clients that read', async (context) => {
  const read = (): Promise<number> =>
    new Promise((resolve, reject) => {
      const options = { port: portOf(context), host: '127.0.0.1', agent: false }
      get(options, (reply) => {
        let bytes = 0
        reply.on('data', (data: Buffer) => (bytes += data.length))
        reply.on('end', () => resolve(bytes))
        reply.on('error', reject)
      }).on('error', reject)
    })
  for (let n = 0; n < 20; n++) assert.is(await read(), REPLY.length)
  assert.equal(context.closed, [])
})

unread.run()
