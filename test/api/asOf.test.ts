import * as assert from 'uvu/assert'
import type { Static } from 'typebox'
import type { AuditedFact } from '../../src/api/schemas.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig } from '../../src/process/config.ts'
import { newId } from '../../src/ids.ts'
import { type Build, call, deploy, type Project, type Run } from '../support/build.ts'
import { openApi } from '../support/http.ts'
import { installation } from '../support/installation.ts'
import { startWithOther } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { isRefused, refusal } from './refusal.ts'

type Audited = Static<typeof AuditedFact>

const server = await startWithOther()
const { api, other } = server
const { operatorToken } = openSecrets(readConfig(installation(server.dataDir)))
const operator = openApi(server.url, operatorToken)

const FUNCTIONS = { 'f.js': 'export const add = (a, b) => a + b' }
/** The position of the newest change of the environment. */
const now = async (): Promise<string> => {
  const [newest] = (await api.page<Audited>('/audit?limit=1')).data
  return newest?.position ?? ''
}
const then = <T>(path: string, as_of: string): Promise<T> =>
  api.get(`${path}${path.includes('?') ? '&' : '?'}as_of=${as_of}`)
const listThen = async <T>(path: string, as_of: string): Promise<T[]> =>
  (await api.page<T>(`${path}${path.includes('?') ? '&' : '?'}limit=100&as_of=${as_of}`)).data

const name = `past-${newId()}`
const before = await now()
const first = await deploy(api, name, FUNCTIONS)
const withFirst = await now()
const project = await api.get<Project>(`/projects/${name}`)

const past = suite('a past state')

past('of a project is the one that its GET returned then', async () => {
  const was = await api.get<Project>(`/projects/${name}`)
  const at = await now()
  await api.patch(`/projects/${name}`, { name: `${name}-2`, network: ['api.example.com'] })
  const is = await api.get<Project>(`/projects/${name}-2`)
  assert.equal(await then(`/projects/${project.project_id}`, at), was)
  assert.equal(await then(`/projects/${name}`, at), was, 'by the name that it had then')
  assert.equal(await then(`/projects/${project.project_id}`, await now()), is)
  assert.equal(
    (await listThen<Project>('/projects', at)).find(({ project_id }) => project_id === project.project_id),
    was,
  )
  assert.not.ok((await listThen<Project>('/projects', before)).some(({ name: each }) => each === name))
  const missing = refusal(await api.send('GET', `/projects/${project.project_id}?as_of=${before}`))
  assert.equal([missing.status, missing.code], [404, 'not_found'])
  await api.patch(`/projects/${name}-2`, { name, network: null })
})

past('by a time is that of the last change before it', async () => {
  const [created] = (await api.page<Audited>(`/audit?resource=${project.project_id}&after=start&limit=1`))
    .data
  assert.ok(created)
  const { name: was } = await then<Project>(`/projects/${project.project_id}`, created.time)
  assert.is(was, name)
  const earlier = new Date(Date.parse(created.time) - 1).toISOString()
  assert.is((await api.send('GET', `/projects/${project.project_id}?as_of=${earlier}`)).status, 404)
})

past('of builds shows which build was deployed, also after the project was deleted', async () => {
  const doomed = `doomed-${newId()}`
  const old = await deploy(api, doomed, FUNCTIONS)
  const { project_id } = await api.get<Project>(`/projects/${doomed}`)
  const at = await now()
  const oldList = (await api.page<Build>(`/projects/${doomed}/builds`)).data
  const newer = await deploy(api, doomed, { 'g.js': 'export const g = () => 2' })
  await api.remove(`/projects/${doomed}`)
  assert.equal(await listThen(`/projects/${project_id}/builds`, at), oldList)
  assert.equal(await listThen(`/projects/${doomed}/builds`, at), oldList)
  assert.equal((await then<Build>(`/projects/${project_id}/builds/deployed`, at)).build_id, old.build_id)
  assert.equal(await then<Build>(`/projects/${project_id}/builds/${old.build_id}`, at), oldList[0])
  assert.is(
    (await api.send('GET', `/projects/${project_id}/builds/${newer.build_id}?as_of=${at}`)).status,
    404,
  )
  assert.is((await api.send('GET', `/projects/${project_id}/builds/live?as_of=${at}`)).status, 404)
  const all = await listThen<Build & { project_name: string }>('/builds', at)
  assert.equal(
    all
      .filter((build) => build.project_id === project_id)
      .map(({ build_id, project_name }) => [build_id, project_name]),
    [[old.build_id, doomed]],
  )
  assert.is(
    (await listThen<Build>('/builds', before)).some(({ build_id }) => build_id === first.build_id),
    false,
  )
})

past('of context variables has their names, never their values', async () => {
  await api.post(`/projects/${name}/context`, { key: 'OLD', value: 'a hidden value', description: 'first' })
  const at = await now()
  const was = (await api.page(`/projects/${name}/context`)).data
  await api.send('PUT', `/projects/${name}/context/OLD`, {
    body: { value: 'another hidden value', description: 'second' },
  })
  await api.post(`/projects/${name}/context`, { key: 'NEW', value: 'x' })
  await api.remove(`/projects/${name}/context/OLD`)
  const list = await listThen(`/projects/${name}/context`, at)
  assert.equal(list, was)
  assert.not.match(JSON.stringify(list), 'hidden value')
})

past('of credentials has those that were valid then', async () => {
  const permissions = { 'event:*': ['create'] }
  const key = await api.post<{ service_key_id: string }>('/service-keys', {
    name: 'k',
    permissions,
    metadata: { a: 1 },
  })
  const session = await api.post<{ session_id: string }>('/sessions', { permissions })
  const at = await now()
  const keys = (await api.page('/service-keys?limit=100')).data
  const sessions = (await api.page('/sessions?limit=100')).data
  await api.remove(`/service-keys/${key.service_key_id}`)
  await api.remove(`/sessions/${session.session_id}`)
  assert.equal(await listThen('/service-keys', at), keys)
  assert.equal(await then(`/service-keys/${key.service_key_id}`, at), keys[0])
  assert.equal(await listThen('/sessions', at), sessions)
  assert.equal(
    (await listThen<{ session_id: string }>('/sessions', await now())).some(
      ({ session_id }) => session_id === session.session_id,
    ),
    false,
  )
})

past('of API keys is for the operator', async () => {
  const path = `${server.url}/operator/envs/${project.env_id}/api-keys`
  const { api_key_id } = await operator.post<{ api_key_id: string }>(path, { name: 'past' })
  const at = await now()
  await operator.send('DELETE', `${server.url}/operator/api-keys/${api_key_id}`)
  const { data } = await operator.page<{ api_key_id: string; name: string }>(`${path}?limit=100&as_of=${at}`)
  assert.is(data.find((each) => each.api_key_id === api_key_id)?.name, 'past')
  const today = (await operator.page<{ api_key_id: string }>(`${path}?limit=100`)).data
  assert.not.ok(today.some((each) => each.api_key_id === api_key_id))
  const unknown = `${server.url}/operator/envs/${newId()}/api-keys?as_of=${at}`
  assert.equal(refusal(await operator.send('GET', unknown)).message.slice(0, 24), 'There was no environment')
  assert.is((await operator.send('GET', `${path}?as_of=2020-01-01`)).status, 404)
})

past('of runs has those that had started, with the status that they had', async () => {
  const run = await call(api, 'f/add', 1, 2)
  const started = run.start_time
  const ended = new Date(Date.parse(run.stop_time ?? '') + 1000).toISOString()
  assert.equal(await then(`/runs/${run.run_id}`, ended), run)
  assert.ok((await listThen<Run>('/runs', ended)).some(({ run_id }) => run_id === run.run_id))
  assert.not.ok((await listThen<Run>('/runs', before)).some(({ run_id }) => run_id === run.run_id))
  const early = new Date(Date.parse(started) - 1000).toISOString()
  assert.is((await api.send('GET', `/runs/${run.run_id}?as_of=${early}`)).status, 404)
  const replayed = await operator.page<{ position: string; type: string }>(
    `${server.url}/operator/audit/replay?resource=${run.run_id}&limit=100`,
  )
  const at = replayed.data.find(({ type }) => type === 'RunStarted')?.position ?? ''
  assert.is((await then<Run>(`/runs/${run.run_id}`, at)).status, 'running')
  const [listed] = await listThen<Run>('/runs', at)
  assert.equal([listed?.run_id, listed?.status], [run.run_id, 'running'])
})

past('of runs is filtered by the state that they had', async () => {
  const ended = await call(api, 'f/add', 3, 4)
  const replayed = await operator.page<{ position: string; type: string }>(
    `${server.url}/operator/audit/replay?resource=${ended.run_id}&limit=100`,
  )
  const at = replayed.data.find(({ type }) => type === 'RunStarted')?.position ?? ''
  const idsThen = async (filter: string) =>
    (await listThen<Run>(`/runs?${filter}`, at)).map(({ run_id }) => run_id)
  for (const filter of [
    'status=running',
    'final=false',
    `status=running&stream=${ended.stream_id}`,
    `chain=${ended.run_id}&status=running`,
  ])
    assert.equal(await idsThen(filter), [ended.run_id], filter)
  for (const filter of ['status=succeeded', 'final=true', 'text=f/add'])
    assert.is((await idsThen(filter)).includes(ended.run_id), filter.startsWith('text'), filter)
  assert.equal(await idsThen(`status=succeeded&stream=${ended.stream_id}`), [])
})

past('of a list has the total that it had, whatever was created or deleted since', async () => {
  const run = await call(api, 'f/add', 5, 6)
  const grow = async (): Promise<Project> => {
    for (let n = 0; n < 3; n++) await call(api, 'f/add', n, n)
    await deploy(api, name, { 'f.js': `export const add = (a, b) => a + b // ${newId()}` })
    const secret = { key: `K_${newId().slice(-12)}`, value: 'a value', description: '' }
    await api.post(`/projects/${name}/context`, secret)
    await api.post('/sessions', { permissions: { 'run:*': ['read'] } })
    await api.post('/service-keys', { permissions: { 'run:*': ['read'] } })
    await operator.post(`${server.url}/operator/envs/${run.env_id}/api-keys`, { name: 'more' })
    return api.post<Project>('/projects', { name: `more-${newId().slice(-12)}` })
  }
  const lists = [
    '/projects',
    '/builds',
    `/projects/${name}/builds`,
    `/projects/${name}/context`,
    '/sessions',
    '/service-keys',
    `${server.url}/operator/envs/${run.env_id}/api-keys`,
    '/runs',
    '/runs?type=call',
    '/runs?status=succeeded',
    '/runs?status=running',
    '/runs?fn=f%2Fadd',
    `/runs?project=${project.project_id}`,
    `/runs?stream=${run.stream_id}`,
    '/runs?text=add',
    '/runs?final=true&type=call',
  ]
  const totals = (as_of: string | null) =>
    Promise.all(
      lists.map(async (path) => {
        const query = `limit=1${as_of === null ? '' : `&as_of=${as_of}`}`
        const client = path.startsWith('http') ? operator : api
        const page = await client.page(`${path}${path.includes('?') ? '&' : '?'}${query}`)
        return `${path} ${page.pagination.total}`
      }),
    )
  const { project_id } = await grow()
  const [was, position, time] = [await totals(null), await now(), new Date().toISOString()]
  await until(() => new Date().toISOString() > time)
  await grow()
  await api.remove(`/projects/${project_id}`)
  assert.not.equal(await totals(null), was)
  for (const as_of of [position, time]) assert.equal(await totals(as_of), was, as_of)
})

past('is returned to many requests at once, one after the other', async () => {
  const at = await now()
  const paths = Array.from({ length: 20 }, (_, n) => ['/runs', '/builds', '/projects'][n % 3] ?? '')
  const replies = await Promise.all(paths.map((path) => api.send('GET', `${path}?limit=100&as_of=${at}`)))
  assert.equal(
    replies.map(({ status }) => status),
    paths.map(() => 200),
  )
})

past('of a file and an event is the one of that moment', async () => {
  const path = `past/${newId()}`
  await api.send('PUT', `/files/upload/${path}`, { body: 'one' })
  const [file] = (await api.page<{ file_id: string; size: number }>(`/files?prefix=${path}`)).data
  assert.ok(file)
  const at = await now()
  await api.send('PUT', `/files/upload/${path}`, { body: 'longer' })
  await api.remove(`/files/${file.file_id}`)
  assert.equal(await then(`/files/${file.file_id}`, at), file)
  assert.is((await api.send('GET', `/files/${file.file_id}?as_of=${before}`)).status, 404)
  const { event_id } = await api.post<{ event_id: string }>('/events', {
    event_type: 'past:none',
    event_data: 1,
  })
  assert.is((await api.send('GET', `/events/${event_id}?as_of=${before}`)).status, 404)
})

past('of an organization, an environment and an API key is known to the operator', async () => {
  const at = (path: string) => `${server.url}/operator${path}`
  const asked = async (path: string, as_of: string) =>
    (await operator.send('GET', at(`${path}?as_of=${as_of}`))).status
  const newest = async () => (await operator.page<Audited>(at('/audit?limit=1'))).data[0]?.position ?? ''
  const slug = `past-${newId().slice(-12)}`
  const nothing = await newest()
  const org = await operator.post<{ org_id: string }>(at('/orgs'), { slug, plan: 'pro' })
  const env = await operator.post<{ env_id: string }>(at(`/orgs/${slug}/envs`), { name: 'dev' })
  const key = await operator.post<{ api_key_id: string; token: string }>(at(`/envs/${env.env_id}/api-keys`), {
    name: 'then',
  })
  const then = await newest()
  await operator.patch(at(`/orgs/${slug}`), { plan: 'free' })
  await operator.remove(at(`/api-keys/${key.api_key_id}`))
  await operator.remove(at(`/envs/${env.env_id}`))
  const { token: _, ...shown } = key
  for (const [path, expected] of [
    [`/orgs/${slug}`, org],
    [`/orgs/${org.org_id}`, org],
    [`/envs/${env.env_id}`, env],
    [`/api-keys/${key.api_key_id}`, shown],
  ] as const) {
    assert.equal(await operator.get(at(`${path}?as_of=${then}`)), expected, path)
    assert.is(await asked(path, nothing), 404, path)
  }
  assert.is(await asked(`/envs/${env.env_id}`, await newest()), 404)
  isRefused(
    await operator.send('GET', at(`/orgs/${slug}?as_of=2999-01-01`)),
    /as_of: expected a time in the past/,
  )
  await operator.remove(at(`/orgs/${slug}`))
  assert.equal(await operator.get(at(`/orgs/${slug}?as_of=${then}`)), org, 'after the deletion')
  const afterwards = await newest()
  const second = await operator.post(at('/orgs'), { slug, plan: 'pro' })
  const later = await newest()
  assert.equal(await operator.get(at(`/orgs/${slug}?as_of=${then}`)), org, 'after another had the slug')
  assert.is(await asked(`/orgs/${slug}`, afterwards), 404)
  await operator.remove(at(`/orgs/${slug}`))
  assert.equal(await operator.get(at(`/orgs/${slug}?as_of=${later}`)), second, 'of the second of the slug')
})

/** Single resources without past states, with the reason. */
const WITHOUT_PAST: Readonly<Record<string, string>> = {
  '/v1/files/uploads/{upload_id}': 'an upload in progress; `svc audit replay` shows its facts',
}
/** Lists that have past states (issue 14). */
const LISTS_WITH_PAST = [
  '/v1/projects',
  '/v1/builds',
  '/v1/projects/{project}/builds',
  '/v1/runs',
  '/v1/projects/{project}/context',
  '/v1/sessions',
  '/v1/service-keys',
  '/operator/envs/{env_id}/api-keys',
]

past('can be asked for at each route of a single resource', async () => {
  const { paths } = (await (await fetch(`${server.url}/openapi.json`)).json()) as {
    paths: Record<string, { get?: { parameters?: { name: string }[]; responses: object } }>
  }
  const isOfResource = (path: string, { get }: (typeof paths)[string]) =>
    /^\/(?:v1|operator)\/.*\}$/.test(path) && JSON.stringify(get?.responses).includes('application/json')
  const lacking = Object.entries(paths)
    .filter(([path, methods]) => methods.get && isOfResource(path, methods) && !(path in WITHOUT_PAST))
    .filter(([, { get }]) => !get?.parameters?.some(({ name }) => name === 'as_of'))
    .map(([path]) => path)
  assert.equal(lacking, [])
  for (const path of [...LISTS_WITH_PAST, '/v1/env'])
    assert.ok(
      paths[path]?.get?.parameters?.some(({ name }) => name === 'as_of'),
      path,
    )
})

past('of the environment exists since its creation', async () => {
  const env = await api.get('/env')
  assert.equal(await then('/env', withFirst), env)
  assert.is((await api.send('GET', '/env?as_of=2020-01-01')).status, 404)
})

past('of another environment does not exist', async () => {
  const { status } = await other.send('GET', `/projects/${project.project_id}?as_of=${withFirst}`)
  assert.is(status, 404)
  assert.equal((await other.page(`/projects?as_of=${withFirst}`)).data, [])
})

past('needs the permission for the project that had the name then', async () => {
  const [a, b] = [`a-${newId()}`, `b-${newId()}`]
  const held = await api.post<Project>('/projects', { name: a })
  const at = await now()
  await api.patch(`/projects/${a}`, { name: b })
  const taker = await api.post<Project>('/projects', { name: a })
  const { token } = await api.post<{ token: string }>('/sessions', {
    permissions: { [`project:${taker.project_id}`]: ['read'] },
  })
  const limited = openApi(server.url, token)
  assert.is((await limited.send('GET', `/projects/${a}`)).status, 200)
  assert.is((await limited.send('GET', `/projects/${a}?as_of=${at}`)).status, 403)
  assert.equal((await then<Project>(`/projects/${a}`, at)).project_id, held.project_id)
})

const wrong: [as_of: string, message: RegExp][] = [
  ['2999-01-01', /as_of: expected a time in the past, got 2999/],
  [
    'yesterday',
    /as_of: expected a position of this log, such as [0-9a-f]{16,}, or an ISO 8601 time such as .*, got "yesterday"/,
  ],
  [
    '12',
    /as_of: expected a position of this log, such as [0-9a-f]{16,}, or an ISO 8601 time such as .*, got "12"/,
  ],
]
for (const [as_of, message] of wrong)
  for (const path of ['/projects', `/projects/${name}`, '/runs', '/sessions', '/env'])
    past(`of ${path.replace(name, '{project}')} at ${as_of} is refused`, async () =>
      isRefused(await api.send('GET', `${path}?as_of=${as_of}`), message),
    )

past('beyond the end of the log is refused', async () => {
  const position = await now()
  const beyond = position.replaceAll(/./g, position.length === 16 ? '9' : 'f')
  isRefused(
    await api.send('GET', `/projects?as_of=${beyond}`),
    /as_of: position .* is beyond the end of the log/,
  )
})

past.after(() => server.stop())
past.run()
