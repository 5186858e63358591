import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import * as assert from 'uvu/assert'
import { clock } from '../../src/clock.ts'
import { type FaultProxy, openFaultProxy } from './faultProxy.ts'
import { suite } from './suite.ts'
import { until } from './until.ts'

interface Context {
  engine: Server
  /** The connections at the engine: the direct one first, then those of the proxy. */
  sockets: Socket[]
  /** All received data of all clients. */
  seen: string
  /** A connection without the proxy. */
  direct: Socket
  proxy: FaultProxy
  clients: Socket[]
}

const proxies = suite<Context>('fault proxy')

proxies.before.each(async (context) => {
  context.sockets = []
  context.clients = []
  context.seen = ''
  context.engine = createServer({ allowHalfOpen: true }, (socket) => {
    context.sockets.push(socket)
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      context.seen += bytes.toString('latin1')
      socket.write(bytes)
    })
    socket.on('end', () => socket.end())
  }).listen(0, '127.0.0.1')
  await once(context.engine, 'listening')
  const { port } = context.engine.address() as AddressInfo
  context.direct = connect(port, '127.0.0.1')
  await until(() => context.sockets.length === 1)
  context.proxy = await openFaultProxy({ host: '127.0.0.1', port })
})

proxies.after.each(async ({ engine, sockets, clients, direct, proxy }) => {
  for (const socket of [...clients, ...sockets, direct]) socket.destroy()
  engine.close()
  await proxy.close()
})

/** A connection through the proxy, and its received data. */
const open = async ({ proxy, clients }: Context) => {
  const socket = connect({ port: proxy.port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
  clients.push(socket)
  const got = { socket, text: '', ended: false, failure: '' }
  socket.on('data', (bytes) => void (got.text += bytes.toString('latin1')))
  socket.on('end', () => void (got.ended = true))
  socket.on('error', (error: NodeJS.ErrnoException) => void (got.failure = error.code ?? ''))
  await until(() => !socket.connecting)
  return got
}

/** Waits for round trips without the proxy, in which all data that can pass has passed. */
const settle = async ({ direct }: Context, times = 50) => {
  for (let left = times; left > 0; left--) {
    direct.write('.')
    await once(direct, 'data')
  }
}

proxies('passes all data in order in both directions, and the end', async (context) => {
  const client = await open(context)
  const bytes = randomBytes(4 << 20)
  client.socket.end(bytes)
  await until(() => client.ended)
  assert.ok(client.text === bytes.toString('latin1'))
})

proxies('replaces the host of a URL and nothing else', async ({ proxy, engine }) => {
  const { port } = engine.address() as AddressInfo
  const through = (hosts: string) => proxy.url(`s3://key:p%40ss@${hosts}/bucket/a?region=b&tls=false`)
  assert.is(
    through(`127.0.0.1:${port}`),
    `s3://key:p%40ss@127.0.0.1:${proxy.port}/bucket/a?region=b&tls=false`,
  )
  assert.is(
    through(`one:1,127.0.0.1:${port},two`),
    `s3://key:p%40ss@one:1,127.0.0.1:${proxy.port},two/bucket/a?region=b&tls=false`,
  )
  assert.is(proxy.url(`esdb://127.0.0.1:${port}?tls=false`), `esdb://127.0.0.1:${proxy.port}?tls=false`)
  assert.throws(
    () => proxy.url('redis://user:secret@elsewhere:1/0'),
    (error: Error) => !/secret/.test(error.message),
  )
})

proxies('refuses: open connections are reset and new ones refused until it heals', async (context) => {
  const before = await open(context)
  context.proxy.refuse()
  await until(() => before.failure)
  assert.is(before.failure, 'ECONNRESET')
  const meanwhile = await open(context)
  assert.is(meanwhile.failure, 'ECONNREFUSED')
  await context.proxy.heal()
  const after = await open(context)
  after.socket.write('back')
  await until(() => after.text === 'back')
})

proxies('keeps all data in a blackhole, and delivers it in order when it heals', async (context) => {
  const before = await open(context)
  before.socket.write('a')
  await until(() => before.text === 'a')
  context.proxy.blackhole()
  const meanwhile = await open(context)
  before.socket.write('b')
  meanwhile.socket.write('x')
  context.sockets[1]?.write('A')
  await settle(context)
  before.socket.end('c')
  await settle(context)
  assert.is(context.seen.replaceAll('.', ''), 'a')
  assert.equal([before.text, before.ended, before.failure], ['a', false, ''])
  assert.equal([meanwhile.text, meanwhile.failure], ['', ''])
  await context.proxy.heal()
  await until(() => before.ended && meanwhile.text === 'x')
  assert.is(before.text, 'aAbc')
})

proxies('hides the end of the engine in a blackhole, and shows it afterwards', async (context) => {
  const client = await open(context)
  client.socket.write('a')
  await until(() => client.text === 'a')
  context.proxy.blackhole()
  context.sockets[1]?.resetAndDestroy()
  await settle(context)
  assert.equal([client.ended, client.failure], [false, ''])
  await context.proxy.heal()
  await until(() => client.failure === 'ECONNRESET')
})

proxies('resets open and new connections on both sides until it heals', async (context) => {
  const before = await open(context)
  before.socket.write('a')
  await until(() => before.text === 'a')
  const engineSide = context.sockets[1]
  context.proxy.reset()
  await until(() => before.failure === 'ECONNRESET' && engineSide?.closed)
  const meanwhile = await open(context)
  await until(() => meanwhile.failure === 'ECONNRESET')
  await context.proxy.heal()
  const after = await open(context)
  after.socket.write('back')
  await until(() => after.text === 'back')
})

proxies('delays each direction, not each chunk', async (context) => {
  const client = await open(context)
  client.socket.write('warm')
  await until(() => client.text === 'warm')
  context.proxy.delay(100)
  const started = clock.monotonic()
  for (let i = 0; i < 300; i++) {
    client.socket.write('.')
    await settle(context, 1)
  }
  await until(() => client.text.length === 304)
  const ms = clock.monotonic() - started
  assert.ok(ms >= 200, `Expected at least 200 ms, got ${ms}`)
  assert.ok(ms < 300 * 100, `Expected less than 300 delays, got ${ms} ms`)
})

proxies('keeps data in transit in a blackhole', async (context) => {
  const client = await open(context)
  context.proxy.delay(3_600_000)
  client.socket.write('late')
  await settle(context)
  context.proxy.blackhole()
  await settle(context)
  assert.is(context.seen.replaceAll('.', ''), '')
  await context.proxy.heal()
  await until(() => client.text === 'late')
})

proxies('delivers delayed data at once when healed', async (context) => {
  const client = await open(context)
  context.proxy.delay(3_600_000)
  client.socket.end('late')
  await settle(context)
  assert.is(client.text, '')
  await context.proxy.heal()
  await until(() => client.ended)
  assert.is(client.text, 'late')
})

proxies('ends only the direction to the client when it half closes', async (context) => {
  const client = await open(context)
  client.socket.write('a')
  await until(() => client.text === 'a')
  context.proxy.halfClose()
  await until(() => client.ended)
  client.socket.write('b')
  await until(() => context.seen.endsWith('b'))
  await settle(context)
  client.socket.end('c')
  await until(() => context.seen.replaceAll('.', '') === 'abc' && client.socket.closed)
  assert.equal([client.text, client.failure], ['a', ''])
  const after = await open(context)
  after.socket.write('whole')
  await until(() => after.text === 'whole')
})

proxies('stops reading when the engine stops reading', async (context) => {
  const client = await open(context)
  client.socket.write('a')
  await until(() => client.text === 'a')
  context.sockets[1]?.pause()
  let taken = 0
  const piece = Buffer.alloc(1 << 16)
  const more = () => void client.socket.write(piece, (error) => error ?? ((taken += piece.length), more()))
  more()
  const other = await open(context)
  for (let round = 1; round <= 3000; round++) {
    other.socket.write('.')
    await once(other.socket, 'data')
  }
  // Loopback buffers of the system take some MiB on each side of the proxy, the proxy itself 1 MiB.
  assert.ok(taken < 32 << 20, `${taken} bytes taken`)
})

proxies('resets connections if no engine listens', async (context) => {
  context.engine.close()
  const client = await open(context)
  await until(() => client.failure === 'ECONNRESET')
})

proxies('closes with open connections and data in transit', async (context) => {
  await open(context)
  context.proxy.delay(3_600_000)
  const late = await open(context)
  late.socket.write('never')
  await settle(context)
  await context.proxy.close()
  assert.is((await open(context)).failure, 'ECONNREFUSED')
})

proxies.run()
