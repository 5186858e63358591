import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Figure } from './figure.ts'
import { percentile } from './load.ts'
import { BenchServer } from './server.ts'
import { until } from './until.ts'

const CLIENTS = 1000
const EVENTS = 100
const EVERY_MS = 100

const now = (): number => performance.timeOrigin + performance.now()

/**
 * The time from a request to the socket of each of 1,000 clients of the environment stream, at ten events per second.
 */
export const sse = async (): Promise<Figure[]> => {
  const server = await BenchServer.start()
  const sockets: Socket[] = []
  try {
    const took: number[] = []
    let ready = 0
    for (let n = 0; n < CLIENTS; n++) {
      const { hostname, port } = new URL(server.url)
      const socket = connect(Number(port), hostname)
      sockets.push(socket)
      socket.write(
        `GET /v1/env/subscribe HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${server.key}\r\n\r\n`,
      )
      socket.once('data', () => ready++)
      socket.on('data', (chunk: Buffer) => {
        const at = now()
        for (const [, sent] of chunk.toString('latin1').matchAll(/"event_type":"at:([\d.]+)"/g))
          took.push(at - Number(sent))
      })
      if (n % 50 === 49) await until(() => ready > n)
    }
    for (let n = 0; n < EVENTS; n++) {
      await server.api('POST', '/events', { event_type: `at:${now()}`, event_data: null })
      await delay(EVERY_MS)
    }
    await until(() => took.length >= CLIENTS * EVENTS)
    took.sort((a, b) => a - b)
    return [
      { what: '1,000 SSE clients at 10 events/s, delivery p50', value: percentile(took, 0.5), unit: 'ms' },
      { what: '  p99', value: percentile(took, 0.99), unit: 'ms', atMost: 50 },
    ]
  } finally {
    for (const socket of sockets) socket.destroy()
    await server.stop()
  }
}
