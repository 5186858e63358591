import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import * as assert from 'uvu/assert'
import { openRedisRateLimiter } from '../../../src/adapters/redis/index.ts'
import { openLogger } from '../../../src/logger.ts'
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

failover.run()
