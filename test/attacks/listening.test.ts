import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { tempDir } from '../support/tempDir.ts'
import { attackSuite } from './attack.ts'
import { portOf } from './target.ts'
import { refuses } from './tries.ts'

attackSuite('servers and local sockets of functions', [
  {
    id: 'A/29-listen',
    attempt: "listen: the service's own port on other addresses (::1, wildcard, reusePort), any port",
    severity: 'medium',
    run: (target) => {
      const listen = (options: string) =>
        `const net = await import('node:net'); const server = net.createServer(); return await new Promise((resolve, reject) => { server.on('error', reject); server.listen(${options}, () => resolve('listens')) })`
      return refuses(
        target,
        {
          'port on ::1': listen(`args.port, '::1'`),
          wildcard: listen(`args.port, '::'`),
          reusePort: listen(`{ port: args.port, host: '127.0.0.1', reusePort: true }`),
          'any port': listen(`0, '127.0.0.1'`),
          http: `const http = await import('node:http'); return await new Promise((resolve, reject) => http.createServer().on('error', reject).listen(0, () => resolve('listens')))`,
          http2: `const http2 = await import('node:http2'); return await new Promise((resolve, reject) => http2.createServer().on('error', reject).listen(0, () => resolve('listens')))`,
          unpatched: `const net = await import('node:net'); const { setup } = net.Server.prototype; const server = new net.Server(); server._listen2 ? server._listen2('127.0.0.1', 0, 4, 511) : null; await new Promise((resolve, reject) => { server.on('error', reject); setTimeout(resolve, 200) }); return server.listening ? 'listens' : null`,
          datagrams: `const dgram = await import('node:dgram'); return await new Promise((resolve, reject) => dgram.createSocket('udp6').on('error', reject).bind(0, () => resolve('bound')))`,
        },
        { port: portOf(target) },
      )
    },
  },
  {
    id: 'A/30-unix-sockets',
    attempt: 'unix sockets: connect to one of the host, make a socket file outside the sandbox',
    severity: 'high',
    async run(target) {
      const path = join(tempDir(), 'daemon.sock')
      let reached = 0
      const daemon = createServer((socket) => {
        reached++
        socket.end('host daemon')
      }).listen(path)
      await once(daemon, 'listening')
      try {
        const refused = await refuses(
          target,
          {
            connect: `const net = await import('node:net'); return await new Promise((resolve, reject) => net.connect(args.path).on('connect', () => resolve('connected')).on('error', reject))`,
            http: `const http = await import('node:http'); return await new Promise((resolve, reject) => http.get({ socketPath: args.path, path: '/' }).on('socket', (socket) => socket.on('connect', () => resolve('connected'))).on('error', reject))`,
            tls: `const tls = await import('node:tls'); return await new Promise((resolve, reject) => tls.connect({ path: args.path }).on('secureConnect', () => resolve('connected')).on('error', reject))`,
            'socket file': `const net = await import('node:net'); return await new Promise((resolve, reject) => net.createServer().on('error', reject).listen(args.path + '.evil', () => resolve('made')))`,
            abstract: `const net = await import('node:net'); return await new Promise((resolve, reject) => net.createServer().on('error', reject).listen('\\\\0evil', () => resolve('made')))`,
          },
          { path },
        )
        if (reached > 0) throw new Error('went through: the daemon of the host answered')
        return refused
      } finally {
        daemon.close()
      }
    },
  },
  {
    id: 'A/04-hijack-localhost',
    attempt:
      "a function listens on [::1] at the service's port: clients of http://localhost give it their API keys, also after the run ended",
    severity: 'high',
    async run(target) {
      const port = portOf(target)
      const outcome = await refuses(
        target,
        {
          '::1': `const http = await import('node:http'); return await new Promise((resolve, reject) => http.createServer((request, reply) => reply.end('from the function')).on('error', reject).listen(args.port, '::1', () => resolve('listens')))`,
        },
        { port },
      )
      const answer = await fetch(`http://[::1]:${port}/healthz`).then(
        (reply) => reply.text(),
        () => 'nothing',
      )
      if (answer.includes('from the function'))
        throw new Error('went through: the function answered a client')
      return outcome
    },
  },
])
