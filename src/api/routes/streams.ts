import Type from 'typebox'
import { nameConsumer } from '../../commands/streams/nameConsumer.ts'
import { positionOf, startOfStream } from '../../commands/streams/startOfStream.ts'
import { AppError, isRetryable, stackOf } from '../../errors.ts'
import { type Cursor, START } from '../../events/event.ts'
import { envEvents, publishedEvent, streamEvents } from '../openapi/streamEvents.ts'
import type { EventStore } from '../../ports/eventStore.ts'
import { type Ask, own, route } from '../route.ts'
import { frame, POSITION_HEADER, SseReply } from '../streams/sse.ts'
import { serveConsumer } from '../streams/envConsumer.ts'
import { tailStream } from '../streams/streamFrames.ts'
import { demandData, mayPublish, publish, PublishAndFollowBody } from './events.ts'

const tag = 'Streams'
/** Clients that send headers use `Authorization`, because proxies log URLs. */
const Session = {
  session: Type.Optional(
    Type.String({
      description:
        'The token of a session, instead of the header `Authorization`: for `EventSource` in browsers, which cannot send it',
    }),
  ),
}
const Resume = {
  from: Type.Optional(
    Type.String({ description: '`start`, `end`, or the `id` of the last event that the client received' }),
  ),
}

/** The start of the stream, and the field that contains it. */
interface Resumed {
  readonly from: string | undefined
  readonly field: 'from' | 'Last-Event-ID'
}

/** The header that a browser sends when it reconnects takes precedence over `?from=`. */
const resumeAt = ({ ctx }: Pick<Ask, 'ctx'>, from: string | undefined): Resumed => {
  const header = ctx.get('Last-Event-ID')
  return header === '' ? { from, field: 'from' } : { from: header, field: 'Last-Event-ID' }
}

/**
 * Replies with a live stream, which counts as open until its connection ends. `prepare` may still reject; `serve` writes
 * the events. If it fails, the stream ends: its client continues after an outage, and a defect is logged. If the client left
 * before `serve`, `abandon` is called instead.
 */
export const openStream = async <T>(
  ask: Pick<Ask, 'ctx' | 'deps' | 'credential' | 'hold' | 'request_id'>,
  prepare: () => Promise<T>,
  serve: (client: SseReply, prepared: T) => Promise<void>,
  abandon?: (prepared: T) => void,
): Promise<typeof own> => {
  const { ctx, deps, credential, request_id } = ask
  const leave = deps.openCounts.enter(credential.env_id, 'streams')
  ctx.res.once('close', leave)
  try {
    const prepared = await prepare()
    if (ctx.res.closed) {
      abandon?.(prepared)
      throw new AppError('unavailable', 'The client left before the reply')
    }
    const client = new SseReply(ctx)
    ask.hold({ gone: client.gone, end: () => client.end() })
    void serve(client, prepared).catch((error: unknown) => {
      if (!isRetryable(error) && !client.gone.aborted)
        deps.logger.error('A live stream failed', { request_id, error: stackOf(error) })
      client.end()
    })
    return own
  } catch (error) {
    leave()
    throw error
  }
}

const Times = {
  times: Type.Optional(
    Type.Union([Type.Literal('true'), Type.Literal('false')], {
      description: '`true`: `stream:data` has `emitted_at`, the time at which the service stored the data',
    }),
  ),
}

export const streamRoutes = [
  route({
    method: 'GET',
    path: '/v1/streams/:stream_id/subscribe',
    operationId: 'followStream',
    summary: 'Follow a stream',
    description: 'Begins at the end of the stream, unless `from` or `Last-Event-ID` is given.',
    tag,
    needs: { type: 'stream', action: 'read', path: ({ stream_id }) => [stream_id] },
    takesSession: true,
    query: Type.Object({
      project: Type.Optional(
        Type.String({ minLength: 1, description: 'Only runs of this project, by id or present name' }),
      ),
      ...Times,
      ...Resume,
      ...Session,
    }),
    reply: { kind: 'stream', events: streamEvents },
    handle: async (ask) => {
      const { params, query, credential, deps } = ask
      const { stream_id } = params
      const resumed = resumeAt(ask, query.from)
      return openStream(
        ask,
        async () => {
          const start = await startOfStream(deps, { stream_id, ...resumed }, credential.env_id)
          const project = query.project && (await presentIdOf(deps, credential.env_id, query.project))
          ask.ctx.set(POSITION_HEADER, positionOf(start))
          return { start, project }
        },
        (client, prepared) => tailStream(client, { ...prepared, withTimes: query.times === 'true' }, deps),
      )
    },
  }),

  route({
    method: 'POST',
    path: '/v1/streams/subscribe-with-event',
    operationId: 'publishAndFollow',
    summary: 'Publish an event and follow its stream',
    description:
      'Publishes and follows in one atomic step. The first event is always `event:published`. A request with a known ' +
      '`Idempotency-Key` publishes nothing and follows the stream from the event of the first request.',
    tag,
    needs: [{ type: 'stream', action: 'read', path: (_, { body }) => streamPath(body) }, mayPublish],
    query: Type.Object(Times),
    body: PublishAndFollowBody,
    permitted: ({ event_type, type, stream_id }) => ({ event_type, type, stream_id }),
    example: { event_type: 'hello:said', event_data: { name: 'Ada' } },
    errors: ['not_found', 'quota_exceeded'],
    reply: { kind: 'stream', events: { ...publishedEvent, ...streamEvents } },
    handle: async (ask) => {
      const { deps, body } = ask
      demandData(body)
      return openStream(
        ask,
        () => ask.once(body, (newId) => publish({ ...ask, caller: { ...ask.caller, newId } })),
        (client, { event, revision }) => {
          const { event_id, stream_id, event_type } = event
          const type = 'event:published'
          client.write(frame(String(revision), type, { type, event_id, stream_id, event_type }))
          const start = { stream_id, after: revision, mayBeComplete: true }
          return tailStream(client, { start, withTimes: ask.query.times === 'true' }, deps)
        },
      )
    },
  }),

  route({
    method: 'GET',
    path: '/v1/env/subscribe',
    operationId: 'followEnvironment',
    summary: 'Follow all activity of the environment',
    description:
      'The stream ends after five minutes; reconnect with the last `id`. With `consumer`, the server stores the ' +
      'position; `from` is where a new name begins. Clients of the same consumer share the events. An event counts as ' +
      'delivered when its connection is open half a second after the write, whether or not the client has handled it. ' +
      'A plan limits the names of consumers and the streams that are open at a time. A consumer that no client used ' +
      'for 30 days is forgotten with its position.',
    tag,
    needs: { type: 'env', action: 'read' },
    takesSession: true,
    query: Type.Object({
      consumer: Type.Optional(
        Type.String({
          pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$',
          description: 'Name of a consumer, whose position the server stores',
        }),
      ),
      ...Resume,
      ...Session,
    }),
    errors: ['quota_exceeded'],
    reply: { kind: 'stream', events: envEvents },
    handle: async (ask) => {
      const { query, credential, deps, caller } = ask
      const { env_id } = credential
      const { consumer } = query
      const prepare = async () => {
        const after = await cursorAt(deps.store, resumeAt(ask, query.from))
        if (consumer === undefined) ask.ctx.set(POSITION_HEADER, after === START ? 'start' : after)
        return { after, group: consumer === undefined ? null : await nameConsumer(deps, consumer, caller) }
      }
      return openStream(ask, prepare, (client, { after, group }) => {
        const end = () => client.endAlive()
        const timeout = setTimeout(end, deps.sseTimeoutMs)
        client.gone.addEventListener('abort', () => clearTimeout(timeout), { once: true })
        deps.stopping.addEventListener('abort', end, { once: true })
        client.gone.addEventListener('abort', () => deps.stopping.removeEventListener('abort', end), {
          once: true,
        })
        return group === null
          ? deps.feeds.serve(client, env_id, after)
          : serveConsumer(client, { env_id, group, after }, deps.store)
      })
    },
  }),
]

/** The id of a project that may have been renamed. Runs of a deleted one are found by the name that they have. */
const presentIdOf = async (
  { views }: Pick<Ask['deps'], 'views'>,
  env_id: string,
  idOrName: string,
): Promise<string> => {
  await views.settled('projects')
  return views.directory.project(env_id, idOrName)?.project_id ?? idOrName
}

const streamPath = (body: unknown): string[] => {
  const stream_id = (body as { stream_id?: unknown }).stream_id
  return typeof stream_id === 'string' ? [stream_id] : []
}

/**
 * Returns the cursor for `from`. Rejects with `bad_request` before the reply begins if the store cannot have issued it.
 */
const cursorAt = async (store: EventStore, { from, field }: Resumed): Promise<Cursor> => {
  const head = await store.head()
  if (from === undefined || from === 'end') return head
  if (from === 'start') return START
  if (store.isCursor(from) && from <= head) return from
  throw new AppError(
    'bad_request',
    `${field}: expected start, end or the id of an event, got "${from.slice(0, 60)}"`,
  )
}
