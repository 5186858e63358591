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
    return await endToEndOn(server, EVENTS)
  } finally {
    await server.stop()
  }
}

/** Resolves when the given number of runs have succeeded. */
type Ended = (count: number) => Promise<unknown>

const byStats =
  (server: BenchServer): Ended =>
  (count) =>
    until(async () => (await server.api<{ succeeded: number }>('GET', '/runs/stats')).succeeded >= count)

/** Counts facts instead of documents, for read models that cannot keep up. */
export const byStream = async (server: BenchServer): Promise<Ended> => {
  const reply = await fetch(`${server.url}/v1/env/subscribe`, {
    headers: { Authorization: `Bearer ${server.key}` },
  })
  let ended = 0
  const count = async () => {
    for await (const chunk of reply.body ?? []) {
      ended +=
        Buffer.from(chunk as Uint8Array)
          .toString()
          .split('event: run:stop').length - 1
    }
  }
  count().catch(() => {}) // ends with the server
  return (wanted) => until(() => ended >= wanted)
}

export const endToEndOn = async (
  server: BenchServer,
  events: number,
  ended: Ended = byStats(server),
): Promise<Figure[]> => {
  await server.deploy(NO_OP)
  const send = (requests: number) =>
    load({
      url: `${server.url}/v1/events`,
      headers: { Authorization: `Bearer ${server.key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ event_type: 'work', event_data: { n: 1 } }),
      connections: 64,
      requests,
    })
  await send(events / 6)
  await ended(events / 6)
  const cpu = server.cpuMs()
  const began = performance.now()
  const published = await send(events)
  await ended(events / 6 + events)
  const seconds = (performance.now() - began) / 1000
  if (published.failed > 0) throw new Error(`${published.failed} publishes failed`)
  return [
    {
      what: 'event → handler → terminal fact, 64 connections',
      value: events / seconds,
      unit: 'per s',
      atLeast: 5000,
    },
    {
      what: '  CPU time of the server per event',
      value: ((server.cpuMs() - cpu) * 1000) / events,
      unit: 'µs',
    },
    { what: '  of which publishing alone', value: published.perSecond, unit: 'per s' },
    { what: '  publish reply p50', value: published.p50, unit: 'ms' },
    { what: '  publish reply p99', value: published.p99, unit: 'ms' },
  ]
}
