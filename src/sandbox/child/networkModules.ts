import type dgram from 'node:dgram'
import type dns from 'node:dns'
import { isIP, Socket } from 'node:net'
import type tls from 'node:tls'
import { promisify } from 'node:util'
import type { Address } from '../../egress/frames.ts'
import { usersOf } from './connectionUsers.ts'
import { refusalAfterEnd } from './endedRun.ts'
import { connectionOf, shareAddresses, type TunnelSocket } from './networkSocket.ts'
import { networkError, type NetworkTunnel } from './networkTunnel.ts'

const builtin = process.getBuiltinModule.bind(process)

type OpenTunnel = () => NetworkTunnel

/** TLS runs in this process, on a socket of the tunnel. */
export const patchTls = (): void => {
  const module = builtin('node:tls')
  const { connect, TLSSocket } = module
  type Options = tls.ConnectionOptions & { timeout?: number }

  module.connect = (...args: unknown[]) => {
    const [options, callback] = tlsArguments(args) as [Options, (() => void) | undefined]
    if (options.socket) {
      const secure = connect(options, callback)
      usersOf(options.socket)?.guard(secure)
      startOver(secure, options.socket)
      return secure
    }
    const under = new Socket()
    under.connect({ ...options } as Parameters<Socket['connect']>[0] & object)
    const secure = connect({ ...options, socket: under }, callback)
    usersOf(under)?.guard(secure)
    if (options.timeout) secure.setTimeout(options.timeout)
    shareAddresses(secure as unknown as TunnelSocket, under)
    return secure
  }

  module.TLSSocket = new Proxy(TLSSocket, {
    construct: (target, args: [unknown, unknown?], newTarget) => {
      const secure = Reflect.construct(target, args, newTarget) as tls.TLSSocket
      if (args[0] instanceof Socket) usersOf(args[0])?.guard(secure)
      startOver(secure, args[0])
      return secure
    },
  })
}

/** TLS takes a socket without a handle for one that is connecting; one of the tunnel may be connected already. */
const startOver = (secure: tls.TLSSocket, under: unknown): void => {
  if (!(under instanceof Socket) || under.connecting || !connectionOf(under)?.opened) return
  shareAddresses(secure as unknown as TunnelSocket, under)
  const mutable = secure as unknown as { connecting: boolean }
  if (!mutable.connecting) return
  mutable.connecting = false
  secure.emit('connect') // only Node's own listeners exist yet
}

/** The arguments of `tls.connect`: `(options)`, `(port, host, options)` or `(path, options)`, and a callback. */
const tlsArguments = (args: readonly unknown[]): [object, unknown] => {
  const last = args.at(-1)
  const callback = typeof last === 'function' ? last : undefined
  const options = Object.assign({}, ...args.filter((each) => typeof each === 'object')) as object
  const [first, second] = args
  if (typeof first === 'object') return [options, callback]
  const isPath = typeof first === 'string' && !/^\d+$/.test(first)
  const target = isPath
    ? { path: first }
    : { port: first, ...(typeof second === 'string' && { host: second }) }
  return [{ ...options, ...target }, callback]
}

type Callback = (error: Error | null, ...results: unknown[]) => void
type Options = Readonly<Record<string, unknown>>

const familyOf = (family: unknown): 0 | 4 | 6 =>
  family === 4 || family === 'IPv4' ? 4 : family === 6 || family === 'IPv6' ? 6 : 0

const lookUp = (tunnel: NetworkTunnel, ...[host, family, callback]: Parameters<NetworkTunnel['lookUp']>) => {
  const refusal = refusalAfterEnd()
  if (refusal) process.nextTick(callback, refusal, [])
  else tunnel.lookUp(host, family, callback)
}

/** Functions that ask the service, and all others as refusals. */
export const patchDns = (open: OpenTunnel): void => {
  const module = builtin('node:dns')
  const { promises } = module

  const addressesOf = (
    host: string,
    family: 0 | 4 | 6,
    callback: (error: Error | null, found: readonly Address[]) => void,
  ) => {
    const literal = isIP(host)
    if (literal === 0) return lookUp(open(), host, family, callback)
    process.nextTick(callback, null, [{ address: host, family: literal }])
  }

  const lookup = (host: string, given: unknown, done?: unknown) => {
    const callback = (typeof given === 'function' ? given : done) as Callback
    if (typeof callback !== 'function')
      throw Object.assign(new TypeError('The "callback" argument must be of type function.'), {
        code: 'ERR_INVALID_ARG_TYPE',
      })
    const options = (typeof given === 'object' && given !== null ? given : { family: given }) as Options
    const family = familyOf(options['family'])
    if (!host) {
      const empty = options['all'] === true ? [[]] : [null, family === 6 ? 6 : 4]
      return process.nextTick(callback, null, ...empty)
    }
    addressesOf(host, family, (error, found) => {
      if (error) return callback(error)
      const addresses =
        options['order'] === 'ipv6first' ? found.toSorted((a, b) => b.family - a.family) : found
      if (options['all'] === true) return callback(null, addresses)
      callback(null, addresses[0]?.address, addresses[0]?.family)
    })
  }
  const lookupPromise = (host: string, given?: unknown): Promise<unknown> => {
    const options = (typeof given === 'object' && given !== null ? given : { family: given }) as Options
    return new Promise((resolve, reject) => {
      lookup(host, options, (error: Error | null, address: unknown, family: unknown) =>
        error ? reject(error) : resolve(options['all'] === true ? address : { address, family }),
      )
    })
  }
  Object.defineProperty(lookup, promisify.custom, { value: lookupPromise })

  const resolve = (family: 4 | 6) => (host: string, given: unknown, done?: unknown) => {
    const callback = (typeof given === 'function' ? given : done) as Callback
    const withTtl = typeof given === 'object' && given !== null && (given as Options)['ttl'] === true
    lookUp(open(), host, family, (error, found) => {
      if (error) return callback(error)
      callback(
        null,
        withTtl ? found.map(({ address }) => ({ address, ttl: 0 })) : found.map(({ address }) => address),
      )
    })
  }
  const resolvers: Readonly<Record<string, (...args: never[]) => void>> = {
    resolve4: resolve(4),
    resolve6: resolve(6),
    resolve: (host: string, type: unknown, done?: unknown) => {
      const wanted = typeof type === 'string' ? type : 'A'
      const callback = (typeof type === 'function' ? type : done) as Callback
      if (wanted === 'A') return resolve(4)(host, callback)
      if (wanted === 'AAAA') return resolve(6)(host, callback)
      process.nextTick(callback, unsupported(`resolve of ${wanted} records`))
    },
  }
  const refusedName =
    (name: string) =>
    (...args: unknown[]): void => {
      const callback = args.at(-1)
      if (typeof callback !== 'function') throw unsupported(name)
      process.nextTick(callback, unsupported(name))
    }

  for (const target of [module, module.Resolver.prototype] as object[]) {
    for (const name of asking(target)) Reflect.set(target, name, resolvers[name] ?? refusedName(name))
  }
  for (const target of [promises, promises.Resolver.prototype] as object[]) {
    for (const name of asking(target)) {
      const callbacks = (resolvers[name] ?? refusedName(name)) as (...args: unknown[]) => void
      Reflect.set(
        target,
        name,
        (...args: unknown[]) =>
          new Promise((resolved, reject) => {
            callbacks(...args, (error: Error | null, found: unknown) =>
              error ? reject(error) : resolved(found),
            )
          }),
      )
    }
  }
  module.lookup = lookup as unknown as typeof dns.lookup
  promises.lookup = lookupPromise as typeof promises.lookup
}

/** The functions of a module or class of DNS that send queries, except `lookup`. */
const asking = (target: object): string[] =>
  Object.getOwnPropertyNames(target).filter((name) => /^(?:resolve|reverse|lookupService)/.test(name))

const unsupported = (name: string): Error =>
  networkError({
    code: 'ERR_EGRESS_REFUSED',
    message: `dns: a function cannot use ${name}; lookup, resolve4 and resolve6 are available`,
  })

export const patchDatagrams = (): void => {
  const module: { createSocket: unknown; Socket: unknown } = builtin('node:dgram')
  const refuse = (): never => {
    throw networkError({
      code: 'ERR_EGRESS_REFUSED',
      message: 'dgram: a function cannot use UDP; connections are TCP',
    })
  }
  module.createSocket = refuse
  module.Socket = refuse satisfies () => dgram.Socket
}
