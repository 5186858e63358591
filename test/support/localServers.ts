import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createSecureServer } from 'node:http2'
import { createServer as createHttps } from 'node:https'
import { type AddressInfo, createServer as createTcp, type Server, type Socket } from 'node:net'
import { createServer as createTls, TLSSocket } from 'node:tls'
import { resetSocket } from './resetSocket.ts'

const TLS = new URL('../fixtures/tls/', import.meta.url)

/** A certificate of `localhost` and 127.0.0.1, signed by itself. */
export const certificate = readFileSync(new URL('cert.pem', TLS), 'utf8')
export const certificateKey = readFileSync(new URL('key.pem', TLS), 'utf8')

export const BIG_BYTES = 8 << 20

const listener: RequestListener = (request, reply) => {
  if (request.url === '/big') return reply.end(Buffer.alloc(BIG_BYTES, 'x'))
  if (request.url?.startsWith('/to?'))
    return reply.writeHead(302, { location: decodeURIComponent(request.url.slice(4)) }).end()
  if (request.url !== '/count') return reply.end(`hello ${request.url}`)
  let bytes = 0
  request.on('data', (chunk: Buffer) => (bytes += chunk.length))
  request.on('end', () => reply.end(String(bytes)))
}

/** Accepts a WebSocket and sends `hi`. */
const upgrade = (key: string, socket: Socket): void => {
  const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  )
  socket.write(Buffer.from([0x81, 2, 0x68, 0x69]))
  socket.on('data', () => socket.end())
}

/** Servers of the usual protocols on 127.0.0.1, and their ports. */
export const openLocalServers = async () => {
  const identity = { key: certificateKey, cert: certificate }
  const http = createServer(listener)
  http.on('upgrade', (request, socket) =>
    upgrade(request.headers['sec-websocket-key'] ?? '', socket as Socket),
  )
  const servers = {
    http,
    https: createHttps(identity, listener),
    http2: createSecureServer(identity, (request, reply) => reply.end(`http ${request.httpVersion}`)),
    echo: createTcp({ allowHalfOpen: true }, (socket) => socket.on('error', () => {}).pipe(socket)),
    secureEcho: createTls(identity, (socket) => socket.on('error', () => {}).pipe(socket)),
    mutual: createTls({ ...identity, requestCert: true, ca: certificate }, (socket) =>
      socket.end(`authorized: ${socket.authorized}`),
    ),
    startTls: createTcp((socket) =>
      socket.once('data', () => {
        socket.write('go')
        const secure = new TLSSocket(socket, { isServer: true, ...identity })
        secure.on('data', (data: Buffer) => secure.end(`secure ${data.toString()}`))
      }),
    ),
    silent: createTcp((socket) => socket.on('error', () => {}).pause()),
    resets: createTcp((socket) => socket.once('data', () => resetSocket(socket))),
  }
  const sockets = new Set<Socket>()
  const entries = Object.entries(servers) as [keyof typeof servers, Server][]
  for (const [, server] of entries) {
    server.on('connection', (socket: Socket) => sockets.add(socket))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  }
  const ports = Object.fromEntries(
    entries.map(([name, server]) => [name, (server.address() as AddressInfo).port]),
  ) as Record<keyof typeof servers, number>
  return {
    ports,
    /** Connections that were accepted so far. */
    get accepted() {
      return sockets.size
    },
    close: () => {
      for (const [, server] of entries) server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
