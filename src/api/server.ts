import { createServer, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type Koa from 'koa'
import { AppError } from '../errors.ts'
import { newId } from '../ids.ts'

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
    { keepAliveTimeout: 65_000, headersTimeout: 20_000, requestTimeout: 0, maxHeaderSize: 16 << 10 },
    (request, response) => void handle(request, response),
  )
  server.on('checkContinue', (request, response) => void handle(request, response)) // see `http/welcome.ts`
  server.on('clientError', (_, socket) => refuse(socket as Socket))
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

/** What is not HTTP gets the error body too. */
const refuse = (socket: Socket): void => {
  if (!socket.writable) return void socket.destroy()
  const request_id = newId()
  const body = JSON.stringify({
    error: { code: 'bad_request', message: 'Expected an HTTP request', request_id },
  })
  socket.end(
    `HTTP/1.1 400 Bad Request\r\nX-Request-Id: ${request_id}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
  )
}
