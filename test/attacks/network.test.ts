import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { createServer as createHttp } from 'node:http'
import { join } from 'node:path'
import { deploy, handle, type Project, type Run } from '../support/build.ts'
import { tempDir } from '../support/tempDir.ts'
import { attackSuite } from './attack.ts'
import { runIn, type Target } from './target.ts'
import { refuses } from './tries.ts'

const CONNECT = `
  const net = await import('node:net')
  return await new Promise((resolve, reject) => {
    const socket = net.connect({ host: args.host, port: args.port })
    socket.on('connect', () => resolve('connected to ' + socket.remoteAddress)).on('error', reject)
  })
`
const connectTo = (host: string, port: string) =>
  CONNECT.replace('args.host', host).replace('args.port', port)

/** A name server that answers A queries with the next of the addresses of a name. */
const openNames = async (records: Readonly<Record<string, readonly (readonly string[])[]>>) => {
  const socket = createSocket('udp4')
  const asked = new Map<string, number>()
  socket.on('message', (question, { port, address }) => {
    let at = 12
    const labels: string[] = []
    for (let length = question[at] ?? 0; length > 0; length = question[at] ?? 0) {
      labels.push(question.toString('latin1', at + 1, at + 1 + length))
      at += length + 1
    }
    const isA = question.readUInt16BE(at + 1) === 1
    const name = labels.join('.').toLowerCase()
    const answers = records[name]
    const count = asked.get(name) ?? 0
    if (isA) asked.set(name, count + 1)
    const found = isA ? (answers?.[Math.min(count, answers.length - 1)] ?? []) : []
    const header = Buffer.alloc(12)
    question.copy(header, 0, 0, 2)
    header.writeUInt16BE(0x8180 | (answers ? 0 : 3), 2)
    header.writeUInt16BE(1, 4)
    header.writeUInt16BE(found.length, 6)
    const record = (ip: string) =>
      Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...ip.split('.').map(Number)])
    socket.send(Buffer.concat([header, question.subarray(12, at + 5), ...found.map(record)]), port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return {
    address: `127.0.0.1:${socket.address().port}`,
    asked,
    close: () => socket.close(),
  }
}

/** A service of the host that must not be reached. */
const openVictim = async () => {
  let reached = 0
  const server = createHttp((_request, reply) => {
    reached++
    reply.end('a secret of the host')
  }).listen(0, '127.0.0.1')
  server.on('connection', () => reached++)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    get reached() {
      return reached
    },
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** Resident memory of the service in MiB. */
const residentMb = ({ server }: Target): number => {
  const status = readFileSync(`/proc/${server.process.pid}/status`, 'utf8')
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024)
}

const servicePort = ({ server }: Target) => Number(new URL(server.url).port)

/** The result of a function that caught everything. */
const resultOf = ({ status, result, error }: Run): unknown => {
  if (status === 'succeeded') return result
  throw new Error(`Expected the function to catch its errors, it ended ${status}: ${JSON.stringify(error)}`)
}

/** Opens the pipe of the process beside Node's modules, as code does that removed their replacements. */
const PIPE = `
  const net = await import('node:net')
  const frame = (kind, id, payload = Buffer.alloc(0)) => {
    const header = Buffer.alloc(9)
    header[0] = kind
    header.writeUInt32BE(id, 1)
    header.writeUInt32BE(payload.length, 5)
    return Buffer.concat([header, payload])
  }
  const open = (id, host = '127.0.0.1', port = 80) =>
    frame(1, id, Buffer.from(JSON.stringify({ host, port, family: 0 })))
  const pipe = new net.Socket({ fd: 4 })
  pipe.on('error', () => {})
`

const FETCH = `
  export const attack = async (url) => {
    try { return { value: await (await fetch(url)).text() } }
    catch (error) { return { code: (error.cause ?? error).code, message: (error.cause ?? error).message } }
  }
`

attackSuite('the network of functions', [
  {
    id: 'A/28-network',
    attempt: 'network: the service itself, another service on loopback, the metadata address, DNS',
    severity: 'medium',
    async run(target) {
      const victim = await openVictim()
      try {
        const port = servicePort(target)
        const refused = await refuses(
          target,
          {
            service: `return (await fetch('http://127.0.0.1:' + args.port + '/healthz')).status`,
            'service by name': `return (await fetch('http://localhost:' + args.port + '/healthz')).status`,
            'service on ::1': `return (await fetch('http://[::1]:' + args.port + '/healthz')).status`,
            loopback: connectTo('"127.0.0.1"', 'args.victim'),
            'loopback 127.9.9.9': connectTo('"127.9.9.9"', 'args.victim'),
            unspecified: connectTo('"0.0.0.0"', 'args.victim'),
            'unspecified 6': connectTo('"::"', 'args.victim'),
            mapped: connectTo('"::ffff:127.0.0.1"', 'args.victim'),
            compatible: connectTo('"::127.0.0.1"', 'args.victim'),
            nat64: connectTo('"64:ff9b::7f00:1"', 'args.victim'),
            '6to4': connectTo('"2002:7f00:1::"', 'args.victim'),
            octal: connectTo('"0177.0.0.1"', 'args.victim'),
            hex: connectTo('"0x7f000001"', 'args.victim'),
            decimal: connectTo('"2130706433"', 'args.victim'),
            short: connectTo('"127.1"', 'args.victim'),
            dot: connectTo('"localhost."', 'args.victim'),
            zone: connectTo('"::1%lo"', 'args.victim'),
            wide: connectTo('"１２７.0.0.1"', 'args.victim'),
            metadata: `return (await fetch('http://169.254.169.254/latest/meta-data')).status`,
            'metadata of Azure': connectTo('"168.63.129.16"', '80'),
            'metadata of Alibaba': connectTo('"100.100.100.200"', '80'),
            private: connectTo('"10.0.0.1"', '80'),
            dns: `const { Resolver } = await import('node:dns/promises'); const own = new Resolver(); own.setServers(['127.0.0.1']); return (await own.resolve4('localhost')).includes('127.0.0.1') || null`,
            'own lookup': `const net = await import('node:net'); return await new Promise((resolve, reject) => net.connect({ host: 'a.example', port: args.victim, lookup: (host, options, done) => options.all ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4) }).on('connect', () => resolve('connected')).on('error', reject))`,
            tls: `const tls = await import('node:tls'); return await new Promise((resolve, reject) => tls.connect(args.victim, '127.0.0.1').on('secureConnect', () => resolve('connected')).on('error', reject))`,
            http2: `const http2 = await import('node:http2'); return await new Promise((resolve, reject) => http2.connect('http://127.0.0.1:' + args.victim).on('error', reject).request({ ':path': '/' }).on('response', () => resolve('answered')).on('error', reject))`,
            udp: `const dgram = await import('node:dgram'); const socket = dgram.createSocket('udp4'); return await new Promise((resolve, reject) => socket.on('error', reject).send('x', 53, '127.0.0.1', (error) => error ? reject(error) : resolve('sent')))`,
            'own connect': `const net = await import('node:net'); const { TCP, constants } = process.binding('tcp_wrap'); const handle = new TCP(constants.SOCKET); return handle.connect({}, '127.0.0.1', args.victim) === 0 ? 'connected' : null`,
          },
          { port, victim: victim.port },
        )
        if (victim.reached > 0) throw new Error(`went through: ${victim.reached} connections`)
        return refused
      } finally {
        victim.close()
      }
    },
  },
  {
    id: 'A/28-network/rebinding',
    attempt: 'DNS rebinding: a name whose second answer is private, or whose answers are mixed',
    severity: 'high',
    async run(target) {
      const victim = await openVictim()
      const names = await openNames({
        'rebinding.example': [['192.0.2.1'], ['127.0.0.1']],
        'second.example': [['1.1.1.1'], ['127.0.0.1']],
        'mixed.example': [['1.1.1.1', '127.0.0.1']],
        'private.example': [['127.0.0.1']],
      })
      try {
        const fresh = await target.fresh({ SVC_DNS_SERVERS: names.address })
        const outcome = await refuses(
          fresh,
          {
            mixed: `return (await fetch('http://mixed.example:' + args.victim)).status`,
            private: `return (await fetch('http://private.example:' + args.victim)).status`,
            'first answer': `return (await fetch('http://rebinding.example:' + args.victim)).status`,
            'second answer': `return (await fetch('http://rebinding.example:' + args.victim)).status`,
            'checked, then changed': `const dns = await import('node:dns/promises'); await dns.lookup('second.example'); return (await fetch('http://second.example:' + args.victim)).status`,
          },
          { victim: victim.port },
        )
        if (victim.reached > 0) throw new Error(`went through: ${victim.reached} connections`)
        if (names.asked.size < 4)
          throw new Error(`Expected the names to be resolved, got ${names.asked.size}`)
        return outcome
      } finally {
        names.close()
        victim.close()
      }
    },
  },
  {
    id: 'A/28-network/redirect',
    attempt: 'an allowed server redirects to the metadata address and to loopback',
    severity: 'high',
    async run(target) {
      const victim = await openVictim()
      const allowed = createHttp((request, reply) =>
        reply.writeHead(302, { location: decodeURIComponent(request.url?.slice(1) ?? '') }).end(),
      ).listen(0, '127.0.0.1')
      await once(allowed, 'listening')
      const { port } = allowed.address() as AddressInfo
      try {
        const fresh = await target.fresh({ SVC_EGRESS_ALLOW: `127.0.0.1:${port}` })
        const outcome = await refuses(
          fresh,
          {
            metadata: `return (await fetch('http://127.0.0.1:' + args.port + '/' + encodeURIComponent('http://169.254.169.254/'))).status`,
            loopback: `return (await fetch('http://127.0.0.1:' + args.port + '/' + encodeURIComponent('http://127.0.0.1:' + args.victim))).status`,
            service: `return (await fetch('http://127.0.0.1:' + args.port + '/' + encodeURIComponent('http://127.0.0.1:' + args.service))).status`,
          },
          { port, victim: victim.port, service: servicePort(fresh) },
        )
        if (victim.reached > 0) throw new Error('went through')
        return outcome
      } finally {
        allowed.close()
        victim.close()
      }
    },
  },
  {
    id: 'A/28-network/allow-list',
    attempt:
      'a host outside `network` of the project, also from evaluated code, and over a connection from before a change of the list',
    severity: 'medium',
    async run(target) {
      const server = await openVictim()
      try {
        const fresh = await target.fresh({
          SVC_EGRESS_ALLOW: `127.0.0.1:${server.port},localhost:${server.port}`,
        })
        const { api } = fresh.attacker
        const url = `http://127.0.0.1:${server.port}/`
        const byName = `http://localhost:${server.port}/`
        await api.post<Project>('/projects', { name: 'listed', network: [`127.0.0.1:${server.port}`] })
        await deploy(api, 'listed', { 'main.ts': FETCH })
        const attempt = async (target: string) =>
          resultOf(
            await handle(api, 'svc:call', { fn: 'main/attack', project: 'listed', args: [target] }),
          ) as {
            value?: string
            code?: string
            message?: string
          }
        const before = await attempt(url)
        if (before.value === undefined)
          throw new Error(`Expected a listed host to be reached: ${before.message}`)
        const other = await attempt(byName)
        if (other.value !== undefined) throw new Error('went through: a host outside the list')
        const evaluated = await api.post<{ value?: unknown; result?: unknown }>('/projects/listed/eval', {
          code: `await fetch('${byName}').then(() => 'reached', (error) => error.cause.code)`,
        })
        if (!JSON.stringify(evaluated).includes('ERR_EGRESS_REFUSED'))
          throw new Error(`went through: evaluated code ${JSON.stringify(evaluated)}`)
        await api.patch<Project>('/projects/listed', { network: [] })
        const after = await attempt(url)
        if (after.value !== undefined) throw new Error('went through: a host that was removed from the list')
        return `refused: ${other.message}`
      } finally {
        server.close()
      }
    },
  },
  {
    id: 'A/28-network/multiplexer',
    attempt: 'abuse of the pipe to the service: garbage, 10,000 opens, reused ids, window violations',
    severity: 'high',
    async run(target) {
      const { api } = target.victim
      const abuse = (bytes: string) => `
        ${PIPE}
        pipe.write(${bytes})
        await new Promise((resolve) => setTimeout(resolve, 3000))
        return 'still runs'
      `
      const outcomes: string[] = []
      for (const [name, bytes] of [
        ['garbage', `Buffer.alloc(100000, 'x')`],
        ['10,000 opens', `Buffer.concat(Array.from({ length: 10000 }, (_, id) => open(id + 1)))`],
        ['reused id', `Buffer.concat([open(1), open(1)])`],
        ['data without a stream', `frame(5, 1, Buffer.alloc(40000))`],
        ['endless frame', `Buffer.from([5, 0, 0, 0, 1, 255, 255, 255, 255])`],
      ]) {
        const run = await runIn(target.attacker.api, {
          'main.ts': `export const attack = async () => { ${abuse(bytes ?? '')} }`,
        })
        if (run.status === 'succeeded') throw new Error(`went through: ${name}`)
        outcomes.push(`${name}: ${run.error?.code}`)
        await api.get('/projects') // the service answers other tenants
      }
      return outcomes.join(', ')
    },
  },
  {
    id: 'A/28-network/own-frames',
    attempt: 'code that writes correct frames to the pipe itself, to reach loopback and the service',
    severity: 'high',
    async run(target) {
      const victim = await openVictim()
      try {
        const run = await runIn(
          target.attacker.api,
          {
            'main.ts': `export const attack = async (hosts, ports) => {
              ${PIPE}
              let received = Buffer.alloc(0)
              pipe.on('data', (chunk) => { received = Buffer.concat([received, chunk]) })
              let id = 0
              for (const host of hosts) for (const port of ports) pipe.write(open(++id, host, port))
              pipe.write(frame(2, ++id, Buffer.from(JSON.stringify({ host: 'localhost', family: 0 }))))
              const answers = []
              while (answers.length < id) {
                await new Promise((resolve) => setTimeout(resolve, 20))
                while (received.length >= 9 && received.length >= 9 + received.readUInt32BE(5)) {
                  const end = 9 + received.readUInt32BE(5)
                  answers.push([received[0], received.toString('utf8', 9, end)])
                  received = received.subarray(end)
                }
              }
              return answers
            }`,
          },
          [
            '127.0.0.1',
            'localhost',
            '::1',
            '::ffff:127.0.0.1',
            '0.0.0.0',
            '2130706433',
            '0177.1',
            'LOCALHOST.',
          ],
          [victim.port, servicePort(target)],
        )
        const answers = resultOf(run) as readonly (readonly [number, string])[]
        const through = answers.filter(([, text]) => !text.includes('ERR_EGRESS_REFUSED'))
        if (through.length > 0 || victim.reached > 0)
          throw new Error(`went through: ${JSON.stringify(through)}`)
        return `refused by the service: ${answers.length} of ${answers.length}`
      } finally {
        victim.close()
      }
    },
  },
  {
    id: 'A/28-network/unread',
    attempt: 'large downloads over all connections of a process that reads none of them',
    severity: 'high',
    async run(target) {
      const data = Buffer.alloc(1 << 20)
      const source = createServer((socket) => {
        socket.on('error', () => {})
        const more = () => {
          while (socket.write(data));
        }
        socket.on('drain', more)
        more()
      }).listen(0, '127.0.0.1')
      await once(source, 'listening')
      const { port } = source.address() as AddressInfo
      try {
        const fresh = await target.fresh({ SVC_EGRESS_ALLOW: `127.0.0.1:${port}` })
        await runIn(fresh.attacker.api, { 'main.ts': 'export const attack = () => 1' })
        const before = residentMb(fresh)
        const run = await runIn(
          fresh.attacker.api,
          {
            'main.ts': `export const attack = async (port) => {
              ${PIPE}
              pipe.pause()
              for (let id = 1; id <= 128; id++) pipe.write(open(id, '127.0.0.1', port))
              await new Promise((resolve) => setTimeout(resolve, 3000))
              return 'done'
            }`,
          },
          port,
        )
        const grown = residentMb(fresh) - before
        if (grown > 64) throw new Error(`went through: the service grew by ${grown} MiB`)
        return `run ${run.status}; the service grew by ${grown} MiB`
      } finally {
        source.close()
      }
    },
  },
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
        { port: servicePort(target) },
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
      const port = servicePort(target)
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
