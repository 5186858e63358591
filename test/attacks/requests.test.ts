import type { OpenApiDocument } from '../../src/api/openapi/document.ts'
import { newId } from '../../src/ids.ts'
import { deploy, publish, runsOf, handled, upload } from '../support/build.ts'
import { zipBuild } from '../support/zipBuild.ts'
import { attackSuite } from './attack.ts'
import { allRefused, bearer, expected, head, limited, raw } from './raw.ts'
import type { Target, Tenant } from './target.ts'

const FUNCTIONS = {
  'main.js': `import { fn } from 'svc'
    export const on = fn({ 'on-event': 'asked' }, () => 1)
    export const yearly = fn({ schedule: '0 0 1 1 *' }, () => 1)`,
}

/** One resource of each kind. */
const resourcesOf = async ({ api }: Tenant): Promise<Record<string, string>> => {
  const project = `p-${newId()}`
  const { build_id } = await deploy(api, project, FUNCTIONS)
  const { event_id, stream_id } = await publish(api, 'asked', { secret: 'planted' })
  await handled(api, event_id)
  const [run] = await runsOf(api, event_id)
  await api.post(`/projects/${project}/context`, { key: 'KEY', value: 'planted' })
  const { session_id } = await api.post<{ session_id: string }>('/sessions', { permissions: {} })
  const { service_key_id } = await api.post<{ service_key_id: string }>('/service-keys', { permissions: {} })
  const { upload_id } = await api.post<{ upload_id: string }>('/files/uploads', { path: 'planted/part' })
  const { json } = await api.send('PUT', '/files/upload/planted', { body: 'planted' })
  const { file_id } = (json as { data: { file_id: string } }).data
  const { domain_id } = await api.post<{ domain_id: string }>('/domains', {
    domain: `${newId()}.example.com`,
  })
  const { project_id } = await api.get<{ project_id: string }>(`/projects/${project}`)
  const [schedule] = await api.get<{ schedule_id: string }[]>(`/projects/${project}/schedules`)
  const ids = { build_id, event_id, stream_id, run_id: run?.run_id ?? '', session_id, service_key_id }
  return {
    ...ids,
    upload_id,
    file_id,
    domain_id,
    schedule_id: schedule?.schedule_id ?? '',
    ref: 'main%2Fon',
    project: project_id,
    key: 'KEY',
    part_number: '1',
    path: 'x',
  }
}

const documentOf = async ({ server }: Target): Promise<OpenApiDocument> =>
  (await (await fetch(`${server.url}/openapi.json`)).json()) as OpenApiDocument

/** The operations under `/v1`. */
const operationsOf = (document: OpenApiDocument): { method: string; path: string }[] =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    path.startsWith('/v1/')
      ? Object.keys(methods).map((method) => ({ method: method.toUpperCase(), path }))
      : [],
  )

const filled = (path: string, ids: Readonly<Record<string, string>>): string =>
  path.replace(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? 'none')

const bodyFor = (method: string): { body?: string } =>
  method === 'GET' || method === 'DELETE' ? {} : { body: '{}' }

attackSuite('requests of clients', [
  {
    id: 'B/02-isolation',
    attempt: "every operation with another tenant's ids: the reply differs from that for random ids",
    severity: 'critical',
    run: async (target) => {
      const { attacker, victim } = target
      const theirs = await resourcesOf(victim)
      const random = { ...theirs }
      for (const name of Object.keys(theirs)) if (/_id$|^project$/.test(name)) random[name] = newId()
      const differing: string[] = []
      const operations = operationsOf(await documentOf(target))
        .filter(({ path }) => /_id\}|\{project\}/.test(path))
        .flatMap(({ method, path }) =>
          (method === 'GET' ? ['', `?as_of=${new Date().toISOString()}`] : ['']).map((query) => ({
            method,
            path,
            query,
          })),
        )
      for (const { method, path, query } of operations) {
        const outcomes: string[] = []
        for (const ids of [theirs, random]) {
          const { status, text } = await attacker.api.send(
            method,
            filled(path, ids).slice(3) + query,
            bodyFor(method),
          )
          const code = /"code":"(\w+)"/.exec(text)?.[1]
          outcomes.push(`${status} ${code} ${text.length}`)
        }
        if (outcomes[0] !== outcomes[1] || outcomes[0]?.startsWith('2'))
          differing.push(`${method} ${path}${query}: ${outcomes.join(' / ')}`)
      }
      expected(differing.length === 0, differing.join('; '))
      for (const path of [
        `/projects/${theirs['project']}`,
        `/files/${theirs['file_id']}`,
        `/events/${theirs['event_id']}`,
      ])
        await victim.api.get(path)
      return `${operations.length} operations compared; no difference, and everything of the victim is left`
    },
  },
  {
    id: 'B/02-isolation/bodies',
    attempt: "another tenant's ids in bodies and queries",
    severity: 'high',
    run: async ({ attacker: { api }, victim }) => {
      const { stream_id, run_id, project } = await resourcesOf(victim)
      const sent = async (event_type: string, event_data: unknown, more = {}) =>
        (await api.send('POST', '/events', { body: { event_type, event_data, ...more } })).status
      return allRefused(
        {
          stream: await sent('x', null, { stream_id }),
          follow: (
            await api.send('POST', '/streams/subscribe-with-event', {
              body: { event_type: 'x', event_data: null, stream_id },
            })
          ).status,
          cancel: await sent('svc:cancel', { run_id }),
          replay: await sent('svc:replay', { run_id }),
          call: await sent('svc:call', { fn: 'main/on', project }),
          subscribe: (await api.send('GET', `/streams/${stream_id}/subscribe`)).status,
        },
        [400, 404],
      )
    },
  },
  {
    id: 'B/02-isolation/bodies/build_id',
    attempt: 'a build_id of another environment is reported as taken, or occupies it there',
    severity: 'low',
    run: async ({ attacker, victim }) => {
      const build_id = newId()
      const zip = await zipBuild(FUNCTIONS)
      const statuses: string[] = []
      for (const { api } of [attacker, victim]) {
        const project = `p-${newId()}`
        await api.post('/projects', { name: project })
        const { status, text } = await upload(api, project, zip, { build_id })
        statuses.push(status === 201 && text.includes(build_id) ? 'accepted' : `${status} ${text}`)
      }
      expected(
        statuses.every((status) => status === 'accepted'),
        statuses.join(', '),
      )
      return 'the same id is accepted in both environments'
    },
  },
  {
    id: 'B/03-permissions',
    attempt: 'every operation with a session that may only read env, in disguises of method, header and path',
    severity: 'critical',
    run: async (target) => {
      const { attacker, server } = target
      const own = await resourcesOf(attacker)
      const { key } = await limited(attacker, { 'env:*': ['read'] })
      const let_in: string[] = []
      let count = 0
      // `/v1/sign-in` describes the credential of the request itself.
      const operations = operationsOf(await documentOf(target)).filter(
        ({ path }) => !/^\/v1\/(env|org|audit|sign-in$)/.test(path),
      )
      for (const { method, path } of operations)
        for (const [what, alias, headers] of [
          ['plain', filled(path, own), {}],
          ['HEAD', filled(path, own), {}],
          [
            'override',
            filled(path, own),
            { 'X-HTTP-Method-Override': 'GET', 'X-Original-URL': '/v1/env', 'X-Rewrite-URL': '/v1/env' },
          ],
          ['slash', `${filled(path, own)}/`, {}],
          ['double', filled(path, own).replace('/v1/', '/v1//'), {}],
          ['case', filled(path, own).replace('/v1/', '/V1/'), {}],
          ['encoded', filled(path, own).replace('/v1/', '/%761/'), {}],
          ['semicolon', `${filled(path, own)};/v1/env`, {}],
        ] as const) {
          const { status } = await fetch(`${server.url}${alias}`, {
            method: what === 'HEAD' ? 'HEAD' : method,
            headers: { Authorization: `Bearer ${key}`, ...headers },
            ...(what === 'HEAD' ? {} : bodyFor(method)),
            redirect: 'manual',
          })
          count++
          if (status < 400) let_in.push(`${what} ${method} ${path}: ${status}`)
        }
      expected(let_in.length === 0, let_in.join(', '))
      return `${count} requests, none admitted`
    },
  },
  {
    id: 'B/03-permissions/case',
    attempt: 'paths in another case, with slashes or encoded, which pass the rules of a proxy',
    severity: 'low',
    run: async ({ server: { url }, attacker, operator }) => {
      const outcomes: Record<string, number> = {}
      for (const [path, key] of [
        ['/operator/orgs', `Authorization: Bearer ${operator.key}`],
        ['/v1/env', bearer(attacker)],
      ] as const)
        for (const alias of [
          path.toUpperCase(),
          path.replace(/[a-z]/, (first) => first.toUpperCase()),
          `${path}/`,
          `/${path}`,
          path.replace(/\/(\w+)$/, '%2f$1'),
          path.replace(/\/(\w+)$/, '\\$1#'),
          path.replace(/\/(\w+)$/, '\\$1'),
          path.replace(/\/(\w+)$/, '/./$1'),
          path.replace(/\/(\w+)$/, '/x/../$1'),
          `/x/..${path}`,
          `${path}%00`,
          `${path};a`,
          `http://other${path}`,
        ])
          outcomes[alias] = (await raw(url, head(`GET ${alias}`, 'Host: svc', key))).status
      return allRefused(outcomes, [400, 404])
    },
  },
  {
    id: 'B/03-permissions/paths',
    attempt: 'a session for one file: paths that look alike',
    severity: 'high',
    run: async ({ attacker }) => {
      const api = await limited(attacker, { 'file:a/own': ['create', 'update', 'read'] })
      expected(
        (await api.send('PUT', '/files/upload/a/own', { body: 'x' })).status === 200,
        'the own path is refused',
      )
      const outcomes: Record<string, number> = {}
      for (const path of [
        'a/other',
        'a/own/x',
        'a/own.',
        'A/own',
        'a/own%20',
        'a//own',
        'a/own/',
        'b/..%2fa/own',
        'a%2fx',
        '%61/%6fther',
        'a/own%00',
        'a%5cown',
      ])
        outcomes[path] = (await api.send('PUT', `/files/upload/${path}`, { body: 'x' })).status
      for (const path of ['a/other', 'A/own', 'a/own/'])
        outcomes[`upload ${path}`] = (await api.send('POST', '/files/uploads', { body: { path } })).status
      return allRefused(outcomes, [400, 403, 404])
    },
  },
])
