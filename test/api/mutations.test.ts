import * as assert from 'uvu/assert'
import type { Static } from 'typebox'
import type { AuditedFactOfInstallation } from '../../src/api/schemas.ts'
import type { Recorded } from '../../src/events/event.ts'
import { newId } from '../../src/ids.ts'
import { readConfig } from '../../src/process/config.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { call, deploy, formOf, publish, type BuildUpload, upload, type Webhook } from '../support/build.ts'
import { openVisitor, signedIn } from '../support/dashboard.ts'
import { type Answer, type Api, openApi, type Sent } from '../support/http.ts'
import { installation } from '../support/installation.ts'
import { openLog } from '../support/openLog.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { zipBuild } from '../support/zipBuild.ts'

type Audited = Static<typeof AuditedFactOfInstallation>

const CODE = `
import { fn } from 'svc'
export const add = (a, b) => a + b
export const nightly = fn({ schedule: '0 3 1 1 *' }, () => null)
export const hook = fn({ webhook: { service: 'shop', path: '/paid' } }, (request) => request.body)
`

const server = await startServer()
const { api, url } = server
const { operatorToken } = openSecrets(readConfig(installation(server.dataDir)))
const operator = openApi(url, operatorToken)
const [, apiKeyId = ''] = api.key.split('_')
const { env_id } = await api.get<{ env_id: string }>('/env')
await deploy(api, 'shop', { 'f.js': CODE })
const [schedule] = (await api.page<{ schedule_id: string }>('/projects/shop/schedules')).data
const [webhook] = (await api.page<Webhook>('/projects/shop/webhooks')).data
const { run_id } = await call(api, 'f/add', 1, 2)
const { event_id } = await publish(api, 'nobody:listens')
const slug = `mutated-${newId().slice(-12)}`
const at = (path: string) => `${url}/operator${path}`
const RUN_READ = { permissions: { 'run:*': ['read'] } }

/** The kinds of routes that change something. `change`: it is in the audit. `traffic`: its facts have lists of their own. */
type Kind = 'change' | 'traffic'
interface Mutation {
  readonly kind: Kind
  /** The id and the kind of the actor; default: the API key of the test. */
  readonly actor?: readonly [id: string, type: string]
  readonly send: () => Promise<Answer>
}

const OPERATOR = ['operator', 'operator'] as const
const change = (send: () => Promise<Answer>): Mutation => ({ kind: 'change', send })
const traffic = (send: () => Promise<Answer>): Mutation => ({ kind: 'traffic', send })
const byOperator = (method: string, path: string, sent?: () => Promise<Sent> | Sent): Mutation => ({
  kind: 'change',
  actor: OPERATOR,
  send: async () => operator.send(method, at(path), await sent?.()),
})
const idIn = ({ json }: Answer, name: string): string =>
  (json as { data: Record<string, string> }).data[name] ?? ''
/** Creates something that the mutation then changes. */
const made = async (path: string, body: unknown, name: string, by: Api = api): Promise<string> =>
  (await by.post<Record<string, string>>(path, body))[name] ?? ''
const newBuild = async (): Promise<string> => {
  const reply = await upload(api, 'shop', { 'f.js': `${CODE}// ${newId()}` })
  return (reply.json as { data: BuildUpload }).data.build_id
}
const newKey = () => made(at(`/envs/${env_id}/api-keys`), { name: 'changed' }, 'api_key_id', operator)
const newUpload = () => made('/files/uploads', { path: `parts/${newId()}` }, 'upload_id')
const newDomain = () => made('/domains', { domain: `${newId()}.example.com` }, 'domain_id')
const newVariable = async (): Promise<string> => {
  const key = `K${newId().replaceAll('-', '')}`
  await api.post('/projects/shop/context', { key, value: 'v', description: '' })
  return key
}

/** Every route that may change something, by the name of its operation. */
const mutations: Readonly<Record<string, Mutation>> = {
  createProject: change(() => api.send('POST', '/projects', { body: { name: `p-${newId()}` } })),
  updateProject: change(() =>
    api.send('PATCH', '/projects/shop', { body: { network: ['api.example.com'] } }),
  ),
  deleteProject: change(async () =>
    api.send('DELETE', `/projects/${await made('/projects', { name: `p-${newId()}` }, 'project_id')}`),
  ),
  uploadBuild: change(async () => {
    const body = formOf(await zipBuild({ 'f.js': `${CODE}// ${newId()}` }))
    return api.send('POST', '/projects/shop/builds', { body })
  }),
  deployBuild: change(async () => api.send('POST', `/projects/shop/builds/${await newBuild()}/deploy`)),
  deleteBuild: change(async () => api.send('DELETE', `/projects/shop/builds/${await newBuild()}`)),
  createContextVariable: change(() =>
    api.send('POST', '/projects/shop/context', { body: { key: 'CREATED', value: 'v', description: '' } }),
  ),
  updateContextVariable: change(async () =>
    api.send('PUT', `/projects/shop/context/${await newVariable()}`, { body: { value: 'w' } }),
  ),
  deleteContextVariable: change(async () =>
    api.send('DELETE', `/projects/shop/context/${await newVariable()}`),
  ),
  pauseSchedule: change(() => api.send('POST', `/projects/shop/schedules/${schedule?.schedule_id}/pause`)),
  resumeSchedule: change(() => api.send('POST', `/projects/shop/schedules/${schedule?.schedule_id}/resume`)),
  runSchedule: change(() => api.send('POST', `/projects/shop/schedules/${schedule?.schedule_id}/run`)),
  evaluate: change(() => api.send('POST', '/projects/shop/eval', { body: { code: '1 + 1' } })),
  beginUpload: change(() => api.send('POST', '/files/uploads', { body: { path: `parts/${newId()}` } })),
  uploadPart: traffic(async () => api.send('PUT', `/files/uploads/${await newUpload()}/1`, { body: 'part' })),
  completeUpload: change(async () => {
    const upload_id = await newUpload()
    await api.send('PUT', `/files/uploads/${upload_id}/1`, { body: 'part' })
    return api.send('POST', `/files/uploads/${upload_id}/complete`)
  }),
  cancelUpload: change(async () => api.send('DELETE', `/files/uploads/${await newUpload()}`)),
  uploadFile: change(() => api.send('PUT', `/files/upload/put/${newId()}`, { body: 'content' })),
  deleteFile: change(async () => {
    const put = await api.send('PUT', `/files/upload/put/${newId()}`, { body: 'content' })
    return api.send('DELETE', `/files/${idIn(put, 'file_id')}`)
  }),
  createSession: change(() => api.send('POST', '/sessions', { body: RUN_READ })),
  revokeSession: change(async () =>
    api.send('DELETE', `/sessions/${await made('/sessions', RUN_READ, 'session_id')}`),
  ),
  revokeSessions: change(async () => {
    await api.post('/sessions', RUN_READ)
    return api.send('DELETE', '/sessions')
  }),
  createServiceKey: change(() => api.send('POST', '/service-keys', { body: { name: 'k', ...RUN_READ } })),
  revokeServiceKey: change(async () => {
    const id = await made('/service-keys', { name: 'k', ...RUN_READ }, 'service_key_id')
    return api.send('DELETE', `/service-keys/${id}`)
  }),
  revokeServiceKeys: change(async () => {
    await api.post('/service-keys', { name: 'k', ...RUN_READ })
    return api.send('DELETE', '/service-keys')
  }),
  createDomain: change(() => api.send('POST', '/domains', { body: { domain: `${newId()}.example.com` } })),
  deleteDomain: change(async () => api.send('DELETE', `/domains/${await newDomain()}`)),
  signIn: change(() => openVisitor(url).send('POST', '/v1/sign-in', { body: { token: api.key } })),
  signOut: {
    ...change(async () => (await signedIn(url, api.key)).send('DELETE', '/v1/sign-in')),
    actor: ['', 'session'],
  },
  createSignInTicket: change(() => api.send('POST', '/sign-in/tickets')),

  publishEvent: traffic(() => api.send('POST', '/events', { body: { event_type: 'a:b', event_data: 1 } })),
  publishAndFollow: traffic(async () => {
    const ending = new AbortController()
    const reply = await fetch(`${url}/v1/streams/subscribe-with-event`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${api.key}` },
      body: JSON.stringify({ event_type: 'a:b', event_data: 1 }),
      signal: ending.signal,
    })
    ending.abort()
    return { status: reply.status, headers: reply.headers, text: '', json: null }
  }),
  callFunction: traffic(() =>
    api.send('POST', `/functions/shop/${encodeURIComponent('f/add')}`, { body: { args: [1, 2] } }),
  ),
  replayRun: traffic(() => api.send('POST', `/runs/${run_id}/replay`)),
  cancelRun: traffic(() => api.send('POST', `/runs/${run_id}/cancel`)),
  sendMcpMessage: traffic(() =>
    api.send('POST', `${url}/mcp`, {
      headers: { Accept: 'application/json, text/event-stream' },
      body: {
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'send_event', arguments: { event_type: 'a:b', event_data: 1 } },
      },
    }),
  ),
  callWebhookByPost: {
    ...traffic(() => api.send('POST', webhook?.url ?? '', { body: { paid: true } })),
    actor: ['', 'client'],
  },

  createOrg: byOperator('POST', '/orgs', () => ({ body: { slug, plan: 'pro' } })),
  updateOrg: byOperator('PATCH', `/orgs/${slug}`, () => ({ body: { plan: 'scale' } })),
  createEnvironment: byOperator('POST', `/orgs/${slug}/envs`, () => ({ body: { name: 'dev' } })),
  createApiKey: byOperator('POST', `/envs/${env_id}/api-keys`, () => ({ body: { name: 'k' } })),
  updateApiKey: {
    ...byOperator('', ''),
    send: async () => operator.send('PATCH', at(`/api-keys/${await newKey()}`), { body: { enabled: false } }),
  },
  rotateApiKey: {
    ...byOperator('', ''),
    send: async () => operator.send('POST', at(`/api-keys/${await newKey()}/rotate`), { body: {} }),
  },
  deleteApiKey: {
    ...byOperator('', ''),
    send: async () => operator.send('DELETE', at(`/api-keys/${await newKey()}`)),
  },
  rotateDataKeys: byOperator('POST', `/envs/${env_id}/rotate-data-key`),
  eraseSecrets: byOperator('DELETE', `/envs/${env_id}/data-keys`),
  replayEvent: byOperator('POST', `/events/${event_id}/replay`),
  deleteEnvironment: {
    ...byOperator('', ''),
    send: async () => {
      const env = await made(at(`/orgs/${slug}/envs`), { name: 'deleted' }, 'env_id', operator)
      return operator.send('DELETE', at(`/envs/${env}`))
    },
  },
  deleteOrg: {
    ...byOperator('', ''),
    send: async () => {
      const org = `gone-${newId().slice(-12)}`
      await operator.post(at('/orgs'), { slug: org, plan: 'free' })
      return operator.send('DELETE', at(`/orgs/${org}`))
    },
  },
  signOutOperator: {
    ...byOperator('', ''),
    send: async () =>
      (await signedIn(url, operatorToken, '/operator/sign-in')).send('DELETE', '/operator/sign-in'),
  },
}

/** Routes that store no fact, or whose facts another test shows. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  beginBackup: 'reads',
  completeBackup: 'reads',
  endBackup: 'reads',
  exportEnv: 'reads',
  rebuildProjections: 'read models follow from the log',
  cancelRebuilds: 'read models follow from the log',
  signInOperator: 'the cookie is derived from the operator token; signing out is stored',
  verifyDomain: 'asks DNS; test/api/domains.test.ts shows the facts of a record that is found',
  rotateMasterKey: 'needs an installation of its own: test/api/masterKey.test.ts',
  callWebhookByPut: 'as with POST',
  callWebhookByPatch: 'as with POST',
  callWebhookByDelete: 'as with POST',
  callDomainWebhookByPost: 'as with POST',
  callDomainWebhookByPut: 'as with POST',
  callDomainWebhookByPatch: 'as with POST',
  callDomainWebhookByDelete: 'as with POST',
  importEnv: 'needs a second installation: test/cli/transfer.test.ts',
}

/** What the execution of a run stores has the run in its fields. */
const BY_WORKER: ReadonlySet<string> = new Set(['RunBegun', 'RunSucceeded', 'RunFailed', 'RunLogged'])

interface Operation {
  readonly operationId: string
}

const sent = new Map<string, string>()
const recorded = suite<{ audit: readonly Audited[]; facts: readonly Recorded[] }>(
  'a request that changes something',
  {
    timeoutMs: 120_000,
  },
)

recorded.before(async (context) => {
  for (const [name, { send }] of Object.entries(mutations)) {
    const { status, text, headers } = await send()
    assert.ok(status >= 200 && status <= 299, `${name}: ${status} ${text}`)
    sent.set(name, headers.get('x-request-id') ?? '')
  }
  const audit: Audited[] = []
  for (let after = 'start'; ;) {
    const { data } = await operator.page<Audited>(at(`/audit?limit=100&after=${after}`))
    audit.push(...data)
    if (data.length < 100) break
    after = data.at(-1)?.position ?? ''
  }
  await until(async () => (await api.page('/runs?status=running')).pagination.total === 0)
  await server.stop()
  const { store } = await openLog(readConfig(installation(server.dataDir)))
  const requests = new Set(sent.values())
  const facts: Recorded[] = []
  for await (const { events, caughtUp } of store.subscribe({ signal: new AbortController().signal })) {
    facts.push(...events.filter(({ metadata }) => requests.has(metadata.correlation_id)))
    if (caughtUp) break
  }
  await store.close()
  Object.assign(context, { audit, facts })
})

recorded('is each route of the API that does not only read', async () => {
  const other = await startServer()
  try {
    const document = (await (await fetch(`${other.url}/openapi.json`)).json()) as {
      paths: Record<string, Record<string, Operation>>
    }
    const writing = Object.values(document.paths).flatMap((methods) =>
      Object.entries(methods)
        .filter(([method]) => ['post', 'put', 'patch', 'delete'].includes(method))
        .map(([, { operationId }]) => operationId),
    )
    const tested = [...Object.keys(mutations), ...Object.keys(ELSEWHERE)]
    assert.equal(
      writing.filter((name) => !tested.includes(name)),
      [],
      'each new route needs an entry here',
    )
    assert.equal(
      tested.filter((name) => !writing.includes(name)),
      [],
    )
  } finally {
    await other.stop()
  }
})

for (const [name, { kind, actor: [actor, type] = [apiKeyId, 'api-key'] }] of Object.entries(mutations)) {
  recorded(`${name} stores facts with its actor, address, request and time`, ({ facts }) => {
    const own = facts.filter(
      ({ event, metadata }) => metadata.correlation_id === sent.get(name) && !BY_WORKER.has(event.type),
    )
    assert.ok(own.length > 0, 'no fact')
    for (const { event, metadata, at: time } of own) {
      assert.ok(metadata.actor_type, `${event.type} has no kind of actor`)
      assert.ok(Number.isFinite(Date.parse(time)), event.type)
    }
    const [first] = own
    assert.is(first?.metadata.actor_type, type)
    if (actor !== '') assert.is(first?.metadata.actor, actor)
    assert.match(first?.metadata.ip ?? '', '127.0.0.1')
  })

  if (kind === 'change')
    recorded(`${name} is in the audit with its actor, address, request and time`, ({ audit }) => {
      const own = audit.filter(({ request_id }) => request_id === sent.get(name))
      assert.ok(own.length > 0, 'no change')
      for (const found of own) {
        assert.is(found.actor.credential_type, type, found.type)
        if (actor !== '') assert.is(found.actor.credential_id, actor, found.type)
        assert.match(found.actor.ip ?? '', '127.0.0.1')
        assert.ok(Number.isFinite(Date.parse(found.time)))
      }
    })
}

recorded.run()
