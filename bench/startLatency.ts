import { setTimeout as delay } from 'node:timers/promises'
import type { Figure } from './figure.ts'
import { load, percentile } from './load.ts'
import { BenchServer } from './server.ts'
import { until } from './until.ts'

const CLOCK = 'performance.timeOrigin + performance.now()'
const MARK = {
  'mark.js': `import { fn } from 'svc'\nexport const onMark = fn({ 'on-event': 'mark' }, () => ${CLOCK})\n`,
}
const EVENTS = 400

/** The time from sending an event to the first line of its handler, one event at a time with pauses. */
export const startLatency = async (): Promise<Figure[]> => {
  const server = await BenchServer.start()
  try {
    await server.deploy(MARK)
    const sent: number[] = []
    for (let n = 0; n < EVENTS + 50; n++) {
      const now = performance.timeOrigin + performance.now()
      const { failed } = await load({
        url: `${server.url}/v1/events`,
        headers: { Authorization: `Bearer ${server.key}` },
        body: JSON.stringify({ event_type: 'mark', event_data: null }),
        connections: 1,
        requests: 1,
      })
      if (failed === 0) sent.push(now)
      await delay(5)
    }
    await until(
      async () => (await server.api<{ succeeded: number }>('GET', '/runs/stats')).succeeded >= sent.length,
    )
    const started: number[] = []
    for (let offset = 0; offset < sent.length; offset += 100) {
      const runs = await server.api<{ result: number }[]>('GET', `/runs?limit=100&offset=${offset}`)
      started.push(...runs.map(({ result }) => result))
    }
    started.reverse()
    const took = sent
      .map((at, n) => (started[n] ?? Number.NaN) - at)
      .slice(50)
      .sort((a, b) => a - b)
    return [
      { what: 'publish → handler started, idle, p50', value: percentile(took, 0.5), unit: 'ms', atMost: 2 },
      { what: '  p99', value: percentile(took, 0.99), unit: 'ms', atMost: 10 },
    ]
  } finally {
    await server.stop()
  }
}
