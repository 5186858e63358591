import type { TSchema } from 'typebox'
import { PATH_RULES } from '../../content/fileChecks.ts'
import { IDEMPOTENCY_KEY } from '../../events/idempotencyKey.ts'
import type { Route } from '../route.ts'
import { type JsonSchema, toJsonSchema } from './jsonSchema.ts'

const uuid: JsonSchema = { type: 'string', format: 'uuid' }
const text: JsonSchema = { type: 'string' }

/** Path parameters. A name that is missing here is a string without a description. */
const pathParameters: Readonly<
  Record<string, { readonly description: string; readonly schema: JsonSchema }>
> = {
  project: { description: 'Id or name of the project', schema: text },
  build_id: { description: 'Id of the build', schema: uuid },
  event_id: { description: 'Id of the event', schema: uuid },
  run_id: { description: 'Id of the run', schema: uuid },
  ref: { description: 'Function reference `ns/var`, encoded as `ns%2Fvar`', schema: text },
  file_id: { description: 'Id of the file', schema: uuid },
  upload_id: { description: 'Id of the upload', schema: uuid },
  part_number: {
    description: 'Number of the part, starting at 1',
    schema: { type: 'integer', minimum: 1, maximum: 10_000 },
  },
  path: {
    description: 'Path of the file; may contain slashes',
    schema: { type: 'string', ...PATH_RULES },
  },
  key: { description: 'Key of the context variable', schema: text },
  schedule_id: { description: 'Id of the schedule, from the list of schedules', schema: uuid },
  domain_id: { description: 'Id of the custom domain', schema: uuid },
  stream_id: { description: 'Id of the stream', schema: uuid },
  env_id: { description: 'Id of the environment', schema: uuid },
  session_id: { description: 'Id of the session', schema: uuid },
  service_key_id: { description: 'Id of the service key', schema: uuid },
  api_key_id: { description: 'Id of the API key', schema: uuid },
  org: { description: 'Slug of the organization', schema: text },
  env: { description: 'Name of the environment', schema: text },
  rest: {
    description: 'The rest of the path: `{service}/{path}/{token}` of the endpoint; may contain slashes',
    schema: text,
  },
  backup_id: { description: 'Id of the backup in progress', schema: uuid },
  blob_key: { description: 'Key of the blob; contains slashes', schema: text },
  asset: {
    description: 'Name of a file of the docs page, or of a page such as `functions.md`',
    schema: text,
  },
  ui_asset: { description: 'Name of a file that the page of the dashboard loads', schema: text },
  ui_page: { description: 'Path of a page of the dashboard; may contain slashes', schema: text },
  guide: { description: 'Name of a guide, such as `webhooks.md`', schema: text },
}

/** Converts `/v1/projects/:project` and `/webhook/*rest` to the path syntax of OpenAPI. */
export const toOpenApiPath = (path: string): string => path.replace(/[:*](\w+)/g, '{$1}')

export const parametersOf = ({ path, query, reply, takesKey }: Route): JsonSchema[] => [
  ...[...path.matchAll(/[:*](\w+)/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    ...(pathParameters[name] ?? { schema: text }),
  })),
  ...Object.entries((query?.properties ?? {}) as Record<string, TSchema>).map(([name, schema]) => {
    const { description, ...rest } = toJsonSchema(schema)
    const required =
      (query?.required as readonly string[] | undefined)?.includes(name) && !('default' in rest)
    return {
      name,
      in: 'query',
      ...(required && { required }),
      ...(description !== undefined && { description }),
      schema: rest,
    }
  }),
  ...(reply.kind === 'stream' && query?.properties['from'] ? [lastEventId] : []),
  ...(reply.hasEtag ? [ifNoneMatch] : []),
  ...(reply.takesRange ? [range, ifRange, ifMatch, ifUnmodifiedSince] : []),
  ...(takesKey ? [idempotencyKey] : []),
]

const header = (name: string, description: string): JsonSchema => ({
  name,
  in: 'header',
  description,
  schema: text,
})

const lastEventId = header(
  'Last-Event-ID',
  'The `id` of the last event that the client received; the stream continues after it. Browsers send this header when they reconnect. It takes precedence over `from`',
)

const ifNoneMatch = header(
  'If-None-Match',
  'The `ETag` of a copy that the client has. If it is current, the reply is a 304 without content',
)

const range = header('Range', 'One range of bytes, such as `bytes=0-1023`; the reply is then a 206')

const ifRange = header(
  'If-Range',
  'The `ETag` of a partial copy. If it is not current, `Range` has no effect',
)

const ifMatch = header(
  'If-Match',
  'The `ETag` of the content that the client expects. If it is not current, the reply is a 412',
)

const ifUnmodifiedSince = header(
  'If-Unmodified-Since',
  'The `Last-Modified` of the content that the client expects. If it is newer, the reply is a 412',
)

const idempotencyKey: JsonSchema = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    'A request that is repeated with the same key within 24 hours is not executed again. It gets the first reply, ' +
    'with `Idempotency-Replayed: true`. A different request with the same key gets a 409',
  schema: { type: 'string', pattern: IDEMPOTENCY_KEY.source },
}
