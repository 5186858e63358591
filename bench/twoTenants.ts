import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import type { Figure } from './figure.ts'
import { type Load, load, percentile } from './load.ts'
import { BenchServer } from './server.ts'

const ROUNDS = 3
const EVENTS = 5000
/** Pause between two calls of the webhook, milliseconds. */
const PAUSE_MS = 5
const QUIET_CALLS = 200

const HOOK = {
  'hook.js':
    "import { fn } from 'svc'\nexport const hook = fn({ webhook: { service: 'quiet', path: '/hook' } }, () => ({ status: 200, body: 1 }))\n",
}

/** `flood` handles an event; `fan` sends as many from one run. */
const FLOOD = {
  'flood.js': `import { fn, send } from 'svc'
export const onFlood = fn({ 'on-event': 'flood' }, () => 1)
export const onFan = fn({ 'on-event': 'fan' }, async () => {
  await Promise.all(Array.from({ length: ${EVENTS} }, () => send('flood', null)))
})
`,
}

/** The webhook of one tenant, alone and while another tenant publishes thousands of events; rounds alternate. */
export const twoTenants = async (): Promise<Figure[]> => {
  const server = await BenchServer.start()
  try {
    const quiet = await server.tenant('quiet')
    const { '/hook': url = '' } = await quiet.deploy(HOOK)
    await server.deploy(FLOOD)
    await load({ url, body: '{}', connections: 4, requests: 2000 })
    await publish(server, 'flood', 500)
    return [
      ...(await compare('events', url, () => publish(server, 'flood', EVENTS))),
      ...(await compare('sends of a function', url, async () => {
        await publish(server, 'fan', 1)
        await handled(server)
      })),
    ]
  } finally {
    await server.stop()
  }
}

const compare = async (what: string, url: string, flood: () => Promise<void>): Promise<Figure[]> => {
  const rounds: { alone: Times; flooded: Times }[] = []
  for (let n = 0; n < ROUNDS; n++) {
    let calls = QUIET_CALLS
    const alone = await times(url, () => calls-- > 0)
    let isOver = false
    const flooding = flood().finally(() => (isOver = true))
    const flooded = await times(url, () => !isOver)
    await flooding
    await delay(500)
    rounds.push({ alone, flooded })
  }
  const middle = (of: (round: (typeof rounds)[number]) => number) =>
    percentile(
      rounds.map(of).sort((a, b) => a - b),
      0.5,
    )
  return [
    {
      what: `webhook of a quiet tenant during ${EVENTS} ${what}: p50`,
      value: middle(({ flooded }) => flooded.p50),
      unit: 'ms',
    },
    { what: '  p50 alone', value: middle(({ alone }) => alone.p50), unit: 'ms' },
    { what: '  p99', value: middle(({ flooded }) => flooded.p99), unit: 'ms' },
    { what: '  p99 alone', value: middle(({ alone }) => alone.p99), unit: 'ms' },
    {
      what: '  p99 during the flood / alone',
      value: middle(({ alone, flooded }) => flooded.p99 / alone.p99),
      unit: '',
      atMost: 2,
    },
  ]
}

interface Times {
  readonly p50: number
  readonly p99: number
}

/** Calls the webhook at a slow, steady rate. */
const times = async (url: string, more: () => boolean): Promise<Times> => {
  const took: number[] = []
  while (more()) {
    const { p50, failed } = await load({ url, body: '{}', connections: 1, requests: 1 })
    if (failed > 0) throw new Error('A call of the quiet tenant failed')
    took.push(p50)
    await delay(PAUSE_MS)
  }
  took.sort((a, b) => a - b)
  return { p50: percentile(took, 0.5), p99: percentile(took, 0.99) }
}

const publish = async (server: BenchServer, event_type: string, requests: number): Promise<void> => {
  const workerData: Load = {
    url: `${server.url}/v1/events`,
    headers: { Authorization: `Bearer ${server.key}` },
    body: JSON.stringify({ event_type, event_data: null }),
    connections: Math.min(32, requests),
    requests,
  }
  await once(new Worker(new URL('flood.ts', import.meta.url), { workerData }), 'exit')
}

/** Waits until nothing runs, without asking often. */
const handled = async (server: BenchServer): Promise<void> => {
  do await delay(250)
  while ((await server.api<readonly unknown[]>('GET', '/runs?status=running&limit=1')).length > 0)
}
