/** Functions that leave connections behind, and the servers at their other end. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer as createHttp, type IncomingMessage } from 'node:http'
import { createSecureServer, type ServerHttp2Stream } from 'node:http2'
import { type AddressInfo, createServer as createTcp, type Server } from 'node:net'
import type { Duplex } from 'node:stream'
import { createServer as createTls } from 'node:tls'
import { certificate, certificateKey } from './localServers.ts'

/** The ways to send over a connection. */
export const KINDS = ['net', 'tls', 'http', 'http2', 'fetch', 'WebSocket'] as const
export type Kind = (typeof KINDS)[number]

/** A module: `leaves` ends with an open connection, whose handlers send `late` whenever something happens. */
export const LEAVING = `
  import { once } from 'node:events'
  import net from 'node:net'
  import tls from 'node:tls'
  import http from 'node:http'
  import http2 from 'node:http2'
  const host = '127.0.0.1'
  const onData = (stream, send) => stream.on('data', () => send('late')).on('error', () => {})
  const writing = (stream) => (text) => stream.write(text)
  const opened = {
    async net(port) {
      const socket = net.connect(port, host)
      onData(socket, writing(socket))
      await once(socket, 'connect')
      return writing(socket)
    },
    async tls(port) {
      const socket = tls.connect({ port, host, rejectUnauthorized: false })
      onData(socket, writing(socket))
      await once(socket, 'secureConnect')
      return writing(socket)
    },
    async http(port) {
      const request = http.request({ port, host, method: 'POST' }).on('error', () => {})
      request.flushHeaders()
      const [reply] = await once(request, 'response')
      onData(reply, writing(request))
      return writing(request)
    },
    async http2(port) {
      const session = http2.connect('https://' + host + ':' + port, { rejectUnauthorized: false }).on('error', () => {})
      const stream = session.request({ ':method': 'POST', ':path': '/' })
      onData(stream, writing(stream))
      await once(stream, 'response')
      return writing(stream)
    },
    async fetch(port) {
      let body
      const stream = new ReadableStream({ start: (controller) => (body = controller) })
      const send = (text) => body.enqueue(new TextEncoder().encode(text))
      send('first')
      const reply = await fetch('http://' + host + ':' + port, { method: 'POST', body: stream, duplex: 'half' })
      void (async () => { for await (const _ of reply.body) send('late') })().catch(() => {})
      return send
    },
    async WebSocket(port) {
      const socket = new WebSocket('ws://' + host + ':' + port)
      socket.onmessage = () => socket.send('late')
      socket.onerror = () => {}
      await new Promise((resolve) => (socket.onopen = resolve))
      return (text) => socket.send(text)
    },
  }
  let over
  let release
  const held = new Promise((resolve) => (release = resolve))
  export const holds = () => held
  export const leaves = async (kind, port) => {
    const send = await opened[kind](port)
    if (kind !== 'fetch') send('first')
    await new Promise(setImmediate) // Node sends it in the next turn
    void new Promise((resolve) => (over = resolve)).then(() => send('late'))
  }
  /** Lets the code of the ended run send, and returns when it would have arrived. */
  export const continues = async (port) => {
    over()
    for (let n = 0; n < 5; n++) await (await fetch('http://' + host + ':' + port)).text()
    release()
  }
`

/** Frames of clients are masked. */
const textOf = (frame: Buffer): string => {
  const mask = frame.subarray(2, 6)
  return Buffer.from(frame.subarray(6).map((byte, i) => byte ^ (mask[i % 4] ?? 0))).toString()
}

const upgrade = (request: IncomingMessage, socket: Duplex): void => {
  const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`
  const accept = createHash('sha1').update(key).digest('base64')
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  )
}

/** Servers that record what arrives, and can send something on every open connection. */
export const openPeers = async () => {
  const received: string[] = []
  const pokes: (() => void)[] = []
  const take = (stream: Duplex | IncomingMessage, poke: () => void, read = String) => {
    stream.on('error', () => {}).on('data', (data: Buffer) => void received.push(read(data)))
    pokes.push(poke)
  }
  const identity = { key: certificateKey, cert: certificate }
  const http = createHttp((request, reply) => {
    if (request.method === 'GET') return reply.end('here')
    reply.flushHeaders()
    take(request, () => void reply.write('x'))
  })
  http.on('upgrade', (request, socket) => {
    upgrade(request, socket)
    take(socket, () => void socket.write(Buffer.from([0x81, 1, 0x78])), textOf as typeof String)
  })
  const http2 = createSecureServer(identity)
  http2.on('stream', (stream: ServerHttp2Stream) => {
    stream.respond()
    take(stream, () => void stream.write('x'))
  })
  const servers: Readonly<Record<Kind, Server>> = {
    net: createTcp((socket) => take(socket, () => void socket.write('x'))),
    tls: createTls(identity, (socket) => take(socket, () => void socket.write('x'))),
    http,
    http2,
    fetch: http,
    WebSocket: http,
  }
  const sockets = new Set<Duplex>()
  for (const server of new Set(Object.values(servers))) {
    server.on('connection', (socket: Duplex) => sockets.add(socket))
    await once(server.listen(0, '127.0.0.1'), 'listening')
  }
  return {
    received,
    portOf: (kind: Kind): number => (servers[kind].address() as AddressInfo).port,
    /** Sends something on every connection. */
    poke: () => {
      for (const poke of pokes) poke()
    },
    close: () => {
      for (const server of new Set(Object.values(servers))) server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

export type Peers = Awaited<ReturnType<typeof openPeers>>
