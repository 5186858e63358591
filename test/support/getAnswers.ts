import * as assert from 'uvu/assert'
import type { OpenApiDocument } from '../../src/api/openapi/document.ts'
import type { Api } from './http.ts'

/** Routes that answer about the moment of the request, and not about what is stored. */
const OF_THE_MOMENT = [
  '/healthz',
  '/readyz',
  '/status',
  '/operator/backups/',
  '/operator/status',
  '/operator/nodes',
  '/operator/checks',
  '/operator/projections',
  '/docs',
  '/openapi.json',
  '/sdk/svc.tgz',
  '/ui',
  '/operator/sign-in',
  '/metrics',
]
/** Routes that answer 404 in a furnished environment. */
const ABSENT = ['/ask']

type Values = Readonly<Record<string, readonly string[]>>
interface Item {
  readonly [field: string]: unknown
}

const idsOf = (items: readonly Item[], name: string): string[] => [
  ...new Set(items.map((item) => item[name]).filter((id): id is string => typeof id === 'string')),
]

/** All ids of an environment that paths of the API can contain. */
const valuesOf = async (api: Api, operator: Api): Promise<Values> => {
  const listed = async (path: string, as = api) =>
    (await as.page<Item>(`${path}${path.includes('?') ? '&' : '?'}limit=100`)).data
  const projects = await listed('/projects')
  const runs = await listed('/runs')
  const orgs = await listed(`${api.url}/operator/orgs`, operator)
  const envs = (
    await Promise.all(
      orgs.map(({ slug }) => listed(`${api.url}/operator/orgs/${String(slug)}/envs`, operator)),
    )
  ).flat()
  const files = await listed('/files')
  const keys = await listed(`${api.url}/operator/envs/${String(envs[0]?.['env_id'])}/api-keys`, operator)
  return {
    project: [...idsOf(projects, 'project_id'), ...idsOf(projects, 'name')],
    build_id: idsOf(await listed('/builds'), 'build_id'),
    event_id: idsOf(await listed('/events'), 'event_id'),
    run_id: idsOf(runs, 'run_id'),
    stream_id: idsOf(runs, 'stream_id'),
    file_id: idsOf(files, 'file_id'),
    path: idsOf(files, 'path'),
    domain_id: idsOf(await listed('/domains'), 'domain_id'),
    service_key_id: idsOf(await listed('/service-keys'), 'service_key_id'),
    org: idsOf(orgs, 'slug'),
    env_id: idsOf(envs, 'env_id'),
    api_key_id: idsOf(keys, 'api_key_id'),
  }
}

const pathsOf = (template: string, values: Values): string[] => {
  const [, name] = /\{(\w+)\}/.exec(template) ?? []
  if (name === undefined) return [template]
  const known = values[name]
  assert.ok(known && known.length > 0, `Expected values for {${name}} of ${template}, got none`)
  return (known ?? []).flatMap((value) =>
    pathsOf(template.replace(`{${name}}`, encodeURIComponent(value)), values),
  )
}

/**
 * The query parameters with which a route is requested: each of them once. Every position of the log and of a stream comes
 * after those from which the subscriptions start.
 */
const queriesOf = (template: string, operation: unknown, { asOf, values }: Asked): string[] => {
  switch (template) {
    case '/v1/env/subscribe':
      return ['?from=0000000000000000']
    case '/v1/streams/{stream_id}/subscribe':
      return ['?from=0']
    case '/operator/audit/replay':
      return (values['project'] ?? []).map((resource) => `?resource=${resource}&limit=100`)
    case '/ask':
      return ['?domain=shop.example.com']
    default:
      return JSON.stringify(operation).includes('"as_of"') ? ['', ...asOf.map((at) => `?as_of=${at}`)] : ['']
  }
}

interface Asked {
  readonly asOf: readonly string[]
  readonly values: Values
}

const HEADERS = ['content-type', 'content-disposition', 'etag', 'last-modified'] as const

/**
 * The answers of a service to every GET of its OpenAPI document, with every id that its lists contain, by path, except those of
 * paths that begin with one of `without`. `upload_id` is that of an upload in progress. Past states are requested at each position
 * of `asOf`. What differs between two requests is left out. Paths of `/operator` are requested by the operator. Fails
 * for a route that answers only with errors.
 */
export const getAnswers = async (
  api: Api,
  operator: Api,
  {
    upload_id,
    without = [],
    asOf = [],
  }: {
    readonly upload_id: string
    readonly without?: readonly string[]
    readonly asOf?: readonly string[]
  },
): Promise<Readonly<Record<string, string>>> => {
  const document = (await (await fetch(`${api.url}/openapi.json`)).json()) as OpenApiDocument
  const values = { ...(await valuesOf(api, operator)), upload_id: [upload_id] }
  const answers: Record<string, string> = {}
  const failures: string[] = []
  for (const [template, methods] of Object.entries(document.paths)) {
    if (!('get' in methods) || template.startsWith('/webhook/')) continue
    if ([...OF_THE_MOMENT, ...without].some((path) => template.startsWith(path))) continue
    const queries = queriesOf(template, methods['get'], { asOf, values })
    const statuses = await Promise.all(
      pathsOf(template, values)
        .flatMap((path) => queries.map((query) => path + query))
        .map(async (path) => {
          const as = path.startsWith('/operator/') ? operator : api
          const { status, text, headers } = await as.send('GET', `${api.url}${path}`)
          const kept = HEADERS.map((name) => headers.get(name))
          answers[path] = JSON.stringify([status, kept, withoutMoment(text)])
          return status
        }),
    )
    if (!ABSENT.includes(template) && !statuses.includes(200))
      failures.push(`${template} answers ${[...new Set(statuses)].join(' and ')}`)
  }
  assert.equal(failures, [])
  return answers
}

const withoutMoment = (text: string): string =>
  text
    .replace(/"meta":\{"request_id":"[^"]*","timestamp":"[^"]*"\}/, '"meta":{}')
    .replace(/"request_id":"[^"]*"/, '"request_id":""')
    .replace(/"live_streams":\{[^}]*\}/, '"live_streams":{}')
    .replace(/^:.*\n\n/gm, '') // heartbeats
    .replace(/id: .*\nevent: stream:complete\n/, 'event: stream:complete\n')
    .replace(/"next":"[^"]*"/, '"next":""')
