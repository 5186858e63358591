import { load } from './load.ts'
import type { Figure } from './figure.ts'
import { BenchServer } from './server.ts'
import { until } from './until.ts'

const NO_OP = {
  'work.js': "import { fn } from 'svc'\nexport const onWork = fn({ 'on-event': 'work' }, () => null)\n",
}
const EVENTS = 30_000

/** `POST /v1/events` → handler in a child process → terminal fact durable. */
export const endToEnd = async (): Promise<Figure[]> => {
  const server = await BenchServer.start()
  try {
    await server.deploy(NO_OP)
    const send = (requests: number) =>
      load({
        url: `${server.url}/v1/events`,
        headers: { Authorization: `Bearer ${server.key}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({ event_type: 'work', event_data: { n: 1 } }),
        connections: 64,
        requests,
      })
    const ended = (count: number) =>
      until(async () => (await server.api<{ succeeded: number }>('GET', '/runs/stats')).succeeded >= count)
    await send(5000)
    await ended(5000)
    const cpu = server.cpuMs()
    const began = performance.now()
    const published = await send(EVENTS)
    await ended(5000 + EVENTS)
    const seconds = (performance.now() - began) / 1000
    if (published.failed > 0) throw new Error(`${published.failed} publishes failed`)
    return [
      {
        what: 'event → handler → terminal fact, 64 connections',
        value: EVENTS / seconds,
        unit: 'per s',
        atLeast: 5000,
      },
      {
        what: '  CPU time of the server per event',
        value: ((server.cpuMs() - cpu) * 1000) / EVENTS,
        unit: 'µs',
      },
      { what: '  of which publishing alone', value: published.perSecond, unit: 'per s' },
      { what: '  publish reply p50', value: published.p50, unit: 'ms' },
      { what: '  publish reply p99', value: published.p99, unit: 'ms' },
    ]
  } finally {
    await server.stop()
  }
}
