import { isDeepStrictEqual } from 'node:util'
import Type from 'typebox'
import { pastOf } from '../../commands/audit/past.ts'
import { hadBegun } from '../../commands/audit/pastRuns.ts'
import { countHandlers } from '../../commands/events/countHandlers.ts'
import { type PublishedEvent as Published, publishEvent } from '../../commands/events/publishEvent.ts'
import { EVENT_TYPE_RULES, MAX_EVENT_TYPE } from '../../events/eventType.ts'
import { AppError } from '../../errors.ts'
import { presentEvent, presentListedEvent } from '../present/event.ts'
import { PageValues } from '../present/pageValues.ts'
import { presentListedRun } from '../present/run.ts'
import { AsOfQuery } from '../asOf.ts'
import { beforeOf } from '../before.ts'
import { type Ask, item, type Reply, route } from '../route.ts'
import { largeListOf, pageQuery, PageQuery } from '../paging.ts'
import { Event, PublishedEvent, Run } from '../schemas.ts'

const tag = 'Events'

/** Both spellings of the publish body are accepted (DESIGN.md, Where SPEC.md is silent). */
export const PublishBody = Type.Object(
  {
    event_type: Type.Optional(
      Type.String({ minLength: 1, maxLength: MAX_EVENT_TYPE, documented: EVENT_TYPE_RULES }),
    ),
    type: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: MAX_EVENT_TYPE,
        description: 'Another name for `event_type`',
        documented: EVENT_TYPE_RULES,
      }),
    ),
    event_data: Type.Optional(Type.Unknown()),
    data: Type.Optional(Type.Unknown({ description: 'Another name for `event_data`' })),
    stream_id: Type.Optional(
      Type.String({
        description: 'Continues this stream; without it a new stream is created',
        documented: { format: 'uuid' },
      }),
    ),
  },
  { documented: { required: ['event_type'] } }, // the usual spelling, because a choice has no type in most languages
)
type PublishBody = Type.Static<typeof PublishBody>

/** The same with data, which SPEC.md requires here. `null` is data. */
export const PublishAndFollowBody = Type.Object(PublishBody.properties, {
  documented: {
    allOf: [
      { anyOf: [{ required: ['event_type'] }, { required: ['type'] }] },
      { anyOf: [{ required: ['event_data'] }, { required: ['data'] }] },
    ],
  },
})

/** Throws `bad_request` for a body without data. */
export const demandData = ({ event_data, data }: PublishBody): void => {
  if (event_data === undefined && data === undefined)
    throw new AppError('bad_request', 'event_data: is required; it may be null')
}

/** The two names of each field that has two. */
const SPELLINGS = [
  ['event_type', 'type'],
  ['event_data', 'data'],
] as const

const typeOf = (body: PublishBody): string | undefined => body.event_type ?? body.type

export const mayPublish = {
  type: 'event',
  action: 'create',
  path: (_: unknown, { body }: Pick<Ask, 'body'>) => [typeOf(body as PublishBody) ?? ''],
}

/** Publishes the event of a request. */
export const publish = ({
  body,
  deps,
  caller,
}: Pick<Ask<unknown, unknown, PublishBody>, 'body' | 'deps' | 'caller'>) => {
  const event_type = typeOf(body)
  if (event_type === undefined) throw new AppError('bad_request', 'event_type: is required')
  for (const [name, other] of SPELLINGS) {
    const [value, otherValue] = [body[name], body[other]]
    if (value !== undefined && otherValue !== undefined && !isDeepStrictEqual(value, otherValue))
      throw new AppError(
        'bad_request',
        `${other}: expected the same value as ${name}, or only one of the two`,
      )
  }
  const event_data = (body.event_data !== undefined ? body.event_data : body.data) ?? null
  return publishEvent(deps, { event_type, event_data, source: 'api', stream_id: body.stream_id }, caller)
}

/** Replies with an event whose handlers are not planned yet. */
const withCount = async (
  { deps }: Pick<Ask, 'deps'>,
  event: Published['event'],
  cursor: Published['cursor'],
): Promise<Reply> => {
  const handlers = await countHandlers(deps, event, cursor)
  return item(handlers === undefined ? event : { ...event, handlers }, 201)
}

const eventOf = async ({ params, credential, deps }: Ask<{ event_id: string }>) => {
  await deps.views.settled('events')
  const doc = await deps.views.events.get(params.event_id)
  if (doc?.env_id !== credential.env_id) throw new AppError('not_found', `No event ${params.event_id}`)
  return doc
}

export const eventRoutes = [
  route({
    method: 'POST',
    path: '/v1/events',
    operationId: 'publishEvent',
    summary: 'Publish an event',
    description:
      'Each matching handler of the deployed builds runs once, and `handlers` is their number. `svc:call`, `svc:cancel` and `svc:replay` control runs.',
    tag,
    needs: mayPublish,
    body: PublishBody,
    example: { event_type: 'hello:said', event_data: { name: 'Ada' } },
    errors: ['not_found', 'quota_exceeded'],
    reply: { kind: 'item', status: 201, schema: PublishedEvent },
    handle: async (ask) => {
      const { event, handlers, cursor } = await publish(ask)
      return handlers === undefined ? withCount(ask, event, cursor) : item({ ...event, handlers }, 201)
    },
  }),

  route({
    method: 'GET',
    path: '/v1/events',
    operationId: 'listEvents',
    summary: 'List events',
    tag,
    needs: { type: 'event', action: 'read' },
    query: pageQuery({
      event_type: Type.Optional(Type.String({ minLength: 1 })),
      before: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 1024,
          description: 'Only events that were published before this ISO 8601 time, or before a `next`',
        }),
      ),
    }),
    reply: { kind: 'list', schema: Event },
    handle: (ask) => {
      const { limit, offset, event_type } = ask.query
      const { env_id } = ask.credential
      const before = beforeOf(ask.query.before)
      const values = new PageValues()
      const equal = { env_id, ...(event_type !== undefined && { event_type }) }
      const range = { limit, offset, ...(before !== undefined && { before }) }
      return largeListOf(
        ask,
        'events',
        { equal, ...range },
        (doc) => presentListedEvent(doc, values),
        ({ order }) => order,
      )
    },
  }),

  route({
    method: 'GET',
    path: '/v1/events/:event_id',
    operationId: 'getEvent',
    summary: 'Get an event',
    tag,
    needs: { type: 'event', action: 'read' },
    query: AsOfQuery,
    reply: { kind: 'item', schema: Event },
    handle: async (ask) => {
      const { as_of } = ask.query
      const event = await eventOf(ask)
      if (as_of !== undefined && !hadBegun(await pastOf(ask.deps, as_of), event))
        throw new AppError('not_found', `There was no event ${event.event_id} then`)
      return item(presentEvent(event, ask.deps.payloads))
    },
  }),

  route({
    method: 'GET',
    path: '/v1/events/:event_id/runs',
    operationId: 'listEventRuns',
    summary: 'List the runs that an event started',
    tag,
    needs: { type: 'run', action: 'read' },
    query: PageQuery,
    reply: { kind: 'list', schema: Run },
    handle: async (ask) => {
      const values = new PageValues()
      const { event_id } = await eventOf(ask)
      return largeListOf(ask, 'runs', { ...ask.query, equal: { event_id } }, (doc) =>
        presentListedRun(doc, values),
      )
    },
  }),
]
