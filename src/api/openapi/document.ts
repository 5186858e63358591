import type { Route } from '../route.ts'
import { type JsonSchema, namedSchemas } from './jsonSchema.ts'
import { operationOf } from './operation.ts'
import { toOpenApiPath } from './parameters.ts'
import { ErrorSchema, refusalResponses } from './refusals.ts'
import { Meta, Pagination } from './replies.ts'

export interface OpenApiDocument {
  readonly openapi: '3.1.1'
  readonly info: JsonSchema
  readonly servers: readonly JsonSchema[]
  readonly security: readonly JsonSchema[]
  readonly tags: readonly JsonSchema[]
  /** Operations by path, then by method in lower case. */
  readonly paths: Readonly<Record<string, Readonly<Record<string, JsonSchema>>>>
  readonly components: JsonSchema
}

/** The API as an OpenAPI 3.1 document: the route table says everything, nothing is written twice. */
export const toOpenApi = (routes: readonly Route[], { version }: { version: string }): OpenApiDocument => {
  const paths: Record<string, Record<string, JsonSchema>> = {}
  for (const route of routes) {
    const operations = (paths[toOpenApiPath(route.path)] ??= {})
    operations[route.method.toLowerCase()] ??= operationOf(route) // where two match, the earlier one wins
  }
  return {
    openapi: '3.1.1',
    info: { title: 'svc', version, description, license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: '/' }],
    security: [{ bearer: [] }],
    tags: tagsOf(routes),
    paths,
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description:
            'An API key `svc_<uuid>_<secret>`, a session `s_<uuid>_<secret>` or a service key `<uuid>_<secret>`',
        },
        operator: { type: 'http', scheme: 'bearer', description: 'The operator token of the installation' },
      },
      schemas: { ...namedSchemas(), Meta, Pagination, Error: ErrorSchema },
      responses: refusalResponses(),
      headers,
    },
  }
}

const description = `Runs your functions when events, schedules, webhooks and calls ask for it.

Every request but those marked open carries \`Authorization: Bearer <token>\`: of an API key, a session or a
service key. It belongs to one environment,
and nothing outside that environment exists for it.

Replies are \`{data, meta}\`, lists \`{data, pagination, meta}\`, refusals \`{error: {code, message, request_id}}\`.
Lists take \`limit\` (1-100, default 20) and \`offset\`. All times are ISO 8601 in UTC.`

const headers: JsonSchema = {
  'X-Request-Id': { description: 'Finds the request in the log', schema: { type: 'string', format: 'uuid' } },
  'Idempotency-Replayed': {
    description: 'The answer is that of an earlier request with the same `Idempotency-Key`',
    schema: { const: 'true' },
  },
  RateLimit: {
    description:
      'How many requests the organization may send at this moment (`r`), and in how many seconds (`t`) all of its limit',
    schema: { type: 'string' },
  },
  'RateLimit-Policy': {
    description:
      'The limit of the organization: `q` requests in `w` seconds. Absent, as `RateLimit` is, where the plan has none',
    schema: { type: 'string' },
  },
  'Retry-After': { description: 'Seconds to wait before trying again', schema: { type: 'integer' } },
}

const tagDescriptions: Readonly<Record<string, string>> = {
  Projects: 'A project holds builds; its name can stand for its id in paths',
  Builds: 'A build is a zip of modules; the functions of the deployed one run',
  Functions: 'What the functions of the deployed build are registered for',
  Events: 'Publishing an event runs its handlers',
  Runs: 'A run is one execution of a function',
  Streams: 'A stream groups events with the runs that follow from them; follow it live',
  Files: 'Bytes by path, for clients and functions of one environment',
  Sessions: 'Short-lived credentials with a part of the permissions of an API key',
  'Service keys': 'Long-lived credentials for other services, with a part of the permissions of an API key',
  Environment: 'What the credential belongs to',
  Domains: 'Domain names of your own that stand for an environment',
  Webhooks: 'Functions behind public URLs',
  Operator: 'Organizations, environments and API keys, for who runs the installation',
  Health: 'For load balancers and people',
  Docs: 'This document',
}

/** Of little interest to who reads about the API. */
const last = new Set(['Operator', 'Health', 'Docs'])

/** In the order in which the routes name them. */
const tagsOf = (routes: readonly Route[]): JsonSchema[] => {
  const names = [...new Set(routes.map(({ tag }) => tag))]
  return [...names.filter((name) => !last.has(name)), ...names.filter((name) => last.has(name))].map(
    (name) => ({
      name,
      ...(tagDescriptions[name] !== undefined && { description: tagDescriptions[name] }),
    }),
  )
}
