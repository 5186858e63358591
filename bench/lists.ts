import { openReadModels } from '../src/adapters/embedded/readModels/index.ts'
import { isoOf } from '../src/clock.ts'
import { START } from '../src/events/event.ts'
import { newId } from '../src/ids.ts'
import { type RunDoc, runs } from '../src/projections/runs.ts'
import { runDoc } from '../test/support/runDoc.ts'
import type { Figure } from './figure.ts'
import { load } from './load.ts'
import { BenchServer } from './server.ts'

export const FEW = 10_000
export const MANY = 1_000_000
const BATCH = 5000
const REQUESTS = 2000
/** The runs started at even intervals over this period. */
const DAYS = 7
const STATUSES = ['succeeded', 'succeeded', 'succeeded', 'failed', 'cancelled'] as const
const TYPES = ['event', 'call', 'schedule'] as const

/** Pages that clients request; the last ones have large offsets. */
const pages = (count: number): Readonly<Record<string, string>> => ({
  'by status': 'status=failed&limit=20',
  'by status and type': 'status=succeeded&type=event&limit=20',
  'of the last day': 'time_range=P1D&limit=20',
  'of the last day, by status': 'time_range=P1D&status=failed&limit=20',
  'by function': 'fn=a/b&limit=20',
  'by function and type': 'fn=a/b&type=call&limit=20',
  'by a text that no run has': 'text=nowhere&limit=20',
  'by status, in the middle': `status=succeeded&limit=20&offset=${Math.floor(count * 0.3)}`,
})

/** Writes runs through the projector's side of the read model, as a fold would. */
const plant = async (dir: string, env_id: string, count: number): Promise<void> => {
  const readModels = openReadModels({ dir })
  const collection = await readModels.writer<RunDoc>(runs)
  const now = Date.now()
  for (let from = 0; from < count; from += BATCH) {
    const writes = Array.from({ length: BATCH }, (_, i) => {
      const n = from + i
      const run_id = newId()
      const at = isoOf(now - Math.floor(((count - n) / count) * DAYS * 86_400_000))
      const cursor = String(n).padStart(16, '0')
      const doc = runDoc({
        at,
        run_id,
        env_id,
        stream_id: newId(),
        build_id: env_id,
        run_type: TYPES[n % 3] ?? 'event',
        status: STATUSES[n % 5] ?? 'succeeded',
        event_id: newId(),
        result: { note: 'a result of a usual size', lines: [1, 2, 3] },
        project_id: env_id,
        project_name: 'bench',
        worker_id: env_id,
        order: `${at}/${cursor}`,
      })
      return { id: run_id, doc, cursor }
    })
    await collection.write(writes, START)
  }
  await readModels.close()
}

/** Starts a server that has so many runs. */
export const serverWithRuns = async (count: number): Promise<BenchServer> => {
  const first = await BenchServer.start()
  const { env_id } = await first.api<{ env_id: string }>('GET', '/env')
  await first.stop({ keep: true })
  await plant(first.dir, env_id, count)
  return BenchServer.start(first.dir)
}

const slowest = async (count: number): Promise<Record<string, number>> => {
  const server = await serverWithRuns(count)
  try {
    const p99: Record<string, number> = {}
    for (const [name, query] of Object.entries(pages(count))) {
      const wanted = {
        url: `${server.url}/v1/runs?${query}`,
        method: 'GET',
        headers: { Authorization: `Bearer ${server.key}` },
        connections: 1,
      }
      await load({ ...wanted, requests: REQUESTS / 10 })
      const { p99: time, failed } = await load({ ...wanted, requests: REQUESTS })
      if (failed > 0) throw new Error(`${failed} requests failed`)
      p99[name] = time
    }
    return p99
  } finally {
    await server.stop()
  }
}

/** Pages of `GET /v1/runs` with few runs and with very many, measured together. */
export const lists = async (): Promise<Figure[]> => {
  const few = await slowest(FEW)
  const many = await slowest(MANY)
  return Object.entries(many).flatMap(([name, value]) => [
    {
      what: `runs ${name}, ${MANY.toLocaleString('en')}, p99`,
      value,
      unit: 'ms',
      atMost: 5,
    },
    {
      what: `  times that with ${FEW.toLocaleString('en')}`,
      value: value / (few[name] ?? 0),
      unit: '',
      atMost: 2,
    },
  ])
}
