import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:http'
import { deploy, handle, type Project } from '../support/build.ts'
import { openAddresses } from '../support/dnsServer.ts'
import { attackSuite } from './attack.ts'
import { openHostService } from './hostService.ts'
import { portOf } from './target.ts'
import { refuses, resultOf } from './tries.ts'

const CONNECT = `
  const net = await import('node:net')
  return await new Promise((resolve, reject) => {
    const socket = net.connect({ host: args.host, port: args.port })
    socket.on('connect', () => resolve('connected to ' + socket.remoteAddress)).on('error', reject)
  })
`
const connectTo = (host: string, port: string) =>
  CONNECT.replace('args.host', host).replace('args.port', port)

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
      const victim = await openHostService()
      try {
        const port = portOf(target)
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
      const victim = await openHostService()
      const names = await openAddresses({
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
        await names.stop()
        victim.close()
      }
    },
  },
  {
    id: 'A/28-network/redirect',
    attempt: 'an allowed server redirects to the metadata address and to loopback',
    severity: 'high',
    async run(target) {
      const victim = await openHostService()
      const allowed = createServer((request, reply) =>
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
          { port, victim: victim.port, service: portOf(fresh) },
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
      const server = await openHostService()
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
])
