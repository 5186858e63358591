import { createServer, type Server, STATUS_CODES } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type Koa from 'koa'
import { STOPPING_MS } from '../commands/runs/requestRun.ts'
import { AppError } from '../errors.ts'
import { newId } from '../ids.ts'
import { errorBody } from './http/problem.ts'

/** A client must send its headers within this time. Node checks every 30 s. */
const HEADERS_TIMEOUT_MS = 20_000
const MAX_HEADER_BYTES = 16 << 10
/** A refused client must read the reply within this time. */
const LINGER_MS = 2000

/** Time for requests in progress when the server stops. Those that wait for a run end earlier and still reply. */
const DRAIN_MS = STOPPING_MS + 500

export interface ApiServer {
  readonly port: number
  /** Replaces the application. */
  serve(app: Koa): void
  /** Accepts no new connections, waits for requests in progress, then closes the remaining connections. */
  close(): Promise<void>
}

/** Starts to listen. Rejects with `unavailable` when the address is not available. */
export const listen = async (
  app: Koa,
  { port, host }: { port: number; host: string },
): Promise<ApiServer> => {
  let handle = app.callback()
  const server = createServer(
    {
      keepAliveTimeout: 65_000,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: 0,
      requireHostHeader: false, // see `http/requestHead.ts`, which replies with an error body
      maxHeaderSize: MAX_HEADER_BYTES,
    },
    (request, response) => void handle(request, response),
  )
  server.on('checkContinue', (request, response) => void handle(request, response)) // see `http/expectContinue.ts`
  server.on('clientError', (error, socket) => refuse(socket as Socket, reasonOf(error)))
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        new AppError('unavailable', `Cannot listen on ${host}:${port} (${error.code}): set PORT or HOST`, {
          cause: error,
        }),
      ),
    )
    server.listen(port, host, 1024, () => resolve())
  })
  return {
    port: (server.address() as AddressInfo).port,
    serve: (next) => (handle = next.callback()),
    close: () => close(server),
  }
}

const close = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    if (!server.listening) return resolve()
    const force = setTimeout(() => server.closeAllConnections(), DRAIN_MS)
    const idle = setInterval(() => server.closeIdleConnections(), 10) // connections become idle as replies end
    server.close(() => {
      clearTimeout(force)
      clearInterval(idle)
      resolve()
    })
  })

/** The error for input that Node could not parse as a request. */
const reasonOf = ({ code }: NodeJS.ErrnoException): AppError => {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new AppError('headers_too_large', `headers: expected at most ${MAX_HEADER_BYTES} bytes in all`)
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new AppError('request_timeout', `headers: expected within ${HEADERS_TIMEOUT_MS / 1000} s`)
    default:
      return new AppError('bad_request', 'Expected an HTTP request')
  }
}

/** Sends the error body for input that never became a request, and closes the connection. */
const refuse = (socket: Socket, reason: AppError): void => {
  if (!socket.writable) return void socket.destroy()
  const request_id = newId()
  const body = JSON.stringify(errorBody(reason, request_id))
  const head = [
    `HTTP/1.1 ${reason.status} ${STATUS_CODES[reason.status]}`,
    `X-Request-Id: ${request_id}`,
    'Content-Type: application/json',
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    'Referrer-Policy: no-referrer',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  socket.end([...head, '', body].join('\r\n'))
  setTimeout(() => socket.destroy(), LINGER_MS).unref() // a client may never close its side
}
