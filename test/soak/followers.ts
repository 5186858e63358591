import { setTimeout as delay } from 'node:timers/promises'
import { messageOf } from '../../src/errors.ts'
import { follow, type Follow, type Follower, type Sent } from '../api/sse.ts'
import type { Api } from '../support/http.ts'
import type { Acting } from './actions.ts'
import { REPEAT_MS } from './client.ts'
import type { OpenTranscript, Recorder } from './recorder.ts'

/** A follower cuts its own connection at random: within this time, milliseconds. */
const CUT_MS = 30_000

/** The pause before a follower looks for further events. */
const POLL_MS = 50

/** The events of a stream until it is over. */
async function* eventsOf(stream: Follower): AsyncGenerator<Sent> {
  for (let n = 0; ;) {
    const event = stream.seen[n]
    if (event) {
      n++
      yield event
    } else if (stream.over) return
    else await delay(POLL_MS)
  }
}

export interface EnvironmentFollowers {
  /** Whether each consumer has received the event. */
  received(event_id: string): boolean
  /** Events created and handled so far, and the number of frames. */
  seen(): { created: number; handled: number; frames: number }
  stop(): Promise<void>
}

/** A client whose id or stream is refused gets no gap, but no events either. */
const noteRefusal = (recorder: Recorder, path: string, error: unknown): void => {
  const [, status] = /got (4\d\d) /.exec(messageOf(error)) ?? []
  if (status !== undefined && status !== '429')
    recorder.wrongReplies.push({ request: `GET ${path}`, status: Number(status), text: messageOf(error) })
}

/** Connects until `over`. Each connection ends by itself, by a fault, or is cut after a random time. */
const reconnecting = async (
  api: Api,
  { below, over, recorder }: { below: (end: number) => number; over: AbortSignal; recorder: Recorder },
  connect: () => { path: string; options: Follow },
  take: (stream: Follower) => Promise<void>,
): Promise<void> => {
  while (!over.aborted) {
    const { path, options } = connect()
    const stream = await follow(api, path, options).catch((error: unknown) =>
      noteRefusal(recorder, path, error),
    )
    if (stream) {
      const cut = setTimeout(() => stream.close(), 1000 + below(CUT_MS))
      const close = () => stream.close()
      over.addEventListener('abort', close, { once: true })
      if (over.aborted) close()
      await take(stream)
      over.removeEventListener('abort', close)
      clearTimeout(cut)
    }
    if (!over.aborted) await delay(REPEAT_MS)
  }
}

/** Follows the environment: as clients that store the last id, and as two clients of one named consumer. */
export const followEnvironment = (
  api: Api,
  recorder: Recorder,
  below: (end: number) => number,
): EnvironmentFollowers => {
  const leaving = new AbortController()
  const random = { below, over: leaving.signal, recorder }
  const ids: Set<string>[] = []
  const counts = { created: 0, handled: 0 }
  const taking =
    (transcript: OpenTranscript, received: Set<string>, isFirst: boolean) => async (stream: Follower) => {
      for await (const { id, event, data } of eventsOf(stream)) {
        transcript.frames.push({ id, event })
        if (event === 'event:created') received.add(String(data['event_id']))
        if (isFirst && event === 'event:created') counts.created++
        if (isFirst && event === 'event:handled') counts.handled++
      }
    }
  const following: Promise<void>[] = []
  for (const name of ['follower 1', 'follower 2']) {
    const transcript = recorder.follow({ name, kind: 'environment' })
    const received = new Set<string>()
    ids.push(received)
    const connect = () => {
      const lastId = transcript.frames.at(-1)?.id
      return { path: '/env/subscribe?from=start', options: lastId === undefined ? {} : { lastId } }
    }
    following.push(reconnecting(api, random, connect, taking(transcript, received, name.endsWith('1'))))
  }
  const shared = recorder.follow({ name: 'consumer', kind: 'consumer' })
  const received = new Set<string>()
  ids.push(received)
  for (let n = 0; n < 2; n++)
    following.push(
      reconnecting(
        api,
        random,
        () => ({ path: '/env/subscribe?consumer=soak&from=start', options: {} }),
        taking(shared, received, false),
      ),
    )
  return {
    received: (event_id) => ids.every((set) => set.has(event_id)),
    seen: () => ({ ...counts, frames: recorder.transcripts[0]?.frames.length ?? 0 }),
    async stop() {
      leaving.abort()
      await Promise.all(following)
    },
  }
}

/** The longest time that a client follows one stream: faults in a row delay a run for minutes on a loaded machine. */
const FOLLOW_MS = 900_000

/** Publishes an event and follows its stream until it is complete. */
export const followEvent = async (
  { client, recorder, below }: Acting,
  body: { readonly event_type: string; readonly event_data: { readonly token: string } },
): Promise<void> => {
  const { api } = client
  const event_ids: string[] = []
  recorder.publications.push({ token: body.event_data.token, event_ids })
  const over = AbortSignal.timeout(FOLLOW_MS)
  let transcript: OpenTranscript | null = null
  const done = new AbortController()
  const take = async (stream: Follower): Promise<void> => {
    for await (const { id, event, data } of eventsOf(stream)) {
      if (event === 'stream:complete' && data['reason'] !== 'completed') continue
      if (!transcript) {
        const stream_id = String(data['stream_id'])
        event_ids.push(String(data['event_id']))
        transcript = recorder.follow({ name: `stream ${stream_id}`, kind: 'stream', stream_id })
      }
      transcript.frames.push({ id, event })
      if (event === 'stream:complete') done.abort()
    }
    if (!transcript) done.abort() // the event may have been published or not
  }
  const path = '/streams/subscribe-with-event'
  const first = await follow(api, path, { method: 'POST', body }).catch(() => null)
  if (!first) return
  const cut = setTimeout(() => first.close(), below(4000))
  await take(first)
  clearTimeout(cut)
  const connect = () => ({
    path: `/streams/${transcript?.stream_id}/subscribe?from=start`,
    options: { lastId: transcript?.frames.at(-1)?.id ?? '' },
  })
  await reconnecting(api, { below, over: AbortSignal.any([over, done.signal]), recorder }, connect, take)
}
