import * as assert from 'uvu/assert'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig } from '../../src/process/config.ts'
import type { OpenApiDocument } from '../../src/api/openapi/document.ts'
import { deploy, handled, publish, runsOf, upload, type Webhook } from '../support/build.ts'
import { openApi } from '../support/http.ts'
import { installation } from '../support/installation.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { zipBuild } from '../support/zipBuild.ts'
import { mismatches, replySchema } from './liveReply.ts'

const files = {
  'tasks.ts': `
    import { fn, emit } from 'svc'
    export const greet = fn({ 'on-event': 'asked' }, async (event: any) => {
      await emit('word', 'hello')
      return { hello: event.data }
    })
    export const fail = fn({ 'on-event': 'broken', retry: { attempts: 1, delay: 3600000 } }, async () => { throw new Error('no') })
    export const daily = fn({ schedule: '0 3 * * *' }, async () => null)
    export const hook = fn({ webhook: { service: 'shop', path: '/paid' } }, async () => ({ status: 202 }))
  `,
}

interface Context {
  server: TestServer
  document: OpenApiDocument
  event_id: string
  stream_id: string
  build_id: string
}

const replies = suite<Context>('live replies')

replies.before(async (context) => {
  const server = await startServer({ env: { SVC_DNS_SERVERS: '127.0.0.1:9' } }) // no server listens there
  const { build_id } = await deploy(server.api, 'shop', files)
  const { event_id, stream_id } = await publish(server.api, 'asked', { name: 'Ada' })
  await handled(server.api, event_id)
  const { json } = await server.api.send('GET', `${server.url}/openapi.json`)
  Object.assign(context, { server, build_id, event_id, stream_id, document: json })
})
replies.after(({ server }) => server.stop())

/** Sends the request and checks its reply against the document. */
const checked = async (
  { server: { api }, document }: Context,
  [operationId, method, path, status]: readonly [string, string, string, number],
  body?: unknown,
): Promise<unknown> => {
  const reply = await api.send(method, path, { body })
  assert.is(reply.status, status, `${method} ${path}: ${reply.text}`)
  assert.equal(mismatches(replySchema(document, operationId, status), reply.json), [], `${method} ${path}`)
  return reply.json
}

replies('of lists and items are as documented', async (context) => {
  const { build_id, event_id } = context
  for (const [operationId, path] of [
    ['listProjects', '/projects'],
    ['getProject', '/projects/shop'],
    ['listBuilds', '/builds'],
    ['listProjectBuilds', '/projects/shop/builds'],
    ['getDeployedBuild', '/projects/shop/builds/deployed'],
    ['getProjectBuild', `/projects/shop/builds/${build_id}`],
    ['listContextVariables', '/projects/shop/context'],
    ['listProjectEventHandlers', '/projects/shop/event-handlers'],
    ['listProjectSchedules', '/projects/shop/schedules'],
    ['listProjectWebhooks', '/projects/shop/webhooks'],
    ['listEvents', '/events'],
    ['getEvent', `/events/${event_id}`],
    ['listEventRuns', `/events/${event_id}/runs`],
    ['listRuns', '/runs?status=succeeded'],
    ['getRunStats', '/runs/stats'],
    ['getEnvironment', '/env'],
    ['getOrgUsage', '/org/usage'],
  ] as const) {
    await checked(context, [operationId, 'GET', path, 200])
  }
})

replies('about the output of runs are as documented', async (context) => {
  const { api } = context.server
  const [run] = await runsOf(api, context.event_id)
  await checked(context, ['getRunLogs', 'GET', `/runs/${run?.run_id}/logs`, 200])
  const [webhook] = (await api.page<Webhook>('/projects/shop/webhooks')).data
  await api.send('POST', `${webhook?.url}?a=1&a=2`, { body: { paid: true } })
  const [called] = (await api.page<{ run_id: string }>('/runs?type=call&limit=1')).data
  await checked(context, ['getRunLogs', 'GET', `/runs/${called?.run_id}/logs`, 200])
  await checked(context, ['getRunLogs', 'GET', `/runs/${context.event_id}/logs`, 404])
})

replies('of context variables are as documented', async (context) => {
  const body = { key: 'KEY', value: 'x', description: 'A key' }
  await checked(context, ['createContextVariable', 'POST', '/projects/shop/context', 201], body)
  await checked(context, ['createContextVariable', 'POST', '/projects/shop/context', 409], body)
  await checked(context, ['listContextVariables', 'GET', '/projects/shop/context', 200])
  const change = { value: 'y', description: 'Another' }
  await checked(context, ['updateContextVariable', 'PUT', '/projects/shop/context/KEY', 200], change)
  const { api } = context.server
  assert.is((await api.send('DELETE', '/projects/shop/context/KEY')).status, 204)
  await checked(context, ['updateContextVariable', 'PUT', '/projects/shop/context/KEY', 404], change)
})

replies('of a run that failed and waits for its retry are as documented', async (context) => {
  const { event_id } = await publish(context.server.api, 'broken')
  await until(async () => (await runsOf(context.server.api, event_id))[0]?.status === 'pending_retry')
  await checked(context, ['listEventRuns', 'GET', `/events/${event_id}/runs`, 200])
})

replies('of schedules are as documented', async (context) => {
  const path = '/projects/shop/schedules'
  const [daily] = (await context.server.api.page<{ schedule_id: string }>(path)).data
  const at = `${path}/${daily?.schedule_id}`
  await checked(context, ['runSchedule', 'POST', `${at}/run`, 201])
  await checked(context, ['pauseSchedule', 'POST', `${at}/pause`, 200])
  await checked(context, ['listProjectSchedules', 'GET', path, 200])
  await checked(context, ['resumeSchedule', 'POST', `${at}/resume`, 200])
  await checked(context, ['pauseSchedule', 'POST', `${path}/${context.build_id}/pause`, 404])
})

replies('about created resources are as documented', async (context) => {
  await checked(context, ['createProject', 'POST', '/projects', 201], { name: 'other' })
  await checked(context, ['updateProject', 'PATCH', '/projects/other', 200], { name: 'another' })
  await checked(context, ['publishEvent', 'POST', '/events', 201], { type: 'asked', data: [1] })
  await checked(context, ['evaluate', 'POST', '/projects/shop/eval', 201], { code: '1 + 1' })
})

replies(
  'of uploads are as documented, the first and the second time',
  async ({ server: { api }, document }) => {
    const zip = await zipBuild({ 'a.js': 'export const a = () => 1' })
    const build_id = '01a1faf6-082e-7004-be21-1748e5bd2d51'
    for (const status of [201, 200]) {
      const reply = await upload(api, 'shop', zip, { build_id })
      assert.is(reply.status, status)
      assert.equal(mismatches(replySchema(document, 'uploadBuild', status), reply.json), [])
    }
  },
)

replies('of files are as documented', async (context) => {
  const uploaded = (await checked(context, ['uploadFile', 'PUT', '/files/upload/a/b.txt', 200], 'text')) as {
    data: { file_id: string }
  }
  const { file_id } = uploaded.data
  await checked(context, ['listFiles', 'GET', '/files', 200])
  await checked(context, ['getFile', 'GET', `/files/${file_id}`, 200])
  await checked(context, ['getFile', 'GET', `/files/${file_id}x`, 404])
  const range = { headers: { Range: 'bytes=100-' } }
  const refused = await context.server.api.send('GET', `/files/${file_id}/download`, range)
  assert.equal(mismatches(replySchema(context.document, 'downloadFile', 416), refused.json), [])

  const begun = (await checked(context, ['beginUpload', 'POST', '/files/uploads', 201], { path: 'a/c' })) as {
    data: { upload_id: string }
  }
  const upload = `/files/uploads/${begun.data.upload_id}`
  await checked(context, ['uploadPart', 'PUT', `${upload}/1`, 200], 'part')
  await checked(context, ['getUpload', 'GET', upload, 200])
  await checked(context, ['completeUpload', 'POST', `${upload}/complete`, 200])
  await checked(context, ['cancelUpload', 'DELETE', upload, 404])
})

replies('of custom domains are as documented', async (context) => {
  const domain = { domain: 'hooks.example.com' }
  const made = await checked(context, ['createDomain', 'POST', '/domains', 201], domain)
  const path = `/domains/${(made as { data: { domain_id: string } }).data.domain_id}`
  await checked(context, ['createDomain', 'POST', '/domains', 409], domain)
  await checked(context, ['listDomains', 'GET', '/domains', 200])
  await checked(context, ['getDomain', 'GET', path, 200])
  await checked(context, ['verifyDomain', 'POST', `${path}/verify`, 200])
  await checked(context, ['askDomain', 'GET', `${context.server.url}/ask?domain=a.example`, 404])
  await checked(context, ['askDomain', 'GET', `${context.server.url}/ask`, 400])
  assert.is((await context.server.api.send('DELETE', path)).status, 204)
})

replies('of sessions and service keys are as documented', async (context) => {
  const permissions = { 'run:*': ['read'] }
  for (const [name, path, plural] of [
    ['Session', '/sessions', 'Sessions'],
    ['ServiceKey', '/service-keys', 'ServiceKeys'],
  ] as const) {
    await checked(context, [`create${name}`, 'POST', path, 201], { permissions, metadata: { a: [1] } })
    await checked(context, [`list${plural}`, 'GET', path, 200])
    await checked(context, [`create${name}`, 'POST', path, 400], { permissions: { run: ['read'] } })
    await checked(context, [`revoke${name}`, 'DELETE', `${path}/none`, 404])
    await checked(context, [`revoke${plural}`, 'DELETE', path, 200])
  }
  const { service_key_id } = await context.server.api.post<{ service_key_id: string }>('/service-keys', {
    permissions,
    expires_in: 60,
  })
  await checked(context, ['getServiceKey', 'GET', `/service-keys/${service_key_id}`, 200])
})

replies('of the operator API are as documented', async (context) => {
  const { server, document } = context
  const { operatorToken } = openSecrets(readConfig(installation(server.dataDir)))
  const operator = { server: { ...server, api: openApi(server.url, operatorToken) }, document }
  const ask = (route: readonly [string, string, string, number], body?: unknown) =>
    checked(
      { ...context, ...operator },
      [route[0], route[1], `${server.url}/operator${route[2]}`, route[3]],
      body,
    )
  await ask(['createOrg', 'POST', '/orgs', 201], { slug: 'documented', plan: 'pro' })
  await ask(['createOrg', 'POST', '/orgs', 409], { slug: 'documented', plan: 'pro' })
  await ask(['listOrgs', 'GET', '/orgs', 200])
  await ask(['updateOrg', 'PATCH', '/orgs/documented', 200], { plan: 'scale' })
  await ask(['updateOrg', 'PATCH', '/orgs/none', 404], { plan: 'scale' })
  const env = await ask(['createEnvironment', 'POST', '/orgs/documented/envs', 201], { name: 'dev' })
  await ask(['listEnvironments', 'GET', '/orgs/documented/envs', 200])
  const { env_id } = (env as { data: { env_id: string } }).data
  const key = await ask(['createApiKey', 'POST', `/envs/${env_id}/api-keys`, 201], { name: 'k' })
  await ask(['listApiKeys', 'GET', `/envs/${env_id}/api-keys`, 200])
  const { api_key_id } = (key as { data: { api_key_id: string } }).data
  await ask(['getOrg', 'GET', '/orgs/documented', 200])
  await ask(['getEnvironmentById', 'GET', `/envs/${env_id}`, 200])
  await ask(['getApiKey', 'GET', `/api-keys/${api_key_id}`, 200])
  await ask(['rotateApiKey', 'POST', `/api-keys/${api_key_id}/rotate`, 201], { overlap_s: 60 })
  await ask(['getNodeStatus', 'GET', '/status', 200])
  await ask(['checkNode', 'GET', '/checks', 200])
  await ask(['updateApiKey', 'PATCH', `/api-keys/${api_key_id}`, 200], { enabled: false })
  assert.is(
    (await operator.server.api.send('DELETE', `${server.url}/operator/api-keys/${api_key_id}`)).status,
    204,
  )
})

replies('of refusals are as documented', async (context) => {
  const { server } = context
  await checked(context, ['getProject', 'GET', '/projects/none', 404])
  await checked(context, ['createProject', 'POST', '/projects', 400], { name: '' })
  await checked(context, ['createProject', 'POST', '/projects', 409], { name: 'shop' })
  const open = await fetch(`${server.url}/v1/projects`)
  assert.is(open.status, 401)
  assert.equal(mismatches(replySchema(context.document, 'listProjects', 401), await open.json()), [])
})

/** Parses the server-sent events of a body. */
const eventsIn = (text: string) =>
  [...text.matchAll(/^id: (.*)\nevent: (.*)\ndata: (.*)\n\n/gm)].map(([, id, event, data = '']) => ({
    id,
    event,
    data: JSON.parse(data) as unknown,
  }))

replies('of a stream carry the documented events', async ({ server: { api }, document }) => {
  const sent = { body: { event_type: 'asked', event_data: null }, headers: { Accept: 'text/event-stream' } }
  const { text } = await api.send('POST', '/streams/subscribe-with-event', sent)
  const schema = replySchema(document, 'publishAndFollow', 200, 'text/event-stream')
  const events = eventsIn(text)
  const names = events.map(({ event }) => event)
  assert.equal(names, ['event:published', 'run:start', 'stream:data', 'run:stop', 'stream:complete'])
  for (const event of events) assert.equal(mismatches(schema, event), [], event.event)
})

replies(
  'of the environment stream carry the documented events',
  async ({ server: { api, url }, document }) => {
    const leaving = new AbortController()
    const reply = await fetch(`${url}/v1/env/subscribe?from=start`, {
      headers: { Authorization: `Bearer ${api.key}` },
      signal: leaving.signal,
    })
    const schema = replySchema(document, 'followEnvironment', 200, 'text/event-stream')
    let text = ''
    for await (const chunk of reply.body ?? []) {
      text += Buffer.from(chunk).toString()
      if (/event: run:fail\n.*\n\n/.test(text)) break
    }
    leaving.abort()
    const events = eventsIn(text)
    const names = new Set(events.map(({ event }) => event))
    for (const name of ['stream:created', 'event:created', 'event:handled', 'run:start', 'run:stop'])
      assert.ok(names.has(name), name)
    for (const event of events) assert.equal(mismatches(schema, event), [], event.event)
  },
)

replies('of a webhook are the function’s own', async ({ server: { api } }) => {
  const [hook] = await api.get<Webhook[]>('/projects/shop/webhooks')
  assert.is((await api.send('POST', hook?.url ?? '')).status, 202)
})

replies.run()
