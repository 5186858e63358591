import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import * as assert from 'uvu/assert'
import { openOtlpTracer } from '../../../src/adapters/otlp/tracer.ts'
import type { Logger } from '../../../src/logger.ts'
import { suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'

const SEND_MS = 200
const BYTE_EVERY_MS = 20

/** A collector that sends a byte of its reply now and then, and never the last one. */
const openEndless = async (status: number) => {
  const replies: { isOver: boolean }[] = []
  const trickle = (reply: ServerResponse): void => {
    const state = { isOver: false }
    replies.push(state)
    reply.writeHead(status)
    const timer = setInterval(() => reply.write(' '), BYTE_EVERY_MS)
    reply.on('close', () => {
      clearInterval(timer)
      state.isOver = true
    })
  }
  const server = createServer((request, reply) => void request.resume().on('end', () => trickle(reply)))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    replies,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

const openTracer = (endpoint: string, sendMs?: number) => {
  const warnings: string[] = []
  const logger = { warn: (message: string) => void warnings.push(message) } as unknown as Logger
  const options = { endpoint, headers: {}, serviceName: 'svc', ratio: 1, version: '1' }
  return { warnings, tracer: openOtlpTracer({ ...options, ...(sendMs && { sendMs }) }, logger) }
}

const endless = suite('a collector of traces whose reply never ends')

for (const status of [200, 503])
  endless(`is given up after a while, and gets the next spans, with status ${status}`, async () => {
    const collector = await openEndless(status)
    const { tracer, warnings } = openTracer(collector.url, SEND_MS)
    for (const count of [1, 2]) {
      tracer.begin('work', { kind: 'server' }).end()
      await until(() => collector.replies.length === count && collector.replies.every(({ isOver }) => isOver))
    }
    assert.is(
      warnings[0],
      'The collector of traces did not end its reply within 200 ms, so spans may be lost',
    )
    await tracer.close()
    collector.close()
  })

endless('has no open connection after the end', async () => {
  const collector = await openEndless(200)
  const { tracer } = openTracer(collector.url)
  tracer.begin('work', { kind: 'server' }).end()
  await tracer.close()
  await until(() => collector.replies.every(({ isOver }) => isOver))
  assert.is(collector.replies.length, 1)
  collector.close()
})

endless.run()
