import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { hostname, networkInterfaces } from 'node:os'
import { deploy, handle, type Project } from '../support/build.ts'
import { openAddresses } from '../support/dnsServer.ts'
import { newId } from '../../src/ids.ts'
import { attackSuite } from './attack.ts'
import { openHostService } from './hostService.ts'
import { refuses, resultOf } from './tries.ts'
import { portOf } from './target.ts'

const CONNECTS = `
  import net from 'node:net'
  const connected = (options: any) => new Promise((resolve) => {
    try {
      const socket = net.connect({ ...options, timeout: 10000 })
      socket.on('connect', () => { socket.destroy(); resolve('reached') })
      socket.on('timeout', () => socket.destroy(new Error('late')))
      socket.on('error', (error: any) => resolve(error.code ?? error.message))
    } catch (error: any) { resolve(error.code ?? error.message) }
  })
  export const attack = async (hosts: string[], port: number) => {
    const outcomes: any = {}
    for (const host of hosts) outcomes[host] = await connected({ host, port })
    return outcomes
  }
  export const fetches = async (urls: string[]) => {
    const outcomes: any = {}
    for (const url of urls) outcomes[url] = await fetch(url).then((reply) => reply.text(), (error) => String(error.cause?.code ?? error.message))
    return outcomes
  }
`

/** Names that resolve to the server of the test. The operator allows all of them, so only the list of the project decides. */
const NAMES = [
  'api.good.test',
  'xapi.good.test',
  'api.good.test.evil.test',
  'good.test.evil.test',
  'sub.good.test',
  'x.sub.good.test',
  'evilsub.good.test',
  'x.y.sub.good.test',
  'api-good.test',
  'evil.test',
  'xn--pi-6kc.good.test',
  'api.good.test.test',
]

const LISTED = ['api.good.test', 'API.GOOD.TEST', 'api.good.test.', 'x.sub.good.test', 'x.y.sub.good.test']
const UNLISTED = [
  'xapi.good.test',
  'api.good.test.evil.test',
  'good.test.evil.test',
  'sub.good.test',
  'evilsub.good.test',
  'api-good.test',
  'evil.test',
  'аpi.good.test',
  'api.good.test.test',
  '*.sub.good.test',
  'api.good.test/',
  'api.good.test@evil.test',
  'api.good.test:80',
  'api.good.test evil.test',
  'api.good.test\u0000.evil.test',
  'evil.test#api.good.test',
  'api.good.test,evil.test',
  'api.good.test\r\nevil.test',
  'evil.test%2eapi.good.test',
  '[api.good.test]',
  'api..good.test',
  'api.good.test..',
  '.api.good.test',
]

attackSuite('lists of hosts', [
  {
    id: 'A/28-network/allow-list/look-alikes',
    attempt: `hosts that look like those of \`network\`: ${UNLISTED.length} other names, ports, user names in URLs, other spellings`,
    severity: 'high',
    async run(target) {
      const server = createServer((_request, reply) => reply.end('reached')).listen(0, '127.0.0.1')
      await once(server, 'listening')
      const { port } = server.address() as AddressInfo
      const other = await openHostService()
      const names = await openAddresses(Object.fromEntries(NAMES.map((name) => [name, [['127.0.0.1']]])))
      try {
        const fresh = await target.fresh({
          SVC_DNS_SERVERS: names.address,
          SVC_EGRESS_ALLOW: `*.test:${port},*.test:${other.port}`,
        })
        const { api } = fresh.attacker
        const network = [`api.good.test:${port}`, `*.sub.good.test:${port}`]
        await api.post<Project>('/projects', { name: 'listed', network })
        await deploy(api, 'listed', { 'main.ts': CONNECTS })
        const call = async (fn: string, ...args: unknown[]) =>
          resultOf(await handle(api, 'svc:call', { fn: `main/${fn}`, project: 'listed', args })) as Record<
            string,
            string
          >
        const reached = await call('attack', LISTED, port)
        for (const host of LISTED)
          if (reached[host] !== 'reached') throw new Error(`${host}: ${reached[host]}`)
        const tried = await call('attack', UNLISTED, port)
        const ports = await call('attack', LISTED, other.port)
        const urls = [
          `http://api.good.test@evil.test:${port}/`,
          `http://api.good.test:${port}@evil.test:${port}/`,
          `http://evil.test:${port}/#api.good.test`,
          `http://evil.test:${port}\\@api.good.test/`,
        ]
        const fetched = await call('fetches', urls)
        const through = Object.entries({ ...tried, ...ports, ...fetched }).filter(
          ([, outcome]) => outcome === 'reached',
        )
        if (through.length > 0 || other.reached > 0)
          throw new Error(
            `went through: ${through.map(([host]) => host).join(', ')}; ${other.reached} at the other port`,
          )
        return `${UNLISTED.length + LISTED.length + urls.length} refused, ${LISTED.length} spellings of listed hosts reached`
      } finally {
        await names.stop()
        server.close()
        other.close()
      }
    },
  },
  {
    id: 'A/28-network/spellings',
    attempt:
      'private addresses in rare spellings: translated, tunnelled, circled digits, names and addresses of the machine',
    severity: 'high',
    async run(target) {
      const victim = await openHostService()
      const own = Object.values(networkInterfaces()).flatMap((each) =>
        (each ?? []).map(({ address }) => address),
      )
      const hosts = [
        ...own,
        hostname(),
        'localhost6',
        'ip6-localhost',
        'localhost.localdomain',
        'a.localhost',
        'LOCALHOST',
        '①②⑦.⓪.⓪.①',
        '127。0。0。1',
        '127.0.0.1.',
        '127.0.0.01',
        '127.0.0.1%00',
        '0',
        '0x7f.0.0.1',
        '127.0.1',
        '00.0.0.0',
        '::ffff:7f00:1',
        '0:0:0:0:0:ffff:127.0.0.1',
        '::ffff:0:127.0.0.1',
        '64:ff9b:1::7f00:1',
        '64:ff9b::127.0.0.1',
        '2001:0:7f00:1::',
        '2002:7f00:0001::1',
        '2001:db8::1',
        'fe80::5efe:127.0.0.1',
        'fd00:ec2::254',
        'fec0::1',
        '::',
        '::1%1',
        '[::1]',
        '::127.0.0.1',
        '100::1',
        '5f00::1',
        'ff02::1',
        '192.0.0.192',
        '192.88.99.1',
        '198.18.0.1',
        '224.0.0.1',
        '255.255.255.255',
        'metadata.google.internal',
        'instance-data',
        'kubernetes.default.svc',
      ]
      try {
        const project = `p-${newId()}`
        await deploy(target.attacker.api, project, { 'main.ts': CONNECTS })
        const through: string[] = []
        for (const port of [victim.port, portOf(target)]) {
          const run = await handle(target.attacker.api, 'svc:call', {
            fn: 'main/attack',
            project,
            args: [hosts, port],
          })
          for (const [host, outcome] of Object.entries(resultOf(run) as Record<string, string>))
            if (outcome === 'reached' || outcome === 'ECONNREFUSED' || outcome === 'late')
              through.push(`${host}:${port} ${outcome}`)
        }
        if (through.length > 0 || victim.reached > 0) throw new Error(`dialled: ${through.join(', ')}`)
        return `${hosts.length} hosts are refused, at the ports of the service and of another one`
      } finally {
        victim.close()
      }
    },
  },
  {
    id: 'A/28-network/below',
    attempt:
      'reach the network below the modules: other classes of sockets, agents, dispatchers, pools and lookups',
    severity: 'high',
    async run(target) {
      const victim = await openHostService()
      try {
        const outcome = await refuses(
          target,
          {
            'original connect': `const net: any = await import('node:net'); const socket = new net.Socket(); const { connect } = Object.getPrototypeOf(net.Socket.prototype); return typeof connect === 'function' ? connect.call(socket, args.port, '127.0.0.1') && 'connects' : null`,
            'a deleted patch': `const net: any = await import('node:net'); const patched = net.Socket.prototype.connect; delete net.Socket.prototype.connect; try { const socket = new net.Socket(); return typeof socket.connect === 'function' ? await new Promise((resolve, reject) => socket.connect(args.port, '127.0.0.1').on('connect', () => resolve('connected')).on('error', reject)) : null } finally { net.Socket.prototype.connect = patched }`,
            agent: `const http: any = await import('node:http'); const agent = new http.Agent({ lookup: (_: any, options: any, done: any) => done(null, options.all ? [{ address: '127.0.0.1', family: 4 }] : '127.0.0.1', 4) }); return await new Promise((resolve, reject) => http.get({ host: 'a.example', port: args.port, agent }, (reply: any) => resolve('status ' + reply.statusCode)).on('error', reject))`,
            proxy: `const http: any = await import('node:http'); const agent = new http.Agent({ proxyEnv: { HTTP_PROXY: 'http://127.0.0.1:' + args.port, HTTPS_PROXY: 'http://127.0.0.1:' + args.port } }); return await new Promise((resolve, reject) => http.get({ host: 'example.com', port: 80, agent }, (reply: any) => resolve('status ' + reply.statusCode)).on('error', reject))`,
            'proxy of fetch': `process.env.HTTP_PROXY = process.env.http_proxy = 'http://127.0.0.1:' + args.port; process.env.NODE_USE_ENV_PROXY = '1'; (await import('node:http') as any).setGlobalProxyFromEnv?.(); return (await fetch('http://example.com')).status`,
            websocket: `return await new Promise((resolve, reject) => { const socket = new WebSocket('ws://127.0.0.1:' + args.port); socket.onopen = () => resolve('open'); socket.onerror = (event: any) => reject(event.error ?? new Error('refused')) })`,
            'event source': `return await new Promise((resolve, reject) => { const source = new (globalThis as any).EventSource('http://127.0.0.1:' + args.port); source.onopen = () => resolve('open'); source.onerror = () => reject(new Error('refused')) })`,
            'http2 with a socket': `const http2: any = await import('node:http2'); const net: any = await import('node:net'); return await new Promise((resolve, reject) => http2.connect('http://a.example', { createConnection: () => net.connect(args.port, '127.0.0.1').on('error', reject) }).on('error', reject).request({ ':path': '/' }).on('error', reject).on('response', () => resolve('answered')))`,
            'automatic selection': `const net: any = await import('node:net'); return await new Promise((resolve, reject) => net.connect({ host: 'a.example', port: args.port, autoSelectFamily: true, lookup: (_: any, __: any, done: any) => done(null, [{ address: '::ffff:127.0.0.1', family: 6 }, { address: '127.0.0.1', family: 4 }]) }).on('connect', () => resolve('connected')).on('error', reject))`,
          },
          { port: victim.port },
        )
        if (victim.reached > 0) throw new Error(`went through: ${victim.reached} connections`)
        return outcome
      } finally {
        victim.close()
      }
    },
  },
])
