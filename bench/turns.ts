import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Figure } from './figure.ts'
import { load, percentile } from './load.ts'
import { BenchServer } from './server.ts'
import type { RecordedTurns } from './turnRecorder.ts'
import { until } from './until.ts'
import { HOOK } from './webhook.ts'

const NO_OP = {
  ...HOOK,
  'work.js': "import { fn } from 'svc'\nexport const onWork = fn({ 'on-event': 'work' }, () => null)\n",
}
const REQUESTS = 10_000
/** A turn that is longer delays all clients noticeably. */
const LONG_MS = 5

/** The turns of the event loop while webhooks and events arrive on 320 connections. */
export const turns = async (): Promise<Figure[]> => {
  const dir = mkdtempSync(join(tmpdir(), 'svc-turns-'))
  const file = join(dir, 'turns.json')
  const recorder = new URL('turnRecorder.ts', import.meta.url).href
  const server = await BenchServer.start(undefined, {
    NODE_OPTIONS: `--disable-warning=ExperimentalWarning --import ${recorder}`,
    BENCH_TURNS: file,
  })
  try {
    const { '/hook': url = '' } = await server.deploy(NO_OP)
    await both(server, url, REQUESTS / 4)
    server.process.kill('SIGUSR2')
    await delay(100)
    await both(server, url, REQUESTS)
    server.process.kill('SIGUSR2')
    await until(() => Promise.resolve(existsSync(file)))
    return figuresOf(JSON.parse(readFileSync(file, 'utf8')) as RecordedTurns)
  } finally {
    await server.stop()
    rmSync(dir, { recursive: true, force: true })
  }
}

const both = async (server: BenchServer, url: string, requests: number): Promise<void> => {
  const events = {
    url: `${server.url}/v1/events`,
    headers: { Authorization: `Bearer ${server.key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ event_type: 'work', event_data: { n: 1 } }),
    connections: 64,
    requests: requests / 2,
  }
  const results = await Promise.all([
    load({ url, body: '{}', connections: 256, requests: requests / 2 }),
    load(events),
  ])
  const failed = results.reduce((sum, result) => sum + result.failed, 0)
  if (failed > 0) throw new Error(`${failed} requests failed`)
}

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0)

const figuresOf = ({ wall, turns: recorded, pauses }: RecordedTurns): Figure[] => {
  const active = recorded.map(([ms]) => ms).sort((a, b) => a - b)
  const cpu = recorded.map(([, ms]) => ms).sort((a, b) => a - b)
  const overLimit = active.filter((ms) => ms > LONG_MS)
  const shareOf = (ms: number) => (100 * ms) / wall
  return [
    { what: `time in turns over ${LONG_MS} ms`, value: shareOf(sumOf(overLimit)), unit: '%' },
    { what: '  turn, p50', value: percentile(active, 0.5), unit: 'ms' },
    { what: '  p99', value: percentile(active, 0.99), unit: 'ms' },
    { what: '  longest', value: active.at(-1) ?? 0, unit: 'ms' },
    // Unlike the time of a turn, this is independent of syncs and of other work on the machine.
    { what: '  processor time of a turn, p50', value: percentile(cpu, 0.5), unit: 'ms' },
    { what: '  p99', value: percentile(cpu, 0.99), unit: 'ms', atMost: LONG_MS },
    { what: '  longest', value: cpu.at(-1) ?? 0, unit: 'ms' },
    { what: '  of a request', value: (sumOf(cpu) / REQUESTS) * 1000, unit: 'µs' },
    { what: '  time of the garbage collector', value: shareOf(sumOf(pauses)), unit: '%' },
    { what: '  its longest pause', value: Math.max(0, ...pauses), unit: 'ms' },
  ]
}
