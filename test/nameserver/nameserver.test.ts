import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import { connect } from 'node:net'
import * as assert from 'uvu/assert'
import { type Nameserver, openNameserver } from '../../src/nameserver/openNameserver.ts'
import { CODE, parseQuery } from '../../src/nameserver/message.ts'
import { messageOf } from '../../src/errors.ts'
import { randomOf } from '../support/randomOf.ts'
import { suite } from '../support/suite.ts'

const ORIGIN = 'acme.svc.test'
const values = new Map<string, readonly string[]>([
  ['one', ['a'.repeat(43)]],
  ['two', ['first', 'second']],
  ['idle', []],
])
const zone = { origin: ORIGIN, server: 'ns.svc.test', valuesOf: (label: string) => values.get(label) ?? null }

const dns = suite<{ server: Nameserver; resolver: Resolver }>('the name server of challenges')
dns.before(async (context) => {
  context.server = await openNameserver({ host: '127.0.0.1', port: 0, zone })
  context.resolver = new Resolver({ timeout: 30_000, tries: 1 })
  context.resolver.setServers([`127.0.0.1:${context.server.port}`])
})
dns.after(({ server }) => server.close())

const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'found',
    (error: unknown) => (error as NodeJS.ErrnoException).code ?? '',
  )

dns('answers with the values of a challenge, in any case of the name', async ({ resolver }) => {
  assert.equal(await resolver.resolveTxt(`one.${ORIGIN}`), [['a'.repeat(43)]])
  assert.equal(await resolver.resolveTxt(`TWO.Acme.SVC.test`), [['first'], ['second']])
})
dns('knows that a name has no such record, or does not exist', async ({ resolver }) => {
  assert.is(await codeOf(resolver.resolveTxt(`idle.${ORIGIN}`)), 'ENODATA')
  assert.is(await codeOf(resolver.resolve4(`one.${ORIGIN}`)), 'ENODATA')
  assert.is(await codeOf(resolver.resolveTxt(`none.${ORIGIN}`)), 'ENOTFOUND')
  assert.is(await codeOf(resolver.resolveTxt(`deep.one.${ORIGIN}`)), 'ENOTFOUND')
})
dns('is the authority of its zone', async ({ resolver }) => {
  assert.equal(await resolver.resolveNs(ORIGIN), ['ns.svc.test'])
  const { nsname, hostmaster, minttl } = await resolver.resolveSoa(ORIGIN)
  assert.equal([nsname, hostmaster, minttl], ['ns.svc.test', `hostmaster.${ORIGIN}`, 1])
})
dns('refuses names of other zones', async ({ resolver }) => {
  for (const name of ['example.com', `not${ORIGIN}`, 'svc.test'])
    assert.is(await codeOf(resolver.resolveTxt(name)), 'EREFUSED')
})

/** A query for the TXT record of a name. */
const queryOf = (name: string, { flags = 0x0100, edns = false } = {}): Buffer => {
  const labels = name.split('.').flatMap((label) => [Buffer.from([label.length]), Buffer.from(label)])
  const head = Buffer.from([0xab, 0xcd, flags >> 8, flags & 0xff, 0, 1, 0, 0, 0, 0, 0, edns ? 1 : 0])
  const opt = edns ? Buffer.from([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]) : Buffer.alloc(0)
  return Buffer.concat([head, ...labels, Buffer.from([0, 0, 16, 0, 1]), opt])
}

dns('answers over TCP, also several queries in pieces', async ({ server }) => {
  const socket = connect(server.port, '127.0.0.1')
  const query = queryOf(`One.${ORIGIN}`)
  const framed = Buffer.concat([Buffer.from([0, query.length]), query])
  const sent = Buffer.concat([framed, framed])
  socket.write(sent.subarray(0, 1))
  socket.write(sent.subarray(1, 40))
  socket.write(sent.subarray(40))
  let received = Buffer.alloc(0)
  const first = () => (received.length >= 2 ? received.readUInt16BE(0) + 2 : Infinity)
  for await (const chunk of socket) {
    received = Buffer.concat([received, chunk as Buffer])
    if (received.length >= first() * 2) break
  }
  const reply = received.subarray(2, first())
  assert.equal(received.subarray(first() + 2), reply)
  assert.is(reply.readUInt16BE(0), 0xabcd)
  assert.is(reply.readUInt16BE(6), 1)
  assert.ok(reply.includes('a'.repeat(43)))
  assert.ok(reply.includes('One'), 'the case of the question')
})

dns('answers no replies, so that no loop begins, and refuses other operations', async ({ server }) => {
  const socket = createSocket('udp4')
  const ask = async (query: Buffer): Promise<Buffer> => {
    socket.send(query, server.port, '127.0.0.1')
    const [reply] = (await once(socket, 'message')) as [Buffer]
    return reply
  }
  socket.send(queryOf(`one.${ORIGIN}`, { flags: 0x8180 }), server.port, '127.0.0.1')
  socket.send(Buffer.from('short'), server.port, '127.0.0.1')
  const update = await ask(queryOf(`one.${ORIGIN}`, { flags: 0x2800 }))
  assert.is(update.readUInt16BE(2) & 0xf, CODE.NOT_IMPLEMENTED)
  const plain = await ask(queryOf(`one.${ORIGIN}`))
  const extended = await ask(queryOf(`one.${ORIGIN}`, { edns: true }))
  assert.equal([plain.readUInt16BE(10), extended.readUInt16BE(10)], [0, 1])
  socket.close()
})

dns('survives any bytes', () => {
  const random = randomOf(7)
  for (let round = 0; round < 20_000; round++) {
    const bytes = queryOf(`one.${ORIGIN}`, { edns: true })
    const cut = bytes.subarray(0, random(bytes.length + 1))
    for (let i = 0; i < 4; i++) cut[random(cut.length)] = random(256)
    parseQuery(cut)
  }
})

/** The UDP socket of a name server. */
const udpSocketOf = async (open: () => Promise<Nameserver>) => {
  const sockets: UdpSocket[] = []
  const onSocket = (message: unknown) => sockets.push((message as { socket: UdpSocket }).socket)
  subscribe('udp.socket', onSocket)
  const server = await open()
  unsubscribe('udp.socket', onSocket)
  const [socket] = sockets
  assert.ok(socket)
  return { server, socket }
}

dns('does not answer a forged sender with port 0, to which nothing can be sent', async () => {
  const { server, socket } = await udpSocketOf(() => openNameserver({ host: '127.0.0.1', port: 0, zone }))
  const query = queryOf(`one.${ORIGIN}`)
  const sender = { address: '127.0.0.1', family: 'IPv4', port: 0, size: query.length }
  socket.emit('message', query, sender)
  await server.close()
})

dns('disconnects a client that reads no replies', async ({ server }) => {
  const query = queryOf(`one.${ORIGIN}`)
  const framed = Buffer.concat([Buffer.from([0, query.length]), query])
  const flood = Buffer.concat(Array.from({ length: (16 << 20) / framed.length }, () => framed))
  const socket = connect(server.port, '127.0.0.1').pause()
  const failure = await new Promise<unknown>((resolve) => {
    socket.on('error', resolve)
    socket.write(flood, resolve)
  })
  socket.destroy()
  assert.match(String(failure), /EPIPE|ECONNRESET/)
})

dns('reports a port that is taken', async ({ server }) => {
  const again = openNameserver({ host: '127.0.0.1', port: server.port, zone })
  assert.match(await again.then(() => '', messageOf), /set SVC_ACME_DNS_PORT/)
})

dns.run()
