import Type from 'typebox'
import { clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { type Cursor, START } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import { envEvents, publishedEvent, streamEvents } from '../openapi/streamEvents.ts'
import type { Delivery, EventStore } from '../../ports/eventStore.ts'
import { type Ask, own, route } from '../route.ts'
import { frame, SseReply } from '../streams/sse.ts'
import { envFrame, envTypes } from '../streams/envFrames.ts'
import { tailStream } from '../streams/streamTail.ts'
import { mayPublish, publish, PublishBody } from './events.ts'

const tag = 'Streams'
const Resume = {
  from: Type.Optional(Type.String({ description: '`start`, `end`, or the `id` of the last event seen' })),
}

/** Where to begin: the header a browser sends when it comes back, else `?from=`. */
const resumeAt = ({ ctx }: Pick<Ask, 'ctx'>, from: string | undefined): string | undefined => {
  const header = ctx.get('Last-Event-ID')
  return header === '' ? from : header
}

export const streamRoutes = [
  route({
    method: 'GET',
    path: '/v1/streams/:stream_id/subscribe',
    summary: 'Follow a stream',
    description: 'Begins at the end unless `from` or `Last-Event-ID` says otherwise.',
    tag,
    needs: { type: 'stream', action: 'read', path: ({ stream_id }) => [stream_id] },
    query: Type.Object({
      project: Type.Optional(
        Type.String({ minLength: 1, description: 'Only runs of this project, by id or name' }),
      ),
      ...Resume,
    }),
    reply: { kind: 'stream', events: streamEvents },
    handle: async (ask) => {
      const { params, query, credential, deps, ctx } = ask
      const { stream_id } = params
      const { env_id } = credential
      const { owner, revision } = await deps.aggregates.streams.read(
        streamOf.stream(stream_id),
        (state, revision) => ({ owner: state.env_id, revision }),
      )
      if (owner !== env_id) throw new AppError('not_found', `No stream ${stream_id}`)
      const from = resumeAt(ask, query.from)
      const after =
        from === undefined || from === 'end' ? revision : from === 'start' ? -1 : revisionOf(from, revision)
      const client = new SseReply(ctx)
      ask.hold({ gone: client.gone, end: () => client.end() })
      const active = from !== undefined && from !== 'end'
      const { project } = query
      void tailStream(
        client,
        { stream_id, env_id, after, active, ...(project !== undefined && { project }) },
        deps,
      ).catch(() => client.end())
      return own
    },
  }),

  route({
    method: 'POST',
    path: '/v1/streams/subscribe-with-event',
    summary: 'Publish an event and follow its stream',
    description:
      'One atomic step; the first event is always `event:published`. Under an `Idempotency-Key` used before nothing is ' +
      'published: the stream is followed again from the event of that time.',
    tag,
    needs: [{ type: 'stream', action: 'read', path: (_, { body }) => streamPath(body) }, mayPublish],
    body: PublishBody,
    example: { event_type: 'hello:said', event_data: { name: 'Ada' } },
    errors: ['not_found', 'quota_exceeded'],
    reply: { kind: 'stream', events: { ...publishedEvent, ...streamEvents } },
    handle: async (ask) => {
      const { deps, ctx } = ask
      const { body } = ask
      const { event, revision } = await ask.once(body, (newId) =>
        publish({ ...ask, caller: { ...ask.caller, newId } }),
      )
      const { event_id, stream_id, event_type, env_id } = event
      const client = new SseReply(ctx)
      ask.hold({ gone: client.gone, end: () => client.end() })
      const type = 'event:published'
      client.write(frame(String(revision), type, { type, event_id, stream_id, event_type }))
      void tailStream(client, { stream_id, env_id, after: revision, active: true }, deps).catch(() =>
        client.end(),
      )
      return own
    },
  }),

  route({
    method: 'GET',
    path: '/v1/env/subscribe',
    summary: 'Follow all activity of the environment',
    description:
      'Ends after five minutes; come back with the last `id`. With `consumer` the server keeps the position, and ' +
      'several clients of one name share the events, each at least once.',
    tag,
    needs: { type: 'env', action: 'read' },
    query: Type.Object({
      consumer: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$' })),
      ...Resume,
    }),
    reply: { kind: 'stream', events: envEvents },
    handle: async (ask) => {
      const { query, credential, deps, ctx } = ask
      const { env_id } = credential
      const from = resumeAt(ask, query.from)
      const head = await deps.store.head()
      const after =
        from === 'start'
          ? START
          : from === undefined || from === 'end'
            ? head
            : cursorIn(deps.store, from, head)
      const client = new SseReply(ctx)
      ask.hold({ gone: client.gone, end: () => client.end() })
      const end = () => client.end()
      const timeout = setTimeout(end, deps.sseTimeoutMs)
      client.gone.addEventListener('abort', () => clearTimeout(timeout), { once: true })
      deps.stopping.addEventListener('abort', end, { once: true })
      client.gone.addEventListener('abort', () => deps.stopping.removeEventListener('abort', end), {
        once: true,
      })
      const serving =
        query.consumer === undefined
          ? deps.feeds.serve(client, env_id, after)
          : consume(ask as Ask, client, query.consumer, after)
      void serving.catch(end)
      return own
    },
  }),
]

/** How long a consumer must stay after an event for it to count as delivered, and how many it may have until then. */
const SETTLE_MS = 500
const MAX_UNSETTLED = 2048

/** What is written to a connection that is about to break never arrives: so an event is acknowledged a while later. */
const consume = async (
  { deps, credential }: Ask,
  client: SseReply,
  consumer: string,
  from: string,
): Promise<void> => {
  const { env_id } = credential
  const options = { env_id, types: envTypes, from, inFlight: MAX_UNSETTLED, signal: client.gone }
  const unsettled: { readonly delivery: Delivery; readonly at: number }[] = []
  const settle = setInterval(() => {
    const due = unsettled.findIndex(({ at }) => at > clock.monotonic() - SETTLE_MS)
    for (const { delivery } of unsettled.splice(0, due < 0 ? unsettled.length : due)) delivery.ack()
  }, SETTLE_MS / 5)
  try {
    for await (const delivery of deps.store.consume(`env-${env_id}-${consumer}`, options)) {
      const bytes = envFrame(delivery.event)
      if (bytes) client.write(bytes)
      await client.flushed()
      if (client.gone.aborted) return
      unsettled.push({ delivery, at: clock.monotonic() })
    }
  } finally {
    clearInterval(settle) // another client of the name gets what is left
  }
}

const streamPath = (body: unknown): string[] => {
  const stream_id = (body as { stream_id?: unknown }).stream_id
  return typeof stream_id === 'string' ? [stream_id] : []
}

const revisionOf = (id: string, last: number): number => {
  if (!/^\d{1,15}$/.test(id) || Number(id) > last) {
    throw new AppError(
      'bad_request',
      `from: expected start, end or the id of an event of this stream, got "${id.slice(0, 60)}"`,
    )
  }
  return Number(id)
}

/** Cursors are the event store's own; what it cannot have issued is refused before the stream begins. */
const cursorIn = (store: EventStore, id: string, head: Cursor): Cursor => {
  if (!store.isCursor(id) || id > head) {
    throw new AppError(
      'bad_request',
      `from: expected start, end or the id of an event, got "${id.slice(0, 60)}"`,
    )
  }
  return id
}
