import { setTimeout as delay } from 'node:timers/promises'
import { publish, type Event, type Run } from './build.ts'
import { allOf } from './exactRuns.ts'
import { PATIENCE } from './patience.ts'
import type { Api } from './http.ts'
import { until } from './until.ts'

/** Three handlers of the event `work`: without any option, with `once`, and one that waits for a run of its own. */
export const LOADED = `
import { setTimeout } from 'node:timers/promises'
import { fn, run, send } from 'svc'
export const plain = fn({ 'on-event': 'work' }, async ({ data }) => { await setTimeout(20); return data })
export const single = fn({ 'on-event': 'work', once: true }, async ({ data }) => { await send('began', data); await setTimeout(20); return data })
export const parent = fn({ 'on-event': 'work' }, ({ data }) => run('jobs/child', data))
export const child = async (n) => { await setTimeout(20); return n }
`
export const HANDLERS = ['plain', 'single', 'parent'] as const

/** The pause of a client whose request failed, because the node that it asked is ending. */
const REFUSED_MS = 50

interface PublishUntil {
  readonly api: Api
  readonly clients: number
  readonly acknowledged: Event[]
  /** The pause of a client between two events. */
  readonly pauseMs?: number
}

/** Clients that publish, until the signal, and what was acknowledged to them. */
export const publishUntil = async (
  { api, clients, acknowledged, pauseMs = 0 }: PublishUntil,
  over: AbortSignal,
): Promise<void> => {
  const client = async () => {
    while (!over.aborted) {
      try {
        acknowledged.push(await publish(api, 'work', acknowledged.length))
        if (pauseMs > 0) await delay(pauseMs)
      } catch {
        await delay(REFUSED_MS) // an event without an acknowledgement may be stored or not
      }
    }
  }
  await Promise.all(Array.from({ length: clients }, client))
}

/** The runs of functions that events started, by event and function. The newest attempt of each is last. */
export const chainsOf = async (api: Api): Promise<Map<string, Run[]>> => {
  const runs = await allOf<Run>(api, '/runs?type=event')
  const chains = Map.groupBy(runs, ({ event_id, fn }) => `${event_id} ${fn}`)
  for (const chain of chains.values()) chain.sort((a, b) => a.attempt - b.attempt)
  return chains
}

export const described = (chain: readonly Run[] = []): string =>
  JSON.stringify(chain.map(({ fn, attempt, status, error }) => [fn, attempt, status, error]))

const OPEN: readonly string[] = ['running', 'pending_retry']

/** Waits until no run is open, and each event has a run of each handler: a worker may have ended before it took the event. */
export const settled = (api: Api, acknowledged: readonly Event[], timeoutMs = 30_000): Promise<true> =>
  until(
    async () => {
      for (const status of OPEN)
        if ((await api.page(`/runs?status=${status}`)).pagination.total > 0) return undefined
      const chains = await chainsOf(api)
      const isOver = (chain: readonly Run[] | undefined) =>
        chain !== undefined && !OPEN.includes(chain.at(-1)?.status ?? '')
      const isDone = ({ event_id }: Event) =>
        HANDLERS.every((name) => isOver(chains.get(`${event_id} jobs/${name}`)))
      return acknowledged.every(isDone) || undefined
    },
    { timeoutMs, everyMs: 50 * PATIENCE ** 2 }, // each look costs a read-model server that scans
  )

/** The streams in which code that starts only once began twice. */
export const beganTwice = async (api: Api): Promise<string[]> => {
  const began = (await allOf<Event>(api, '/events?event_type=began')).map(({ stream_id }) => stream_id)
  return began.filter((stream_id, n) => began.indexOf(stream_id) !== n)
}

/** One line for each acknowledged event whose handlers did not all succeed in their first attempt. */
export const disturbed = async (api: Api, acknowledged: readonly Event[]): Promise<string[]> => {
  const chains = await chainsOf(api)
  const lines: string[] = []
  for (const { event_id } of acknowledged)
    for (const name of HANDLERS) {
      const chain = chains.get(`${event_id} jobs/${name}`) ?? []
      const [first, ...more] = chain
      if (first?.attempt !== 1 || first.status !== 'succeeded' || more.length > 0)
        lines.push(`${event_id} jobs/${name}: ${described(chain)}`)
    }
  const failed = (await allOf<Run>(api, '/runs?status=failed')).map(
    ({ fn, error }) => `failed: ${fn} ${JSON.stringify(error)}`,
  )
  const twice = (await beganTwice(api)).map((stream_id) => `began twice: ${stream_id}`)
  return [...lines, ...failed, ...twice]
}
