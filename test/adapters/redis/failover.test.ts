import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import * as assert from 'uvu/assert'
import { openRedisHints, openRedisRateLimiter } from '../../../src/adapters/redis/index.ts'
import { probeRedis } from '../../../src/adapters/redis/probe.ts'
import { openLogger, silent } from '../../../src/logger.ts'
import type { Hints } from '../../../src/ports/hints.ts'
import { suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'

const failover = suite('Redis adapter: failover')

failover('a connection to a server that has become a replica is replaced', async () => {
  let connections = 0
  const sockets: Socket[] = []
  const address = createServer((socket) => {
    const isReplica = ++connections === 1 // the address leads to the new primary from then on
    sockets.push(socket.on('error', () => {}))
    socket.on('data', (data) => {
      for (const [, command = ''] of String(data).matchAll(/^\*\d+\r\n\$\d+\r\n(\w+)/gm))
        if (!/^evalsha$/i.test(command)) socket.write('$0\r\n\r\n')
        else socket.write(isReplica ? '-READONLY You can not write to a replica.\r\n' : '*2\r\n:1\r\n:7\r\n')
    })
  }).listen(0, '127.0.0.1')
  await once(address, 'listening')
  const lines: string[] = []
  const logger = openLogger((line) => void lines.push(line))
  const { port } = address.address() as AddressInfo
  const limiter = await openRedisRateLimiter(`redis://127.0.0.1:${port}`, logger, { answerMs: 10_000 })
  const take = () => limiter.take('k', { perSecond: 1, burst: 10 })
  assert.ok((await take()).allowed) // counted by this node
  await until(async () => (await take()).resetMs === 1)
  assert.is(connections, 2)
  assert.ok(lines.some((line) => line.includes('rate limits apply to all nodes together again')))
  await limiter.close()
  for (const socket of sockets) socket.destroy()
  address.close()
})

/** The commands in a chunk, without their arguments of several lines. */
const commandsIn = (chunk: string): readonly (readonly string[])[] =>
  [...chunk.matchAll(/\*\d+\r\n((?:\$\d+\r\n[^\r]*\r\n)+)/g)].map(([, command = '']) =>
    command.split('\r\n').filter((_, i) => i % 2 === 1),
  )

const bulk = (...texts: readonly string[]): string =>
  texts.map((text) => `$${text.length}\r\n${text}\r\n`).join('')

/** Two servers behind one address. A failover leads it to the other one, and closes no connection. */
const openPair = async (roles: ['primary' | 'replica', 'primary' | 'replica']) => {
  let current = 0
  let connections = 0
  const sockets: Socket[] = []
  const subscribers: [Set<Socket>, Set<Socket>] = [new Set(), new Set()]
  const address = createServer((socket) => {
    connections++
    const server = current as 0 | 1
    sockets.push(socket.on('error', () => {}))
    const answerTo = ([name = '', ...args]: readonly string[]): string => {
      const [first = '', second = ''] = args
      switch (name.toLowerCase()) {
        case 'set':
          return roles[server] === 'replica' ? '-READONLY You can not write to a replica.\r\n' : '$-1\r\n'
        case 'subscribe':
          subscribers[server].add(socket)
          return args.map((each, i) => `>3\r\n${bulk('subscribe', each)}:${i + 1}\r\n`).join('')
        case 'publish':
          for (const each of subscribers[server]) each.write(`>3\r\n${bulk('message', first, second)}`)
          return ':1\r\n'
        case 'time':
          return `*2\r\n${bulk('7', '0')}`
        default:
          return '$0\r\n\r\n'
      }
    }
    socket.on('data', (data) => {
      for (const command of commandsIn(String(data))) socket.write(answerTo(command))
    })
  }).listen(0, '127.0.0.1')
  await once(address, 'listening')
  const { port } = address.address() as AddressInfo
  return {
    url: `redis://127.0.0.1:${port}`,
    connections: () => connections,
    lead: (to: 0 | 1) => void (current = to),
    roles,
    close() {
      for (const socket of sockets) socket.destroy()
      address.close()
    },
  }
}

/** Resolves when a hint of one node arrives at the other one. */
const passes = (from: Hints, to: Hints): Promise<unknown> => {
  let isHeard = false
  const stop = to.on('wanted', () => void (isHeard = true))
  return until(() => (from.publish('wanted', 'a'), isHeard)).finally(stop)
}

failover('hints pass between nodes on the former primary and on the new one', async () => {
  const pair = await openPair(['primary', 'replica'])
  const lines: string[] = []
  const former = await openRedisHints(
    pair.url,
    openLogger((line) => void lines.push(line)),
  )
  pair.roles.reverse()
  pair.lead(1)
  const late = await openRedisHints(pair.url, silent)
  await passes(former, late)
  await passes(late, former)
  assert.ok(former.connected)
  await until(() => lines.length === 2)
  assert.match(lines[0] ?? '', 'it is a replica, which refuses writes')
  assert.match(lines[1] ?? '', 'nodes exchange hints again')
  await former.close()
  await late.close()
  pair.close()
})

failover(
  'a server that is a replica for long is reported once, and used when it is the primary',
  async () => {
    const pair = await openPair(['replica', 'primary'])
    const lines: string[] = []
    const hints = await openRedisHints(
      pair.url,
      openLogger((line) => void lines.push(line)),
    )
    await until(() => pair.connections() > 6)
    assert.not.ok(hints.connected)
    assert.is(lines.length, 1, lines.join(''))
    pair.roles.reverse()
    await until(() => hints.connected)
    await hints.close()
    pair.close()
  },
)

failover('svc doctor reports a replica', async () => {
  const pair = await openPair(['replica', 'primary'])
  const failure = await probeRedis(pair.url).then(() => '', String)
  assert.match(failure, 'is unavailable: it is a replica, which refuses writes')
  pair.close()
})

failover.run()
