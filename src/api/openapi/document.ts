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

/** Generates the OpenAPI 3.1 document from the route table, so the two cannot differ. */
export const toOpenApi = (routes: readonly Route[], { version }: { version: string }): OpenApiDocument => {
  const paths: Record<string, Record<string, JsonSchema>> = {}
  for (const route of routes) {
    const operations = (paths[toOpenApiPath(route.path)] ??= {})
    operations[route.method.toLowerCase()] ??= operationOf(route) // the first matching route handles a request
  }
  const responses = responsesIn(paths)
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
            'The token of an API key `svc_<uuid>_<secret>`, a session `s_<uuid>_<secret>` or a service key `<uuid>_<secret>`',
        },
        operator: { type: 'http', scheme: 'bearer', description: 'The operator token of the installation' },
      },
      schemas: schemasIn([paths, responses]),
      responses,
      headers,
    },
  }
}

/** The names of the components of a kind that a part refers to. */
const namesIn = (kind: 'schemas' | 'responses', part: unknown): Set<string> =>
  new Set(
    [...JSON.stringify(part).matchAll(new RegExp(`#/components/${kind}/([A-Za-z_]+)`, 'g'))].map(
      ([, name = '']) => name,
    ),
  )

/** Components that nothing refers to are left out: a generator would warn about them. */
const responsesIn = (paths: unknown): JsonSchema => {
  const used = namesIn('responses', paths)
  return Object.fromEntries(Object.entries(refusalResponses()).filter(([code]) => used.has(code)))
}

const schemasIn = (parts: unknown): JsonSchema => {
  const all: Readonly<Record<string, JsonSchema>> = {
    ...namedSchemas(),
    Meta,
    Pagination,
    Error: ErrorSchema,
  }
  const used = namesIn('schemas', parts)
  // A set includes what is added to it while it is read: the schemas that schemas refer to.
  for (const name of used) for (const inner of namesIn('schemas', all[name] ?? {})) used.add(inner)
  return Object.fromEntries(Object.entries(all).filter(([name]) => used.has(name)))
}

const description = `svc runs your functions when events, schedules, webhooks and calls start them.

Requests need the header \`Authorization: Bearer <token>\` with the token of an API key, a session or a service
key, unless the operation is public. Each credential belongs to one environment. Resources of other
environments are reported as not found.

A reply has the form \`{data, meta}\`, a list \`{data, pagination, meta}\`, and an error
\`{error: {code, message, request_id}}\`. Lists accept \`limit\` (1-100, default 20) and \`offset\`.
All times are in ISO 8601 format and UTC.`

const headers: JsonSchema = {
  'X-Request-Id': {
    description: 'Id of the request, which the server log also contains',
    schema: { type: 'string', format: 'uuid' },
  },
  'Idempotency-Replayed': {
    description: 'The reply is the stored reply to an earlier request with the same `Idempotency-Key`',
    schema: { const: 'true' },
  },
  RateLimit: {
    description:
      'Number of requests that the organization may send now (`r`) and seconds until its full limit is available (`t`)',
    schema: { type: 'string' },
  },
  'RateLimit-Policy': {
    description:
      'The limit of the organization: `q` requests in `w` seconds. This header and `RateLimit` are absent if the plan has no limit',
    schema: { type: 'string' },
  },
  'Stream-Position': {
    description: 'To resume before the first event, send it as `from` or `Last-Event-ID`',
    schema: { type: 'string' },
  },
  Link: {
    description:
      'The page of the dashboard about the resource of the request, with `rel="help"`; absent if it has none',
    schema: { type: 'string' },
  },
  ETag: { description: 'Changes with the content', schema: { type: 'string' } },
  'Retry-After': { description: 'Seconds to wait before the next attempt', schema: { type: 'integer' } },
}

const tagDescriptions: Readonly<Record<string, string>> = {
  Projects: 'A project contains builds. Paths accept its name or its id',
  Builds: 'A build is a zip of ES modules. Runs use the functions of the deployed build',
  'Context variables': 'Secrets of a project, which its functions can read',
  Functions: 'Event handlers and schedules that the functions of the deployed build have registered',
  Events: 'Publishing an event starts a run of each matching handler',
  Runs: 'A run is one execution of a function',
  Streams: 'A stream groups events with the runs that they cause. Subscribe to follow it live',
  Files: 'Files of an environment, for clients and for functions',
  Sessions: 'Short-lived credentials with a subset of the permissions of an API key',
  'Service keys': 'Long-lived credentials for other services, with a subset of the permissions of an API key',
  Environment: 'The environment of the credential',
  Domains: 'Custom domain names of an environment',
  Webhooks: 'Public URLs that run functions',
  MCP: 'The environment for AI agents, over the Model Context Protocol',
  Dashboard: 'The pages of the dashboard, and their sign-in',
  Audit: 'The changes of an environment and their actors',
  Operator: 'Organizations, environments and API keys, for the operator of the installation',
  Health: 'Health checks for load balancers and people',
  Docs: 'This API description',
}

/** Tags that few readers need come last. */
const last = new Set(['Operator', 'Health', 'Docs'])

/** In the order of the routes. */
const tagsOf = (routes: readonly Route[]): JsonSchema[] => {
  const names = [...new Set(routes.map(({ tag }) => tag))]
  return [...names.filter((name) => !last.has(name)), ...names.filter((name) => last.has(name))].map(
    (name) => ({
      name,
      ...(tagDescriptions[name] !== undefined && { description: tagDescriptions[name] }),
    }),
  )
}
