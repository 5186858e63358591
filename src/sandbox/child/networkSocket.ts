import { AsyncLocalStorage } from 'node:async_hooks'
import { isIP, Socket } from 'node:net'
import type { Opened } from '../../egress/frames.ts'
import { ConnectionUsers } from './connectionUsers.ts'
import { refusal } from './endedRun.ts'
import { networkError, NetworkStream, type NetworkTunnel } from './networkTunnel.ts'

/** The parts of a socket that Node's own modules use and its types leave out. */
interface Internals {
  _handle: unknown
  _peername: object | null
  _parent?: { readonly connecting: boolean } | null
  _unrefTimer(): void
  _undestroy(): void
  connecting: boolean
}

/** A socket whose bytes go through the tunnel. */
export type TunnelSocket = Socket & Internals

interface Connection {
  stream: NetworkStream
  readonly users: ConnectionUsers
  giveUp: () => void
  opened: Opened | undefined
  /** Calls that wait until the stream is open. */
  readonly whenOpen: (() => void)[]
  /** The callback of the write or end in progress. */
  unsettled: Callback | undefined
}

type Family = 0 | 4 | 6

export interface Endpoint {
  readonly host: string
  readonly port: number
  readonly family: Family
  readonly lookup: Lookup | undefined
  /** Whether the lookup may return several addresses. */
  readonly all: boolean
}

type Lookup = (
  host: string,
  options: object,
  callback: (error: Error | null, found: string | readonly { address: string }[], family?: number) => void,
) => void

const connections = new WeakMap<object, Connection>()

/** The connection of a socket, also of a TLS socket on top of it. */
export const connectionOf = (socket: object): Connection | undefined => connections.get(socket)

/** A socket on top of another one reports the addresses of that one. */
export const shareAddresses = (over: TunnelSocket, under: object): void => {
  const connection = connections.get(under)
  if (!connection) return
  Object.defineProperties(over, {
    _getpeername: { value: () => endOf(connection.opened?.remote), configurable: true },
    _getsockname: { value: () => endOf(connection.opened?.local), configurable: true },
  })
}

/** One end of a connection, in the form of Node. */
const endOf = (end: Opened['local'] | undefined): object =>
  end ? { address: end.address, port: end.port, family: isIP(end.address) === 6 ? 'IPv6' : 'IPv4' } : {}

/** Makes a socket that is not connected into one of the tunnel, and connects it. */
export const connectThrough = (tunnel: NetworkTunnel, socket: TunnelSocket, endpoint: Endpoint): void => {
  socket._undestroy()
  socket._peername = null
  const users = new ConnectionUsers(() => {
    if (socket.connecting || socket.writableLength > 0) socket.destroy(refusal())
  })
  const connection: Connection = {
    stream: streamOf(tunnel, socket, users),
    users,
    giveUp: () => {},
    opened: undefined,
    whenOpen: [],
    unsettled: undefined,
  }
  connections.set(socket, connection)
  Object.defineProperties(socket, tunnelled)
  users.guard(socket)
  socket._unrefTimer()
  socket.connecting = true

  const dial = (host: string, family: Family) => {
    if (!socket.connecting) return
    connection.giveUp = tunnel.open(connection.stream, { host, port: endpoint.port, family })
  }
  if (!endpoint.lookup || isIP(endpoint.host) !== 0) return dial(endpoint.host, endpoint.family)
  const { host, family, all } = endpoint
  const onFound: Parameters<Lookup>[2] = (error, found) => {
    if (!socket.connecting) return
    const addresses = typeof found === 'string' ? [found] : (found ?? []).map(({ address }) => address)
    socket.emit('lookup', error, addresses[0], isIP(addresses[0] ?? ''), host)
    if (error) return void socket.destroy(error)
    const [first, ...others] = addresses
    if (first === undefined || isIP(first) === 0) {
      const shown = JSON.stringify(first)
      return void socket.destroy(
        networkError({
          code: 'ERR_INVALID_IP_ADDRESS',
          message: `Expected an address from lookup, got ${shown}`,
        }),
      )
    }
    fallbacks.set(connection, { addresses: others, dial })
    dial(first, 0)
  }
  endpoint.lookup(host, { family, hints: 0, all }, onFound)
}

/** Further addresses of a lookup by user code, which are tried when the first one fails. */
const fallbacks = new WeakMap<
  Connection,
  { addresses: string[]; dial: (host: string, family: Family) => void }
>()

const streamOf = (tunnel: NetworkTunnel, socket: TunnelSocket, users: ConnectionUsers): NetworkStream =>
  new NetworkStream(tunnel, {
    isAbandoned: () => users.isAbandoned,
    onOpened: (opened) => users.inContext(() => onOpened(socket, opened)),
    onData: (data) => {
      socket._unrefTimer()
      return users.receive(() => socket.push(data))
    },
    onEnd: () =>
      users.inContext(() => {
        const connection = connections.get(socket)
        if (connection) ended.add(connection)
        socket.push(null)
        socket.read(0)
      }),
    onClose: (error) => users.inContext(() => onClose(tunnel, socket, error)),
  })

const ended = new WeakSet<Connection>()

const onOpened = (socket: TunnelSocket, opened: Opened): void => {
  const connection = connections.get(socket)
  if (!connection || socket.destroyed) return
  connection.opened = opened
  socket.connecting = false
  socket._unrefTimer()
  socket.emit('connect')
  socket.emit('ready')
  for (const call of connection.whenOpen.splice(0)) call()
  if (!socket.isPaused()) socket.read(0)
}

const onClose = (tunnel: NetworkTunnel, socket: TunnelSocket, error: Error | undefined): void => {
  const connection = connections.get(socket)
  if (!connection || socket.destroyed) return
  const fallback = fallbacks.get(connection)
  const next = connection.opened ? undefined : fallback?.addresses.shift()
  if (error && next !== undefined) {
    connection.stream = streamOf(tunnel, socket, connection.users)
    return fallback?.dial(next, 0)
  }
  if (error) return void socket.destroy(error)
  // After the end of the data, the data that nothing has read yet remains readable.
  if (!ended.has(connection)) socket.destroy(networkError(RESET))
}

const CLOSED = { code: 'ERR_SOCKET_CLOSED', message: 'Socket is closed' }
const RESET = { code: 'ECONNRESET', syscall: 'read', errno: -104, message: 'read ECONNRESET' }

const bytesOf = (chunk: string | Uint8Array, encoding?: BufferEncoding): Buffer =>
  typeof chunk === 'string'
    ? Buffer.from(chunk, encoding)
    : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)

type Callback = (error?: Error | null) => void

/** Starts once the stream is open. Calls back once, in the context of the caller, also if the socket is destroyed. */
const start = (socket: TunnelSocket, callback: Callback, action: (done: Callback) => void): void => {
  const connection = connections.get(socket)
  if (!connection) return callback(networkError(RESET))
  const inContext = AsyncLocalStorage.snapshot()
  let isSync = true
  const done = (error?: Error | null) => {
    if (connection.unsettled !== done) return
    connection.unsettled = undefined
    if (isSync) callback(error)
    else inContext(callback, error)
  }
  connection.unsettled = done
  if (socket.connecting) connection.whenOpen.push(() => action(done))
  else action(done)
  isSync = false
}

const write = (socket: TunnelSocket, bytes: Buffer, callback: Callback): void => {
  socket._unrefTimer()
  start(socket, callback, (done) =>
    connections.get(socket)?.stream.write(bytes, (error) => {
      socket._unrefTimer()
      done(error)
    }),
  )
}

/** Replaces the methods of a socket that would use its handle. */
const tunnelled: PropertyDescriptorMap & ThisType<TunnelSocket> = {
  _read: {
    value(this: TunnelSocket) {
      connections.get(this)?.stream.consumed()
    },
  },
  _write: {
    value(this: TunnelSocket, chunk: string | Uint8Array, encoding: BufferEncoding, callback: Callback) {
      write(this, bytesOf(chunk, encoding), callback)
    },
  },
  _writev: {
    value(
      this: TunnelSocket,
      chunks: readonly { chunk: string | Uint8Array; encoding: BufferEncoding }[],
      callback: Callback,
    ) {
      write(this, Buffer.concat(chunks.map(({ chunk, encoding }) => bytesOf(chunk, encoding))), callback)
    },
  },
  _final: {
    value(this: TunnelSocket, callback: Callback) {
      start(this, callback, (done) => {
        connections.get(this)?.stream.end()
        done()
      })
    },
  },
  _destroy: {
    value(this: TunnelSocket, error: Error | null, callback: Callback) {
      const connection = connections.get(this)
      connection?.giveUp()
      connection?.users.close()
      connection?.unsettled?.(error ?? networkError(CLOSED))
      destroyOf(this, error, callback)
    },
  },
  resetAndDestroy: {
    value(this: TunnelSocket) {
      return this.destroy()
    },
  },
  ref: { value: returnThis },
  unref: { value: returnThis },
  pending: {
    get(this: TunnelSocket) {
      return this.connecting || connections.get(this)?.opened === undefined
    },
  },
  bytesRead: {
    get(this: TunnelSocket) {
      return connections.get(this)?.stream.bytesRead ?? 0
    },
  },
  bytesWritten: {
    get(this: TunnelSocket) {
      return (connections.get(this)?.stream.bytesWritten ?? 0) + this.writableLength
    },
  },
  _getpeername: {
    value(this: TunnelSocket) {
      return endOf(connections.get(this)?.opened?.remote)
    },
  },
  _getsockname: {
    value(this: TunnelSocket) {
      return endOf(connections.get(this)?.opened?.local)
    },
  },
}
for (const descriptor of Object.values(tunnelled)) {
  descriptor.configurable = true
  if ('value' in descriptor) descriptor.writable = true
}

function returnThis(this: TunnelSocket): TunnelSocket {
  return this
}

// oxlint-disable-next-line typescript/unbound-method -- called with the socket
const { _destroy } = Socket.prototype
const destroyOf = (socket: TunnelSocket, error: Error | null, callback: Callback): void =>
  Reflect.apply(_destroy, socket, [error, callback])
