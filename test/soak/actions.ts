import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { newId } from '../../src/ids.ts'
import type { Event, Run } from '../support/build.ts'
import type { Answer } from '../support/http.ts'
import { isAccepted, REPEAT_MS, REPEATS, type SoakClient } from './client.ts'
import { followEvent } from './followers.ts'
import type { Recorder } from './recorder.ts'

/** Data over this size is stored in the blobs. */
const LARGE_BYTES = 70 << 10
/** Files that clients write again and again. Each client has its own. */
const PATHS = 5

export interface Acting {
  readonly client: SoakClient
  readonly recorder: Recorder
  readonly below: (end: number) => number
  /** The number of the client: it alone writes its files. */
  readonly number: number
  /** The URL of the webhook. */
  readonly hook: () => Promise<string | null>
  /** A stream that exists. */
  readonly stream: { id: string | null }
}

type Action = (acting: Acting) => Promise<void>

const dataOf = <T>({ json }: Answer): T => (json as { data: T }).data

/** Publishes an event once, or repeats it with a key until it is acknowledged; sometimes repeats it afterwards. */
const publish = async (
  { client, recorder, below, stream }: Acting,
  event_type: string,
  more: object = {},
): Promise<Event | null> => {
  const token = newId()
  const continued = stream.id !== null && below(3) === 0 ? { stream_id: stream.id } : {}
  const body = { event_type, event_data: { token, ...more }, ...continued }
  const key = newId()
  const keyed = below(2) === 0
  const event_ids: string[] = []
  recorder.publications.push({ token, event_ids })
  const send = async (): Promise<Event | null> => {
    const headers = keyed ? { 'Idempotency-Key': key } : {}
    const answer = await client.attempt('POST', '/events', { body, headers })
    if (answer?.status !== 201) return null
    const event = dataOf<Event>(answer)
    event_ids.push(event.event_id)
    return event
  }
  let event = await send()
  for (let n = 0; keyed && !event && n < REPEATS; n++) {
    await delay(REPEAT_MS)
    event = await send()
  }
  if (!event) return null
  if (below(20) === 0 || stream.id === null) stream.id = event.stream_id
  if (keyed && below(4) === 0) await send()
  if (below(3) === 0) {
    const look = await client.attempt('GET', `/events/${event.event_id}`)
    if (look) recorder.looks.push({ event_id: event.event_id, status: look.status })
  }
  return event
}

const publishes =
  (event_type: string, more: (acting: Acting) => object = () => ({})): Action =>
  async (acting) => {
    await publish(acting, event_type, more(acting))
  }

const callHook: Action = async ({ client, recorder, hook }) => {
  const url = await hook()
  if (url === null) return
  const token = newId()
  const answer = await client.attempt('POST', url, {
    body: { token },
    headers: { 'Content-Type': 'application/json' },
  })
  recorder.webhooks.push({ token, status: answer?.status ?? 0 })
}

const putFile: Action = async ({ client, recorder, below, number }) => {
  const path = `soak/clients/${number}/${below(PATHS)}`
  const body = new Uint8Array(randomBytes(1 + below(20_000)))
  const etag = `"${createHash('sha256').update(body).digest('hex')}"`
  const answer = await client.attempt('PUT', `/files/upload/${path}`, {
    body,
    headers: { 'Content-Type': 'application/octet-stream' },
  })
  recorder.files.push({ path, etag, acknowledged: answer !== null && isAccepted(answer) })
}

const callFunction: Action = async (acting) => {
  await publish(acting, 'svc:call', { fn: 'jobs/leaf', args: [acting.below(100)] })
}

/** Starts a long run and cancels it. */
const cancel: Action = async (acting) => {
  const { client, recorder, below } = acting
  const event = await publish(acting, 'long', { ms: 5000 })
  if (!event) return
  await delay(below(3000))
  const listed = await client.attempt('GET', `/events/${event.event_id}/runs`)
  const [run] = listed?.status === 200 ? dataOf<Run[]>(listed) : []
  if (!run) return
  recorder.cancelled.push(run.run_id)
  await client.keep('POST', '/events', {
    body: { event_type: 'svc:cancel', event_data: { run_id: run.run_id } },
  })
}

const replay: Action = async (acting) => {
  const listed = await acting.client.attempt('GET', '/runs?status=succeeded&type=event&limit=20')
  const runs = listed?.status === 200 ? dataOf<Run[]>(listed) : []
  const run = runs[acting.below(runs.length || 1)]
  if (run) await publish(acting, 'svc:replay', { run_id: run.run_id })
}

/** Each action with its share of the load. */
const WEIGHTS: readonly (readonly [number, Action])[] = [
  [30, publishes('work', ({ below }) => ({ ms: below(1000) }))],
  [2, publishes('work', ({ below }) => ({ ms: below(100), pad: 'x'.repeat(LARGE_BYTES) }))],
  [8, publishes('flaky', ({ below }) => ({ failures: below(3) }))],
  [3, publishes('hopeless')],
  [2, publishes('late')],
  [10, publishes('charge')],
  [3, publishes('long', ({ below }) => ({ ms: 2000 + below(8000) }))],
  [4, publishes('burst')],
  [4, publishes('fan')],
  [4, publishes('risk')],
  [1, publishes('exit')],
  [1, publishes('spin')],
  [5, (acting) => followEvent(acting, { event_type: 'tree', event_data: { token: newId() } })],
  [5, publishes('tree')],
  [8, callHook],
  [5, putFile],
  [5, callFunction],
  [2, cancel],
  [2, replay],
]

const TOTAL = WEIGHTS.reduce((sum, [weight]) => sum + weight, 0)

/** An action of the mix. */
export const actionAt = (n: number): Action => {
  let left = n % TOTAL
  return WEIGHTS.find(([weight]) => (left -= weight) < 0)?.[1] ?? callHook
}

export const MIX = TOTAL
