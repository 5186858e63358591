import { createServer, type Server, STATUS_CODES } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type Koa from 'koa'
import { AppError } from '../errors.ts'
import { newId } from '../ids.ts'
import { errorBody } from './http/problem.ts'

/** A client that takes longer to send its headers is cut; Node looks every 30 s. */
const HEADERS_TIMEOUT_MS = 20_000
const MAX_HEADER_BYTES = 16 << 10
/** For so long a refused client may read what it was told. */
const LINGER_MS = 2000

export interface ApiServer {
  readonly port: number
  /** From now on this application answers. */
  serve(app: Koa): void
  /** Takes no new connections, lets requests under way end, then closes what is left. */
  close(deadlineMs: number): Promise<void>
}

/** Listens. Rejects with `unavailable` when the address cannot be had. */
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
      maxHeaderSize: MAX_HEADER_BYTES,
    },
    (request, response) => void handle(request, response),
  )
  server.on('checkContinue', (request, response) => void handle(request, response)) // see `http/welcome.ts`
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
    close: (deadlineMs) => close(server, deadlineMs),
  }
}

const close = (server: Server, deadlineMs: number): Promise<void> =>
  new Promise((resolve) => {
    if (!server.listening) return resolve()
    const force = setTimeout(() => server.closeAllConnections(), deadlineMs)
    const idle = setInterval(() => server.closeIdleConnections(), 10) // replies that end from now on leave theirs idle
    server.close(() => {
      clearTimeout(force)
      clearInterval(idle)
      resolve()
    })
  })

/** Why what came is no request. */
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

/** What never became a request gets the error body too; then the connection ends. */
const refuse = (socket: Socket, reason: AppError): void => {
  if (!socket.writable) return void socket.destroy()
  const request_id = newId()
  const body = JSON.stringify(errorBody(reason, request_id))
  const head = [
    `HTTP/1.1 ${reason.status} ${STATUS_CODES[reason.status]}`,
    `X-Request-Id: ${request_id}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  socket.end([...head, '', body].join('\r\n'))
  setTimeout(() => socket.destroy(), LINGER_MS).unref() // a client may never close its side
}
