import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import Koa from 'koa'
import * as assert from 'uvu/assert'
import { createFront } from '../../src/api/app.ts'
import { RequestMeter } from '../../src/api/http/requestMeter.ts'
import { listen } from '../../src/api/server.ts'
import { silent } from '../../src/logger.ts'
import { NO_PROXIES, parseTrustedProxies } from '../../src/ports/trustedProxies.ts'
import { AppError, messageOf } from '../../src/errors.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const hasIPv6 = Object.values(networkInterfaces()).some((all) =>
  all?.some(({ address }) => address === '::1'),
)

const front = createFront(
  {
    logger: silent,
    about: { version: '1', git_sha: '1', start_time: '1' },
    notReady: () => null,
    sandbox: null,
    trustedProxies: parseTrustedProxies('127.0.0.0/8') ?? NO_PROXIES,
    corsOrigins: null,
    requests: new RequestMeter(),
    metrics: () => Promise.reject(new Error('no metrics')),
    operator: () => null,
  },
  () => new AppError('not_found', 'nothing here'),
)
type Warns = Parameters<typeof listen>[1]['logger']

const started = (
  host: string,
  { port = 0, trusted = '', logger = silent }: { port?: number; trusted?: string; logger?: Warns } = {},
) =>
  listen(front, {
    onAccepted: () => {},
    host,
    port,
    logger,
    trustedProxies: parseTrustedProxies(trusted) ?? NO_PROXIES,
  })

const opened = async (port: number): Promise<Socket> => {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

const loopback = suite('a server on a loopback address')

for (const host of ['127.0.0.1', 'localhost', '::1'])
  loopback(`named ${host} answers on both of them`, async () => {
    if (!hasIPv6 && host === '::1') return
    const server = await started(host)
    const hosts = hasIPv6 ? ['127.0.0.1', '[::1]', 'localhost'] : ['127.0.0.1']
    for (const one of hosts) assert.is((await fetch(`http://${one}:${server.port}/healthz`)).status, 200, one)
    await server.close()
  })

loopback('does not start if another process has its port on either of them', async () => {
  for (const taken of hasIPv6 ? ['127.0.0.1', '::1'] : ['127.0.0.1']) {
    const { port, close } = await started('127.0.0.1') // a port that is free on both of them
    await close()
    const other = createServer().listen(port, taken)
    await once(other, 'listening')
    const message = await started('127.0.0.1', { port }).then(
      () => 'started',
      (error: unknown) => messageOf(error),
    )
    assert.is(message, `Cannot listen on ${taken}:${port} (EADDRINUSE): set PORT or HOST`)
    other.close()
  }
})

loopback.run()

const connections = suite('a connection')

connections('ends after the reply if its request does not', async () => {
  const server = await started('127.0.0.1')
  for (const head of ['GET /status', 'POST /none', 'OPTIONS /status', 'HEAD /healthz']) {
    const socket = await opened(server.port)
    let text = ''
    socket.on('data', (chunk) => (text += String(chunk)))
    socket.write(`${head} HTTP/1.1\r\nHost: svc\r\nContent-Length: 1000000\r\n\r\nx`)
    await until(() => socket.closed)
    assert.match(text, /^HTTP\/1\.1 (200|404) /, head)
  }
  await server.close()
})

connections('stays open after a request that ended', async () => {
  const server = await started('127.0.0.1')
  const socket = await opened(server.port)
  let text = ''
  socket.on('data', (chunk) => (text += String(chunk)))
  for (const replies of [1, 2]) {
    socket.write('GET /status HTTP/1.1\r\nHost: svc\r\nContent-Length: 2\r\n\r\nxx')
    await until(() => text.split('HTTP/1.1 200').length === replies + 1)
  }
  socket.destroy()
  await server.close()
})

/** Requests that arrive in one packet. */
const pipelined = (count: number): string =>
  Array.from({ length: count }, (_, n) => `GET /${n} HTTP/1.1\r\nHost: svc\r\n\r\n`).join('')

/** An application that replies when the test says so. */
const slowApp = () => {
  const paths: string[] = []
  const go = Promise.withResolvers<void>()
  const app = new Koa()
  app.use(async (ctx) => {
    paths.push(ctx.path)
    await go.promise
    ctx.body = ctx.path
  })
  return { app, paths, go }
}

connections('may have eight requests without a reply, and the replies come in order', async () => {
  const server = await started('127.0.0.1')
  const { app, paths, go } = slowApp()
  server.serve(app)
  const socket = await opened(server.port)
  let text = ''
  socket.on('data', (chunk) => (text += String(chunk)))
  socket.write(pipelined(8))
  await until(() => paths.length === 8)
  go.resolve()
  await until(() => text.endsWith('/7'))
  const replies = [...text.matchAll(/\r\n\r\n\/(\d)/g)].map(([, path]) => path)
  assert.equal(replies, ['0', '1', '2', '3', '4', '5', '6', '7'])
  socket.write(pipelined(8))
  await until(() => paths.length === 16)
  assert.is(socket.closed, false)
  socket.destroy()
  await server.close()
})

connections('ends with the ninth request without a reply, and no further request is handled', async () => {
  const warnings: object[] = []
  const server = await started('127.0.0.1', {
    logger: { warn: (_: string, fields?: object) => void warnings.push({ ...fields }) },
  })
  const { app, paths, go } = slowApp()
  server.serve(app)
  for (let n = 0; n < 2; n++) {
    const socket = await opened(server.port)
    socket.write(pipelined(1000))
    await until(() => socket.closed)
  }
  go.resolve()
  assert.ok(paths.length <= 16, `${paths.length} requests were handled`)
  assert.equal(warnings, [{ address: '127.0.0.1' }], 'one address is logged once')
  await server.close()
})

connections('that send requests at once do not fill a turn of the event loop', async () => {
  const server = await started('127.0.0.1')
  const app = new Koa()
  let turn = 0
  const handled: number[] = []
  app.use((ctx) => {
    handled[turn] = (handled[turn] ?? 0) + 1
    for (const until = performance.now() + 2; performance.now() < until;);
    ctx.body = 'ok'
  })
  server.serve(app)
  const counting = setInterval(() => turn++, 0)
  const sockets = await Promise.all(Array.from({ length: 50 }, () => opened(server.port)))
  let replies = 0
  for (const socket of sockets) socket.on('data', () => replies++)
  // The first requests come while the connections are accepted, which is one in a turn.
  for (const round of [1, 2]) {
    handled.length = 0
    for (const socket of sockets) socket.write('GET / HTTP/1.1\r\nHost: svc\r\n\r\n')
    await until(() => replies === round * sockets.length)
  }
  clearInterval(counting)
  for (const socket of sockets) socket.destroy()
  await server.close()
  const most = Math.max(...handled.filter((count) => count !== undefined))
  assert.ok(most <= 4, `${most} requests of 2 ms were handled in one turn`)
})

connections('is refused if its address has 1000 already, unless it is a trusted proxy', async () => {
  for (const [trusted, isRefused] of [
    ['', true],
    ['127.0.0.1', false],
  ] as const) {
    const server = await started('127.0.0.1', { trusted })
    const sockets = await Promise.all(Array.from({ length: 1000 }, () => opened(server.port)))
    const more = await opened(server.port)
    more.write('GET /healthz HTTP/1.1\r\nHost: svc\r\nConnection: close\r\n\r\n')
    let text = ''
    more.on('data', (chunk) => (text += String(chunk)))
    await until(() => more.closed)
    assert.is(text === '', isRefused, text)
    for (const socket of sockets) socket.destroy()
    await until(async () => (await fetch(`http://127.0.0.1:${server.port}/healthz`).catch(() => null))?.ok)
    await server.close()
  }
})

connections.run()
