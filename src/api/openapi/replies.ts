import type { TSchema } from 'typebox'
import type { ReplyShape, Route } from '../route.ts'
import { type JsonSchema, refTo, toJsonSchema } from './jsonSchema.ts'
import { rateHeaders, refusalReplies } from './refusals.ts'

/** Bytes. OpenAPI 3.1 needs no schema for them, but generators drop a body without one. */
export const BINARY: JsonSchema = { type: 'string', format: 'binary' }

/** Every reply of a route by status: success first, then errors. */
export const repliesOf = (route: Route): Record<string, JsonSchema> => {
  const { reply } = route
  const { status = reply.kind === 'none' ? 204 : 200, also } = reply
  return {
    ...(also && { [also.status]: successOf(route, also.description, also.headers) }),
    [status]: successOf(route, reply.description ?? descriptionOf(reply.kind, status)),
    ...(reply.takesRange && { 206: successOf(route, 'The requested range of the content', contentRange) }),
    ...(reply.hasEtag && { 304: unchangedOf(route) }),
    ...refusalReplies(route),
  }
}

const successOf = (
  { method, reply, takesKey, needs }: Route,
  description: string,
  headers: Readonly<Record<string, object>> = {},
): JsonSchema => ({
  description: reply.events ? `${streamDescription}\n\n${tableOf(reply.events)}` : description,
  headers: {
    'X-Request-Id': refTo('headers', 'X-Request-Id'),
    ...(needs && rateHeaders),
    ...(reply.kind === 'stream' &&
      method === 'GET' && { 'Stream-Position': refTo('headers', 'Stream-Position') }),
    ...(takesKey && { 'Idempotency-Replayed': refTo('headers', 'Idempotency-Replayed') }),
    ...(reply.hasEtag && { ETag: refTo('headers', 'ETag') }),
    ...headers,
  },
  ...contentOf(reply),
})

const contentRange = { 'Content-Range': { schema: { type: 'string' } } }

const unchangedOf = (route: Route): JsonSchema => {
  const { content: _, ...reply } = successOf(route, 'The client has the current content')
  return reply
}

const descriptionOf = (kind: ReplyShape['kind'], status: number): string => {
  if (kind === 'list') return 'One page of the list'
  if (kind === 'none') return 'Success without content'
  return status === 201 ? 'Created' : 'Success'
}

const contentOf = ({ kind, schema, type, events = {} }: ReplyShape): JsonSchema => {
  switch (kind) {
    case 'none':
      return {}
    case 'item':
      return json(envelope({ data: schema ? toJsonSchema(schema) : {} }))
    case 'list':
      return json(
        envelope({
          data: { type: 'array', items: schema ? toJsonSchema(schema) : {} },
          pagination: refTo('schemas', 'Pagination'),
        }),
      )
    case 'stream':
      return {
        content: { 'text/event-stream': { schema: { oneOf: Object.entries(events).map(eventSchema) } } },
      }
    case 'bytes':
      return { content: { [type ?? '*/*']: { schema: BINARY } } }
    case 'bare':
      return { content: { [type ?? 'application/json']: schema ? { schema: toJsonSchema(schema) } : {} } }
    default:
      return kind satisfies never
  }
}

const json = (schema: JsonSchema): JsonSchema => ({ content: { 'application/json': { schema } } })

const envelope = (properties: JsonSchema): JsonSchema => ({
  type: 'object',
  required: [...Object.keys(properties), 'meta'],
  properties: { ...properties, meta: refTo('schemas', 'Meta') },
})

const streamDescription =
  'A stream of server-sent events. The schema describes one event. ' +
  'The server sends a comment line every 15 seconds to keep the connection open.'

const tableOf = (events: Readonly<Record<string, TSchema>>): string =>
  ['| event | meaning |', '|---|---|', ...Object.entries(events).map(rowOf)].join('\n')

const rowOf = ([name, schema]: readonly [string, TSchema]): string =>
  `| \`${name}\` | ${(schema as { description?: string }).description ?? ''} |`

const eventSchema = ([name, schema]: readonly [string, TSchema]): JsonSchema => ({
  title: name,
  type: 'object',
  required: ['id', 'event', 'data'],
  properties: {
    id: { type: 'string', description: 'To resume after this event, send it as `Last-Event-ID` or `from`' },
    event: { const: name },
    data: toJsonSchema(schema),
  },
})

export const Meta: JsonSchema = {
  type: 'object',
  required: ['request_id', 'timestamp'],
  properties: {
    request_id: { type: 'string', format: 'uuid' },
    timestamp: { type: 'string', format: 'date-time' },
  },
}

export const Pagination: JsonSchema = {
  type: 'object',
  required: ['total', 'limit', 'offset', 'has_more'],
  properties: {
    total: { type: 'integer', description: 'Number of matching items on all pages' },
    limit: { type: 'integer' },
    offset: { type: 'integer' },
    has_more: { type: 'boolean' },
    searched_to: {
      type: 'string',
      description:
        'Only if a search of runs has not looked at all of them: `before` of the request that continues it',
    },
    next: {
      type: 'string',
      description:
        'Only in lists of runs, events and files that have more: `before`, for files `after`, of the request for the next page, without `offset`',
    },
  },
}
