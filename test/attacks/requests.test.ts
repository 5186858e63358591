import { newApiToken } from '../../src/access/tokens.ts'
import { newId } from '../../src/ids.ts'
import type { OpenApiDocument } from '../../src/api/openapi/document.ts'
import { deploy, publish, runsOf, handled, upload } from '../support/build.ts'
import type { Api } from '../support/http.ts'
import { zipBuild } from '../support/zipBuild.ts'
import { attackSuite } from './attack.ts'
import { allRefused, bearer, expected, head, raw, withToken } from './raw.ts'
import type { Target, Tenant } from './target.ts'

const FUNCTIONS = {
  'main.js': `import { fn } from 'svc'\nexport const on = fn({ 'on-event': 'asked' }, () => 1)`,
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
  const ids = { build_id, event_id, stream_id, run_id: run?.run_id ?? '', session_id, service_key_id }
  return {
    ...ids,
    upload_id,
    file_id,
    domain_id,
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

const session = async (
  { api }: Tenant,
  permissions: Readonly<Record<string, readonly string[]>>,
): Promise<string> => (await api.post<{ token: string }>('/sessions', { permissions })).token

attackSuite('requests of clients', [
  {
    id: 'B/01-auth/malformed',
    attempt: 'malformed, foreign and misplaced tokens',
    severity: 'critical',
    run: async ({ server: { url }, victim: { api } }) => {
      const id = api.key.slice(4, 40)
      const tokens = [
        '',
        'Bearer',
        'Bearer ',
        `Basic ${api.key}`,
        api.key,
        `Bearer ${api.key}x`,
        `Bearer x${api.key}`,
      ]
      tokens.push(
        `Bearer ${api.key.slice(0, -1)}`,
        `Bearer ${api.key.toUpperCase()}`,
        `Bearer ${api.key} ${api.key}`,
      )
      tokens.push(
        `Bearer "${api.key}"`,
        `Bearer ${api.key},x`,
        `Bearer svc_${id}_`,
        `Bearer svc_${id}_${'A'.repeat(49)}`,
      )
      tokens.push(
        `Bearer s_${id}_${'A'.repeat(49)}`,
        `Bearer ${id}_${'A'.repeat(49)}`,
        'Bearer null',
        'Bearer __proto__',
      )
      const outcomes: Record<string, number> = {}
      for (const [n, token] of tokens.entries())
        outcomes[`token ${n}`] = (await fetch(`${url}/v1/env`, { headers: { Authorization: token } })).status
      for (const query of ['access_token', 'token', 'api_key', 'authorization'])
        outcomes[query] = (await fetch(`${url}/v1/env?${query}=${api.key}`)).status
      for (const header of ['X-Api-Key', 'Cookie', 'Proxy-Authorization', 'X-Authorization'])
        outcomes[header] = (
          await fetch(`${url}/v1/env`, { headers: { [header]: `Bearer ${api.key}` } })
        ).status
      return allRefused(outcomes, [401])
    },
  },
  {
    id: 'B/01-auth/duplicate',
    attempt: 'two Authorization headers, of which a proxy may read the other one',
    severity: 'low',
    run: async ({ server: { url }, attacker }) => {
      const [own, none] = [bearer(attacker), 'Authorization: Bearer none']
      const tried = async (...headers: readonly string[]) =>
        (await raw(url, head('GET /v1/env', 'Host: svc', ...headers))).status
      return allRefused(
        {
          'valid first': await tried(own, none),
          'valid second': await tried(none, own),
          'both valid': await tried(own, own),
          'other case': await tried(own, own.replace('Authorization', 'AUTHORIZATION')),
          apart: await tried(own, 'Accept: */*', none),
        },
        [400],
      )
    },
  },
  {
    id: 'B/01-auth/timing',
    attempt: 'learn from the refusal whether a key id exists',
    severity: 'medium',
    run: async ({ server: { url }, victim: { api } }) => {
      const known = `${api.key.slice(0, 41)}${newApiToken(newId()).slice(41)}`
      const texts = new Set<string>()
      for (const token of [known, newApiToken(newId()), `${api.key.slice(0, -1)}~`]) {
        const reply = await fetch(`${url}/v1/env`, { headers: { Authorization: `Bearer ${token}` } })
        const { error } = (await reply.json()) as { error: { code: string; message: string } }
        texts.add(`${reply.status} ${error.code} ${error.message}`)
      }
      expected(texts.size === 1, `the refusals differ: ${[...texts].join(' / ')}`)
      return `always ${[...texts].join('')}; the secret is compared with a MAC in constant time, also for unknown ids`
    },
  },
  {
    id: 'B/01-auth/escalation',
    attempt: 'sessions and service keys with more permissions than their parent, and chains of them',
    severity: 'high',
    run: async ({ attacker }) => {
      const narrow = withToken(
        attacker,
        await session(attacker, { 'key:*': ['create'], 'session:*': ['create'], 'event:a': ['create'] }),
      )
      const outcomes: Record<string, number> = {}
      for (const map of [
        { '*:*': ['*'] },
        { 'event:*': ['create'] },
        { 'event:b': ['create'] },
        { 'event:a': ['read'] },
      ])
        for (const path of ['/sessions', '/service-keys'])
          outcomes[`${path} ${JSON.stringify(map)}`] = (
            await narrow.send('POST', path, { body: { permissions: map } })
          ).status
      const gone = await attacker.api.post<{ token: string; session_id: string }>('/sessions', {
        permissions: { 'env:*': ['read'] },
      })
      const ended = withToken(attacker, gone.token)
      expected((await ended.send('GET', '/env')).status === 200, 'the session is not valid')
      await attacker.api.remove(`/sessions/${gone.session_id}`)
      outcomes['revoked'] = (await ended.send('GET', '/env')).status
      return allRefused(outcomes, [403, 401])
    },
  },
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
      const operations = operationsOf(await documentOf(target)).filter(({ path }) =>
        /_id\}|\{project\}/.test(path),
      )
      for (const { method, path } of operations) {
        const outcomes: string[] = []
        for (const ids of [theirs, random]) {
          const { status, text } = await attacker.api.send(
            method,
            filled(path, ids).slice(3),
            bodyFor(method),
          )
          const code = /"code":"(\w+)"/.exec(text)?.[1]
          outcomes.push(`${status} ${code} ${text.length}`)
        }
        if (outcomes[0] !== outcomes[1] || outcomes[0]?.startsWith('2'))
          differing.push(`${method} ${path}: ${outcomes.join(' / ')}`)
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
            await api.send('POST', '/streams/subscribe-with-event', { body: { event_type: 'x', stream_id } })
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
      const token = await session(attacker, { 'env:*': ['read'] })
      const let_in: string[] = []
      let count = 0
      const operations = operationsOf(await documentOf(target)).filter(
        ({ path }) => !/^\/v1\/(env|org)/.test(path),
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
            headers: { Authorization: `Bearer ${token}`, ...headers },
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
      const api: Api = withToken(
        attacker,
        await session(attacker, { 'file:a/own': ['create', 'update', 'read'] }),
      )
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
  {
    id: 'B/12-rates/unauthenticated',
    attempt: 'guess tokens and webhook URLs as fast as the service answers',
    severity: 'low',
    run: async ({ fresh }) => {
      const { server, victim, close } = await fresh()
      const counts: Record<string, string> = {}
      await victim.api.get('/env')
      for (const [what, send] of [
        [
          'tokens',
          () =>
            fetch(`${server.url}/v1/env`, { headers: { Authorization: `Bearer ${newApiToken(newId())}` } }),
        ],
        ['no token', () => fetch(`${server.url}/v1/env`)],
        [
          'webhooks',
          () => fetch(`${server.url}/webhook/${victim.org}/prod/s/${newId()}`, { method: 'POST' }),
        ],
      ] as const) {
        const replies = await Promise.all(Array.from({ length: 300 }, send))
        const refused = replies.filter(({ status }) => status === 429).length
        expected(refused >= 100, `${what}: only ${refused} of 300 were refused`)
        counts[what] = `${refused} of 300 refused with 429`
      }
      expected((await victim.api.send('GET', '/env')).status === 200, 'a known credential was refused')
      await close()
      return `${Object.entries(counts)
        .map((one) => one.join(': '))
        .join(', ')}; known credentials are served`
    },
  },
  {
    id: 'B/10-idempotency',
    attempt: "get another tenant's or credential's stored reply, with its secret, by their Idempotency-Key",
    severity: 'high',
    run: async ({ attacker, victim }) => {
      const key = { 'Idempotency-Key': 'guessed' }
      const body = { permissions: { 'env:*': ['read'] } }
      const first = await victim.api.send('POST', '/sessions', { body, headers: key })
      const secret = (first.json as { data: { token: string } }).data.token
      const sibling = withToken(victim, await session(victim, { 'session:*': ['create'], 'env:*': ['read'] }))
      const replies = [
        await attacker.api.send('POST', '/sessions', { body, headers: key }),
        await sibling.send('POST', '/sessions', { body, headers: key }),
      ]
      for (const { text, headers } of replies) {
        expected(!text.includes(secret), 'the token was replayed')
        expected(headers.get('idempotency-replayed') === null, 'a reply was replayed')
      }
      for (const odd of ['', ' ', 'a b', 'x'.repeat(256)])
        expected(
          (await victim.api.send('POST', '/sessions', { body, headers: { 'Idempotency-Key': odd } }))
            .status === 400,
          `the key "${odd.slice(0, 9)}" was accepted`,
        )
      return 'neither another tenant nor another credential gets the reply; odd keys are 400'
    },
  },
  {
    id: 'B/10-idempotency/squat',
    attempt: 'occupy predictable keys of another credential of the environment',
    severity: 'low',
    run: async ({ victim }) => {
      const restricted = withToken(victim, await session(victim, { 'event:*': ['create'] }))
      const headers = { 'Idempotency-Key': 'order-17-created' }
      expected(
        (await restricted.send('POST', '/events', { body: { event_type: 'squat' }, headers })).status === 201,
        'the squat was refused',
      )
      const { status, headers: got } = await victim.api.send('POST', '/events', {
        body: { event_type: 'order' },
        headers,
      })
      expected(
        status === 201 && got.get('idempotency-replayed') === null,
        `the request of the victim: ${status}`,
      )
      return 'a key belongs to its credential: the other request is executed'
    },
  },
  {
    id: 'B/10-idempotency/inner-checks',
    attempt: "a replay without the handler's own permission check (file: create or update)",
    severity: 'low',
    run: async ({ victim }) => {
      const path = `inner-${newId()}`
      const creator = withToken(victim, await session(victim, { 'file:*': ['create'] }))
      const updater = withToken(victim, await session(victim, { 'file:*': ['update'] }))
      const sent = { body: { path }, headers: { 'Idempotency-Key': path } }
      expected((await creator.send('POST', '/files/uploads', sent)).status === 201, 'the upload was refused')
      const other = (await updater.send('POST', '/files/uploads', sent)).status
      await victim.api.send('PUT', `/files/upload/${path}`, { body: 'x' })
      const late = (await creator.send('POST', '/files/uploads', sent)).status
      return allRefused({ 'another credential': other, 'the same after the file exists': late }, [403])
    },
  },
])
