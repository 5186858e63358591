import * as assert from 'uvu/assert'
import type { Static } from 'typebox'
import type { AuditedFact, AuditedFactOfInstallation } from '../../src/api/schemas.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig } from '../../src/process/config.ts'
import { REDACTED } from '../../src/events/redact.ts'
import { newId } from '../../src/ids.ts'
import { call, deploy, publish, type Project, runsOf } from '../support/build.ts'
import { type Answer, type Api, openApi } from '../support/http.ts'
import { installation } from '../support/installation.ts'
import { startWithOther } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { isRefused } from './refusal.ts'

type Audited = Static<typeof AuditedFact>
type OfInstallation = Static<typeof AuditedFactOfInstallation>

const FUNCTIONS = `
import { files } from 'svc'
export const put = (path, content) => files.put(path, content)
export const wait = () => new Promise(() => setTimeout(() => {}, 600_000))
`

const server = await startWithOther()
const { api, other } = server
const { operatorToken } = openSecrets(readConfig(installation(server.dataDir)))
const operator = openApi(server.url, operatorToken)
const [, apiKeyId = ''] = api.key.split('_')

const name = `audited-${newId()}`
const build = await deploy(api, name, { 'f.js': FUNCTIONS })
const project = await api.get<Project>(`/projects/${name}`)

const requestOf = ({ headers }: Answer): string => headers.get('x-request-id') ?? ''
const audit = async (query: Record<string, string> = {}, by: Api = api): Promise<Audited[]> =>
  (await by.page<Audited>(`/audit?${new URLSearchParams({ limit: '100', ...query }).toString()}`)).data
const operatorAudit = async (query: Record<string, string> = {}): Promise<OfInstallation[]> => {
  const search = new URLSearchParams({ limit: '100', ...query }).toString()
  return (await operator.page<OfInstallation>(`${server.url}/operator/audit?${search}`)).data
}

const audited = suite('the audit')

audited('names the credential, its kind, the address and the request of a change', async () => {
  const renamed = await api.send('PATCH', `/projects/${name}`, { body: { network: ['api.example.com'] } })
  const [fact] = await audit({ type: 'ProjectNetworkChanged' })
  assert.ok(fact)
  const { position, time, actor, ...rest } = fact
  assert.equal(rest, {
    type: 'ProjectNetworkChanged',
    stream: `project-${project.project_id}`,
    request_id: requestOf(renamed),
    data: { project_id: project.project_id, network: ['api.example.com'] },
  })
  assert.equal([actor.credential_id, actor.credential_type], [apiKeyId, 'api-key'])
  assert.match(actor.ip ?? '', /127\.0\.0\.1/)
  assert.ok(position.length > 0 && Number.isFinite(Date.parse(time)))
})

audited('shows no secret, and marks what it leaves out', async () => {
  const secrets = ['tell-nobody-the-value', 'tell-nobody-the-metadata', 'tell-nobody-the-code']
  await api.post(`/projects/${name}/context`, { key: 'TOKEN', value: secrets[0], description: 'a token' })
  const permissions = { 'event:*': ['create'] }
  const key = await api.post<{ token: string }>('/service-keys', {
    name: 'partner',
    permissions,
    metadata: { note: secrets[1] },
  })
  const session = await api.post<{ token: string }>('/sessions', {
    permissions,
    metadata: { note: secrets[1] },
  })
  await api.post(`/projects/${name}/eval`, { code: `'${secrets[2]}'` })
  const facts = await audit()
  const text = JSON.stringify(facts)
  for (const secret of [...secrets, key.token.slice(-20), session.token.slice(-20)])
    assert.not.ok(text.includes(secret), secret)
  const dataOf = (type: string) => facts.find((fact) => fact.type === type)?.data as Record<string, unknown>
  assert.equal(
    [dataOf('ContextVariableCreated')['key'], dataOf('ContextVariableCreated')['sealed']],
    ['TOKEN', REDACTED],
  )
  assert.equal(
    [dataOf('ServiceKeyCreated')['mac'], dataOf('ServiceKeyCreated')['metadata']],
    [REDACTED, REDACTED],
  )
  assert.equal([dataOf('SessionCreated')['mac'], dataOf('SessionCreated')['metadata']], [REDACTED, REDACTED])
  assert.equal(dataOf('RunRequested')['target'], { code: REDACTED })
})

audited('of evaluated code names the credential that evaluates, and its request', async () => {
  const path = `evaluated/${newId()}`
  const evaluated = await api.send('POST', `/projects/${name}/eval`, {
    body: { code: `import('svc').then(({ files }) => files.put('${path}', 'x'))` },
  })
  assert.is(evaluated.status, 201, evaluated.text)
  const [fact] = await audit({ resource: path })
  assert.equal(
    [fact?.type, fact?.actor.credential_id, fact?.actor.credential_type],
    ['FileStored', apiKeyId, 'api-key'],
  )
  assert.is(fact?.request_id, requestOf(evaluated))
})

audited('of a function names its run as the actor', async () => {
  const path = `put/${newId()}`
  const { run_id } = await call(api, 'f/put', path, 'content of a file')
  const [fact] = await audit({ resource: path })
  assert.equal(fact?.actor, { credential_id: run_id, credential_type: 'run', ip: null })
  assert.equal((await audit({ actor: run_id })).length, 1)
  assert.not.match(JSON.stringify(fact), 'content of a file')
})

audited('contains uploads, sessions and their ends, but no runs and events', async () => {
  const path = `parts/${newId()}`
  const { upload_id } = await api.post<{ upload_id: string }>('/files/uploads', { path })
  await api.send('PUT', `/files/uploads/${upload_id}/1`, { body: 'part' })
  await api.post(`/files/uploads/${upload_id}/complete`)
  assert.equal(
    (await audit({ resource: upload_id })).map(({ type }) => type),
    ['UploadCompleted', 'UploadBegun'],
  )
  const { session_id } = await api.post<{ session_id: string }>('/sessions', {
    permissions: { 'run:*': ['read'] },
  })
  await api.remove(`/sessions/${session_id}`)
  const ofSession = await audit({ resource: session_id })
  assert.equal(
    ofSession.map(({ type }) => type),
    ['SessionsEnded', 'SessionCreated'],
  )
  for (const { actor } of ofSession) assert.is(actor.credential_id, apiKeyId)
  const { event_id } = await api.post<{ event_id: string }>('/events', {
    event_type: 'audit:none',
    event_data: 1,
  })
  assert.equal(await audit({ resource: event_id }), [])
})

audited('names the caller that cancelled or replayed a run', async () => {
  const { run_id } = await call(api, 'f/put', `replayed/${newId()}`, 'x')
  await api.post('/events', { event_type: 'svc:replay', event_data: { run_id } })
  const [replay] = await until(async () => {
    const found = await audit({ resource: run_id, type: 'RunStarted' })
    return found.length > 0 ? found : null
  })
  assert.equal([replay?.actor.credential_id, replay?.actor.credential_type], [apiKeyId, 'api-key'])
})

audited('names the caller that cancelled a run', async () => {
  const { run_id } = await api.post<{ run_id: string }>(`/projects/${name}/eval`, { code: '1' })
  assert.equal(await audit({ resource: run_id, type: 'RunCancelled' }), [])
  const { event_id } = await publish(api, 'svc:call', { fn: 'f/wait', args: [] })
  const [waiting] = await until(async () => {
    const runs = await runsOf(api, event_id)
    return runs.length > 0 ? runs : null
  })
  await publish(api, 'svc:cancel', { run_id: waiting?.run_id })
  const [fact] = await until(async () => {
    const found = await audit({ resource: waiting?.run_id ?? '', type: 'RunCancelled' })
    return found.length > 0 ? found : null
  })
  assert.equal([fact?.actor.credential_id, fact?.actor.credential_type], [apiKeyId, 'api-key'])
})

audited('names the task of the service that removes what was in a deleted environment', async () => {
  const slug = `purged-${newId().slice(-12)}`
  await operator.post(`${server.url}/operator/orgs`, { slug, plan: 'pro' })
  const { env_id } = await operator.post<{ env_id: string }>(`${server.url}/operator/orgs/${slug}/envs`, {
    name: 'dev',
  })
  await operator.send('DELETE', `${server.url}/operator/envs/${env_id}`)
  const [purged] = await until(async () => {
    const found = await operatorAudit({ env_id, type: 'EnvPurged' })
    return found.length > 0 ? found : null
  })
  assert.equal(purged?.actor, { credential_id: 'purge', credential_type: 'system', ip: null })
  assert.is(purged?.request_id, null)
  const [deleted] = await operatorAudit({ env_id, type: 'EnvDeleted' })
  assert.is(deleted?.actor.credential_type, 'operator')
})

audited('is invisible to other environments', async () => {
  assert.equal(await audit({ resource: project.project_id }, other), [])
  assert.equal(await audit({ actor: apiKeyId }, other), [])
  const types = (await audit({}, other)).map(({ type }) => type)
  assert.not.ok(types.includes('ProjectNetworkChanged'))
})

audited('needs the permission env:read', async () => {
  const session = await api.post<{ token: string }>('/sessions', { permissions: { 'run:*': ['read'] } })
  const refused = await openApi(server.url, session.token).refused('GET', '/audit')
  assert.equal([refused.status, refused.code], [403, 'forbidden'])
  const reader = await api.post<{ token: string }>('/sessions', { permissions: { 'env:*': ['read'] } })
  assert.ok((await audit({}, openApi(server.url, reader.token))).length > 0)
})

audited('is sorted newest first, and by `after` oldest first, without gaps', async () => {
  const newest = await audit({ resource: project.project_id })
  const positions = newest.map(({ position }) => position)
  assert.equal(positions, positions.toSorted().reverse())
  const oldest = await audit({ resource: project.project_id, after: 'start' })
  assert.equal(oldest, newest.toReversed())
  const paged: Audited[] = []
  for (let after = 'start'; ;) {
    const page = await audit({ resource: project.project_id, after, limit: '1' })
    if (page.length === 0) break
    paged.push(...page)
    after = page.at(-1)?.position ?? ''
  }
  assert.equal(paged, oldest)
  const { pagination } = await api.page(`/audit?resource=${project.project_id}&limit=1&offset=1`)
  assert.equal(pagination, { total: oldest.length, limit: 1, offset: 1, has_more: oldest.length > 2 })
})

audited('is filtered by times, type, actor and resource together', async () => {
  const all = await audit({ resource: project.project_id, after: 'start' })
  const [first, second] = all
  assert.ok(first && second)
  const { time: from } = first
  assert.equal(await audit({ resource: project.project_id, after: 'start', from }), all)
  assert.equal(await audit({ resource: project.project_id, to: from }), [])
  const filters = { resource: project.project_id, type: 'ProjectCreated', actor: apiKeyId }
  assert.equal(
    (await audit(filters)).map(({ type }) => type),
    ['ProjectCreated'],
  )
  assert.equal(await audit({ ...filters, actor: 'operator' }), [])
  assert.equal(await audit({ ...filters, from: '2020-01-01', to: '2020-02-01T00:00:00Z' }), [])
})

const wrong: [query: string, message: RegExp][] = [
  ['to=%2B012000-01-01T00:00Z', /to: expected a time from 1970 to 9999-12-31T00:00:00.000Z, got/],
  ['to=9999-12-31T23:59:59Z', /to: expected a time from 1970 to 9999-12-31T00:00:00.000Z, got/],
  ['from=-000001-01-01T00:00Z', /from: expected a time from 1970 to 9999-12-31T00:00:00.000Z, got/],
  ['from=yesterday', /from: expected an ISO 8601 time such as .*, got "yesterday"/],
  ['from=2999-01-01', /from: expected a time in the past, got 2999-01-01T00:00:00.000Z; it is 20/],
  ['from=2020-02-01&to=2020-01-01', /to: expected a time after from/],
  ['after=nowhere', /after: expected a position of this log, such as [0-9a-f]{16,}, got "nowhere"/],
  ['type=ProjectForgotten', /type: expected one of /],
  ['limit=0', /limit: /],
  ['who=me', /who: not a parameter of this endpoint/],
]
for (const [query, message] of wrong)
  audited(`refuses ${query} and explains it`, async () =>
    isRefused(await api.send('GET', `/audit?${query}`), message),
  )

audited('refuses a position beyond the end of the log, and names the end', async () => {
  const [newest] = await audit({ limit: '1' })
  const beyond = (newest?.position ?? '').replaceAll(/./g, newest?.position.length === 16 ? '9' : 'f')
  isRefused(
    await api.send('GET', `/audit?after=${beyond}`),
    /after: position .* is beyond the end of the log, which is at /,
  )
})

audited('of the operator contains every environment, and names it', async () => {
  const facts = await operatorAudit({ resource: project.project_id, type: 'ProjectCreated' })
  assert.equal(facts[0]?.env_id, project.env_id)
  const [mine] = await audit({ resource: project.project_id, type: 'ProjectCreated' })
  assert.equal(facts, [{ ...mine, env_id: project.env_id }])
  assert.equal(
    await operatorAudit({ env_id: project.env_id, resource: build.build_id, type: 'BuildDeployed' }),
    await operatorAudit({ resource: build.build_id, type: 'BuildDeployed' }),
  )
  assert.equal(await operatorAudit({ env_id: newId() }), [])
})

audited('names the operator and its request; a tenant does not see the address of the operator', async () => {
  const slug = `audit-${newId().slice(-12)}`
  await operator.post(`${server.url}/operator/orgs`, { slug, plan: 'pro' })
  const changed = await operator.send('PATCH', `${server.url}/operator/orgs/${slug}`, {
    body: { plan: 'free' },
  })
  const { org_id } = (changed.json as { data: { org_id: string } }).data
  const [fact] = await operatorAudit({ resource: org_id, type: 'OrgChanged' })
  assert.equal([fact?.actor.credential_id, fact?.actor.credential_type], ['operator', 'operator'])
  assert.match(fact?.actor.ip ?? '', /127\.0\.0\.1/)
  assert.equal([fact?.request_id, fact?.env_id], [requestOf(changed), null])
  await operator.post(`${server.url}/operator/envs/${project.env_id}/api-keys`, { name: 'k' })
  const [seen] = await audit({ type: 'ApiKeyCreated', actor: 'operator' })
  assert.equal(seen?.actor, { credential_id: 'operator', credential_type: 'operator', ip: REDACTED })
})

audited('of the operator needs the operator token', async () => {
  const { status } = await api.send('GET', `${server.url}/operator/audit`)
  assert.is(status, 401)
})

audited.after(() => server.stop())
audited.run()
