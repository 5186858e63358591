/**
 * The network of user code. This process has none: sockets, TLS and name resolution go through fd 4 to the egress of
 * the service, which decides what is reached. These replacements only make Node's modules use it.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { registerHooks, syncBuiltinESMExports } from 'node:module'
import net, { type NetConnectOpts, Socket } from 'node:net'
import { connectionOf, type Endpoint, connectThrough, type TunnelSocket } from './networkSocket.ts'
import { patchDatagrams, patchDns, patchTls } from './networkModules.ts'
import { connectionRefusalAfterEnd, runOfContext } from './endedRun.ts'
import { isCalledByNode } from './timers.ts'
import { boundFetch, boundWebSocket, followRequests, patchHttp, patchHttp2 } from './networkRequests.ts'
import { networkError, NetworkTunnel } from './networkTunnel.ts'

const FD = 4

/** Modules that are patched when they are first used, because loading them costs a child 15 ms and 5 MB. */
const LAZY: Readonly<Record<string, readonly ((open: () => NetworkTunnel) => void)[]>> = {
  tls: [patchTls],
  http: [patchHttp],
  _http_agent: [patchHttp],
  https: [patchTls, patchHttp],
  http2: [patchTls, patchHttp2],
  dns: [patchDns],
  'dns/promises': [patchDns],
  dgram: [patchDatagrams],
}

/** Call it before any user code is loaded. */
export const installNetwork = (): void => {
  const outsideRuns = AsyncLocalStorage.snapshot()
  let tunnel: NetworkTunnel | undefined
  const open = () => (tunnel ??= outsideRuns(() => new NetworkTunnel(FD)))

  const patched = new Set<unknown>()
  const patchOnce = (name: unknown) => {
    const patches = typeof name === 'string' ? LAZY[name.replace(/^node:/, '')] : undefined
    for (const patch of patches ?? []) {
      if (patched.has(patch)) continue
      patched.add(patch)
      outsideRuns(patch, open)
      syncBuiltinESMExports()
    }
  }
  registerHooks({
    resolve: (specifier, context, next) => {
      patchOnce(specifier)
      return next(specifier, context)
    },
  })
  const getBuiltinModule: (name: string) => unknown = process.getBuiltinModule.bind(process)
  Object.assign(process, {
    getBuiltinModule: (name: string) => {
      patchOnce(name)
      return getBuiltinModule(name)
    },
  })
  const { fetch } = globalThis
  onFirstUse('fetch', () => {
    patchOnce('tls')
    return boundFetch(fetch)
  })
  onFirstUse('WebSocket', () => {
    patchOnce('tls')
    return boundWebSocket()
  })

  Socket.prototype.connect = function connect(this: TunnelSocket, ...args: unknown[]) {
    const [options, onConnect] = normalized(args)
    if (onConnect) this.once('connect', onConnect)
    if (this._parent?.connecting) return this
    const refusal = connectionRefusalAfterEnd()
    if (refusal) return destroyed(this, refusal)
    const endpoint = endpointOf(options)
    if ('path' in endpoint)
      return refuse(this, `connect ${endpoint.path}: a function cannot use Unix sockets`)
    if (this._handle)
      return refuse(this, 'connect: a function can connect only a new socket; use tls.connect or net.connect')
    connectThrough(open(), this, endpoint)
    return this
  }

  endTimeouts()
  followRequests()

  net.Server.prototype.listen = function listen(): never {
    throw refused('listen: a function cannot listen; define a webhook to receive requests')
  }
  syncBuiltinESMExports()
}

/** The timeout of a socket is like a timer. Sockets in pools keep theirs. */
const endTimeouts = (): void => {
  const { prototype } = Socket as unknown as { readonly prototype: TunnelSocket }
  const setTimeout = Reflect.get(prototype, 'setTimeout') as (...args: unknown[]) => unknown
  const onTimeout = Reflect.get(prototype, '_onTimeout') as () => void
  const hasEnded = () => runOfContext()?.ended === true
  Object.assign(prototype, {
    setTimeout(this: TunnelSocket, ...args: unknown[]): unknown {
      return hasEnded() && !isCalledByNode() ? this : Reflect.apply(setTimeout, this, args)
    },
    _onTimeout(this: TunnelSocket): void {
      if (connectionOf(this) || !hasEnded()) Reflect.apply(onTimeout, this, [])
    },
  })
}

const refused = (message: string): Error => networkError({ code: 'ERR_EGRESS_REFUSED', message })

const refuse = (socket: TunnelSocket, message: string): TunnelSocket => destroyed(socket, refused(message))

const destroyed = (socket: TunnelSocket, error: Error): TunnelSocket => {
  process.nextTick(() => socket.destroy(error))
  return socket
}

/** Replaces a global by one whose value is determined when it is first used. */
const onFirstUse = (name: string, valueOf: () => unknown): void => {
  const become = (value: unknown): unknown => {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true })
    return value
  }
  Reflect.deleteProperty(globalThis, name) // redefining it would load its implementation, which takes 40 ms
  Object.defineProperty(globalThis, name, { configurable: true, get: () => become(valueOf()), set: become })
}

type Options = Readonly<Record<string, unknown>>

/** The arguments of `connect` as Node normalizes them: `(options)`, `(port, host)` or `(path)`, and a callback. */
const normalized = (args: readonly unknown[]): [Options, (() => void) | undefined] => {
  const [first, second] = args
  if (Array.isArray(first)) return [(first[0] ?? {}) as Options, (first[1] ?? undefined) as () => void]
  const last = args.at(-1)
  const callback = typeof last === 'function' ? (last as () => void) : undefined
  if (typeof first === 'object' && first !== null) return [first as Options, callback]
  if (typeof first === 'string' && !/^\d+$/.test(first)) return [{ path: first }, callback]
  return [{ port: first, ...(typeof second === 'string' && { host: second }) }, callback]
}

const endpointOf = (options: Options): Endpoint | { readonly path: string } => {
  const { path, port, host, family, lookup, autoSelectFamily } = options as Options & Partial<NetConnectOpts>
  if (typeof path === 'string') return { path }
  if (port === undefined)
    throw typeError('ERR_MISSING_ARGS', 'The "options" or "port" or "path" argument must be specified')
  const number = Number(port)
  if (
    !Number.isInteger(number) ||
    number < 0 ||
    number > 65_535 ||
    (typeof port === 'string' && port.trim() === '')
  )
    throw Object.assign(new RangeError(`Port should be >= 0 and < 65536. Received ${String(port)}.`), {
      code: 'ERR_SOCKET_BAD_PORT',
    })
  if (host !== undefined && host !== null && typeof host !== 'string')
    throw typeError('ERR_INVALID_ARG_TYPE', 'The "options.host" property must be of type string.')
  const wanted = family === 4 || family === 'IPv4' ? 4 : family === 6 || family === 'IPv6' ? 6 : 0
  return {
    host: host || 'localhost', // as Node does for an empty host
    port: number,
    family: wanted,
    lookup: typeof lookup === 'function' ? (lookup as Endpoint['lookup']) : undefined,
    all: wanted === 0 && autoSelectFamily !== false,
  }
}

const typeError = (code: string, message: string): Error => Object.assign(new TypeError(message), { code })
