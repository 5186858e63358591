import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { SecureContext, TlsOptions } from 'node:tls'
import type Koa from 'koa'
import { clock } from '../clock.ts'
import { AppError } from '../errors.ts'
import type { Logger } from '../logger.ts'
import type { WaitingCalls } from '../loops/waitingCalls.ts'
import { addressOf, isTrusted, networkOf, type TrustedProxies } from '../ports/trustedProxies.ts'
import { AddressLimit } from './http/addressLimit.ts'
import { GatheredMessage } from './http/gatheredMessage.ts'
import { isMisdirected } from './http/misdirected.ts'
import { arriving } from './http/arriving.ts'
import { MAX_UNANSWERED, pipelined } from './http/pipelined.ts'
import { refuseSocket } from './http/refuseSocket.ts'
import { repliesIn, UnreadReplies } from './http/unreadReplies.ts'

/** A client must send its headers within this time, and its first byte too. */
const HEADERS_TIMEOUT_MS = 20_000
/** Node looks for clients that are too slow once in this time. */
const LOOK_EVERY_MS = 5000
const MAX_HEADER_BYTES = 16 << 10
const MAX_HEADER_LINES = 1000
/** A client that reads none of its reply for this long is disconnected. */
const STALLED_MS = 60_000
const KEEP_ALIVE_MS = 65_000
/** A client must complete its TLS handshake within this time. */
const HANDSHAKE_TIMEOUT_MS = 20_000

/** Connections of this process; each costs some KiB and a descriptor. */
const MAX_CONNECTIONS = 10_000
/** Connections of one address that is not a trusted proxy. */
const MAX_CONNECTIONS_PER_ADDRESS = 1000
/** A connection then ends, so that a load balancer can move its client to another node. */
const MAX_REQUESTS_PER_CONNECTION = 10_000

/** Time for requests in progress when the server stops. While callers wait for runs, the others may use their time too. */
export const DRAIN_MS = 5000
/** Time to send the replies to those callers. */
const REPLYING_MS = 500

/** `localhost` may be either of them. Another process must not get the other one at our port, and our clients' keys. */
const LOOPBACKS = ['127.0.0.1', '::1'] as const
/** Attempts to find a port that is free on both loopback addresses, if any port will do. */
const PORT_TRIES = 10

export interface ApiServer {
  readonly port: number
  /** Replaces the application. */
  serve(app: Koa): void
  /** Accepts no new connections, waits for requests in progress and for calls, then closes the remaining connections. */
  close(calls?: Pick<WaitingCalls, 'count'>): Promise<void>
}

interface Options {
  readonly port: number
  readonly host: string
  readonly trustedProxies: TrustedProxies
  readonly logger: Pick<Logger, 'warn'>
  /** Called for each connection. */
  readonly onAccepted: () => void
  /**
   * Resolves with the certificate for the name that a client asks for; null refuses its handshake. Never rejects. Without
   * it, the server has no TLS.
   */
  readonly certificateOf?: (servername: string) => Promise<SecureContext | null>
}

/** Starts to listen; on both loopback addresses if `host` is one. Rejects with `unavailable` when one is not available. */
export const listen = async (app: Koa, options: Options): Promise<ApiServer> => {
  let handle = app.callback()
  const warn = oncePerNetwork(options.logger)
  const limit = limitOf(options, warn)
  const warnOf =
    (message: string) =>
    ({ remoteAddress = '' }: Socket) =>
      warn(message, addressOf(remoteAddress) ?? remoteAddress)
  const handler = pipelined(
    arriving((request, response) => void handle(request, response)),
    warnOf(TOO_MANY_UNANSWERED),
  )
  const ServerResponse = repliesIn(new UnreadReplies({ onClosed: warnOf(TOO_MUCH_UNREAD) }))
  const newServer = () => open(handler, { ...options, limit, ServerResponse })
  const servers = await listenOn(hostsOf(options.host), options, newServer)
  return {
    port: portOf(servers[0]),
    serve: (next) => (handle = next.callback()),
    close: async (calls) => void (await Promise.all(servers.map((server) => close(server, calls)))),
  }
}

const hostsOf = (host: string): readonly [string, ...string[]] => {
  if (host === 'localhost') return LOOPBACKS
  const other = LOOPBACKS.find((address) => address !== host)
  return (LOOPBACKS as readonly string[]).includes(host) && other ? [host, other] : [host]
}

const open = (
  handle: RequestListener,
  {
    certificateOf,
    limit,
    ServerResponse,
  }: Pick<Options, 'certificateOf'> & {
    readonly limit: (socket: Socket) => void
    readonly ServerResponse: ReturnType<typeof repliesIn>
  },
): Server => {
  const settings: ServerOptions = {
    IncomingMessage: GatheredMessage,
    ServerResponse,
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout: HEADERS_TIMEOUT_MS,
    connectionsCheckingInterval: LOOK_EVERY_MS,
    requestTimeout: 0,
    requireHostHeader: false, // see `http/requestHead.ts`, which replies with an error body
    maxHeaderSize: MAX_HEADER_BYTES,
  }
  const guarded = certificateOf ? directed(handle) : handle
  const server = certificateOf
    ? createTlsServer({ ...settings, ...tlsOf(certificateOf) }, guarded)
    : createServer(settings, guarded)
  server.maxConnections = MAX_CONNECTIONS
  server.maxHeadersCount = MAX_HEADER_LINES
  server.maxRequestsPerSocket = MAX_REQUESTS_PER_CONNECTION
  server.timeout = STALLED_MS
  // Without a listener, Node would also end connections that wait for a long run.
  server.on('timeout', (socket: Socket) => {
    if (socket.timeout !== STALLED_MS || socket.writableLength > 0) socket.destroy()
  })
  server.on('connection', limit)
  server.on('checkContinue', guarded) // see `http/expectContinue.ts`
  server.on('checkExpectation', guarded) // see `http/requestHead.ts`
  server.on('clientError', (error, socket) => refuseSocket(socket as Socket, reasonOf(error)))
  return server
}

/** Serves each name with its own certificate, which may change at any time. */
const tlsOf = (certificateOf: NonNullable<Options['certificateOf']>): TlsOptions => ({
  handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
  minVersion: 'TLSv1.2',
  // Without a context there is no certificate, so the handshake fails.
  SNICallback: (servername, done) => void offer(certificateOf(servername), done),
})

const offer = async (
  context: Promise<SecureContext | null>,
  done: Parameters<NonNullable<TlsOptions['SNICallback']>>[1],
): Promise<void> => done(null, (await context) ?? undefined)

const directed =
  (handle: RequestListener): RequestListener =>
  (request, response) => {
    if (!isMisdirected(request)) return handle(request, response)
    const reason = new AppError(
      'misdirected_request',
      'Host: expected the name for which the connection is open',
    )
    refuseSocket(request.socket, reason)
  }

const TOO_MANY_CONNECTIONS = `One address has ${MAX_CONNECTIONS_PER_ADDRESS} connections; more are closed. If it is your proxy, name it in SVC_TRUSTED_PROXIES`
const TOO_MANY_UNANSWERED = `A connection was closed, because it had more than ${MAX_UNANSWERED} requests without a reply`

const TOO_MUCH_UNREAD =
  'A connection was closed, because replies that clients do not read took too much memory'

type Warn = (message: string, address: string) => void

/** Logs each message once for each network: a client that repeats its mistake must not fill the log. */
const oncePerNetwork = (logger: Options['logger']): Warn => {
  const reported = new Set<string>()
  return (message, address) => {
    const key = `${message} ${networkOf(address)}`
    if (reported.has(key) || reported.size >= MAX_CONNECTIONS) return
    reported.add(key)
    logger.warn(message, { address })
  }
}

/** Closes the connections of an address beyond its limit. A trusted proxy has those of many clients. */
const limitOf = ({ trustedProxies, onAccepted }: Options, warn: Warn): ((socket: Socket) => void) => {
  const limit = new AddressLimit(MAX_CONNECTIONS_PER_ADDRESS)
  return (socket) => {
    onAccepted()
    const address = addressOf(socket.remoteAddress ?? '')
    if (address === null || isTrusted(trustedProxies, address)) return
    if (limit.take(address)) return void socket.on('close', () => limit.giveBack(address))
    socket.destroy()
    warn(TOO_MANY_CONNECTIONS, address)
  }
}

type Servers = readonly [Server, ...Server[]]

const listenOn = async (
  [first, second]: readonly [string, ...string[]],
  { port, host, certificateOf }: Options,
  newServer: () => Server,
): Promise<Servers> => {
  const variable = certificateOf ? 'SVC_TLS_PORT' : 'PORT'
  for (let tries = port === 0 ? PORT_TRIES : 1; ; tries--) {
    const server = newServer()
    await bind(server, first, port).catch((error: unknown) => {
      throw cannotListen(host, port, error, variable)
    })
    if (second === undefined) return [server]
    const other = newServer()
    try {
      await bind(other, second, portOf(server))
      return [server, other]
    } catch (error) {
      if (isMissing(error)) return [server]
      server.close()
      if (tries === 1) throw cannotListen(second, portOf(server) || port, error, variable)
    }
  }
}

const bind = (server: Server, host: string, port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, host, backlog: 1024 }, () => {
      server.off('error', reject)
      resolve()
    })
  })

/** Whether the machine does not have the address: it may have no IPv6. */
const isMissing = (error: unknown): boolean =>
  ['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EINVAL'].includes((error as NodeJS.ErrnoException).code ?? '')

const cannotListen = (host: string, port: number, cause: unknown, variable: string): AppError =>
  new AppError(
    'unavailable',
    `Cannot listen on ${host}:${port} (${(cause as NodeJS.ErrnoException).code}): set ${variable} or HOST`,
    { cause },
  )

const portOf = (server: Server): number => (server.address() as AddressInfo | null)?.port ?? 0

const close = (server: Server, calls: Pick<WaitingCalls, 'count'> = { count: 0 }): Promise<void> =>
  new Promise((resolve) => {
    if (!server.listening) return resolve()
    let closesAt = clock.monotonic() + DRAIN_MS
    const looking = setInterval(() => {
      const now = clock.monotonic()
      if (calls.count > 0) closesAt = Math.max(closesAt, now + REPLYING_MS)
      if (now < closesAt) server.closeIdleConnections() // connections become idle as replies end
      else server.closeAllConnections()
    }, 10)
    server.close(() => {
      clearInterval(looking)
      resolve()
    })
  })

/** The error for input that Node could not parse as a request. */
const reasonOf = ({ code }: NodeJS.ErrnoException): AppError => {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new AppError(
        'headers_too_large',
        `headers: expected at most ${MAX_HEADER_BYTES} bytes and ${MAX_HEADER_LINES} lines in all`,
      )
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new AppError('request_timeout', `headers: expected within ${HEADERS_TIMEOUT_MS / 1000} s`)
    default:
      return new AppError('bad_request', 'Expected an HTTP request')
  }
}
