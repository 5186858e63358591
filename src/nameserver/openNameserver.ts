import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, createServer, isIPv6, type Server, type Socket } from 'node:net'
import { AppError } from '../errors.ts'
import { CODE, parseQuery, refusalTo } from './message.ts'
import { answer, type Zone } from './zone.ts'

/** A connection ends after this time: resolvers use it for one query. */
const TCP_TIMEOUT_MS = 5000
const MAX_TCP_CONNECTIONS = 100
/** A query has a name of at most 255 bytes and options. */
const MAX_QUERY_BYTES = 4096
/** Replies of one connection that its client has not read; a client with more of them is disconnected. */
const MAX_UNREAD_BYTES = 64 << 10

export interface Nameserver {
  readonly port: number
  close(): Promise<void>
}

/**
 * Serves one zone over UDP and TCP. Each answer comes from memory and is hardly longer than its question, so the server is
 * no use for floods of a third party. Rejects with `unavailable` when the port is not available.
 */
export const openNameserver = async ({
  host,
  port,
  zone,
}: {
  readonly host: string
  readonly port: number
  readonly zone: Zone
}): Promise<Nameserver> => {
  const sockets = new Set<Socket>()
  const tcp = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    serveTcp(socket, zone)
  })
  tcp.maxConnections = MAX_TCP_CONNECTIONS
  const udp = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
  udp.on('message', (query, { address, port }) => {
    if (port === 0) return // a forged sender; `send` would throw
    const reply = replyFor(query, zone)
    if (reply) udp.send(reply, port, address, () => {}) // the sender repeats a query without a reply
  })
  try {
    await once(tcp.listen(port, host), 'listening')
    udp.bind((tcp.address() as AddressInfo).port, host)
    await once(udp, 'listening')
  } catch (error) {
    await Promise.all([closeUdp(udp), closeTcp(tcp)])
    const { code } = error as NodeJS.ErrnoException
    const message = `Cannot listen on ${host}:${port} (${code}): set SVC_ACME_DNS_PORT or HOST`
    throw new AppError('unavailable', message, { cause: error })
  }
  udp.on('error', () => {}) // of one datagram
  return {
    port: udp.address().port,
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await Promise.all([closeUdp(udp), closeTcp(tcp)])
    },
  }
}

const replyFor = (bytes: Buffer, zone: Zone): Buffer | null => {
  const query = parseQuery(bytes)
  if (query === null) return null
  return 'refused' in query ? refusalTo(query.id, query.refused) : answer(query, zone)
}

/** Each message has its length in front (RFC 1035, 4.2.2). */
const serveTcp = (socket: Socket, zone: Zone): void => {
  let received = Buffer.alloc(0)
  const late = setTimeout(() => socket.destroy(), TCP_TIMEOUT_MS)
  socket.on('close', () => clearTimeout(late))
  socket.on('error', () => socket.destroy())
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    while (received.length >= 2) {
      const length = received.readUInt16BE(0)
      if (length > MAX_QUERY_BYTES) return void socket.destroy()
      if (received.length < 2 + length) return
      const reply = replyFor(received.subarray(2, 2 + length), zone) ?? refusalTo(0, CODE.FORMAT_ERROR)
      received = received.subarray(2 + length)
      const prefix = Buffer.alloc(2)
      prefix.writeUInt16BE(reply.length, 0)
      socket.write(Buffer.concat([prefix, reply]))
      if (socket.writableLength > MAX_UNREAD_BYTES) return void socket.destroy()
    }
  })
}

const closeUdp = (socket: UdpSocket): Promise<void> => new Promise((resolve) => socket.close(() => resolve()))

const closeTcp = (server: Server): Promise<void> => new Promise((resolve) => server.close(() => resolve()))
