import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { json } from 'node:stream/consumers'
import * as assert from 'uvu/assert'
import type { Static } from 'typebox'
import { STREAMED_BYTES, WEBHOOKS_BYTES } from '../../src/api/http/memory.ts'
import type { OrgUsage } from '../../src/api/schemas.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig } from '../../src/process/config.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import { newId } from '../../src/ids.ts'
import { termsOf } from '../../src/plans/plans.ts'
import { deploy, publish, type Run, runsOf, type Webhook } from '../support/build.ts'
import { type Answer, type Api, openApi } from '../support/http.ts'
import { installation } from '../support/installation.ts'
import { plantedFile } from '../support/plantedFile.ts'
import { plantOrg } from '../support/plantOrg.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import { callHook } from './hooks.ts'
import { refusal } from './refusal.ts'
import { follow } from './sse.ts'

const begun = (): DomainEvent => ({
  type: 'RunStarted',
  run_id: newId(),
  stream_id: newId(),
  run_type: 'call',
  build_id: newId(),
  project_id: newId(),
  project_name: 'planted',
  target: { ns: 'a', var: 'b' },
  attempt: 1,
  worker_id: newId(),
  start_time: '2026-05-01T10:00:00.000Z',
})
const oneRun = begun()
const kept = (size: number): DomainEvent => ({
  type: 'EventPublished',
  event_id: newId(),
  stream_id: newId(),
  event_type: 'planted',
  event_data_ref: { key: 'payloads/none', size, sha256: 'none' },
  source: 'api',
  event_time: '2026-05-01T10:00:00.000Z',
})

const FUNCTIONS = `
import { fn, call, run, send } from 'svc'
const tried = async (work) => { try { await work(); return 'done' } catch (error) { return error.message } }
export const add = (a, b) => a + b
export const deep = fn({ 'on-event': 'deep' }, async () => [
  await tried(() => run('jobs/add', 1, 2)),
  await tried(() => run('jobs/add', 1, 2)),
  await tried(() => call('jobs/add', 1, 2)),
  await tried(() => send('any', 1)),
])
export const hook = fn({ webhook: { service: 's', path: '/hook' } }, () => 'ran')
`

/** Large webhooks that the memory for the bodies of one organization admits. */
const WEBHOOKS_AT_A_TIME = WEBHOOKS_BYTES / 2 / STREAMED_BYTES

const { free, starter, pro, scale } = termsOf
const dataDir = tempDir()
const [fresh] = await plantOrg(dataDir, 'starter', [])
const [left, right] = await plantOrg(dataDir, 'pro', [begun(), kept(100)], [begun(), begun(), kept(20)])
/** Attempts count as runs. Those of one run need one document only, which matters on a server that scans. */
const attempts = Array.from({ length: free.limits.runs_per_month }, () => oneRun)
const [outOfRuns] = await plantOrg(dataDir, 'free', attempts)
/** The bytes of the function `deep` before its second child: its event, and the input and result of its first child. */
const LAST_BYTES = 'null'.length + '[1,2]'.length + '3'.length
const [outOfCalls] = await plantOrg(dataDir, 'scale', [kept(scale.limits.call_storage_bytes - LAST_BYTES)])
/** Room for a run, and for no webhook with `LARGE_BODY`. */
const [almostFull] = await plantOrg(dataDir, 'scale', [kept(scale.limits.call_storage_bytes - (20 << 10))])
const LARGE_BODY = 'x'.repeat(40 << 10)
const [fullOfFiles] = await plantOrg(dataDir, 'scale', [
  plantedFile('large', scale.limits.storage_bytes - 10),
])
const server = await startServer({ dataDir })
const apiOf = (planted: { key: string } | undefined): Api => openApi(server.url, planted?.key ?? '')
const usageOf = (api: Api) => api.get<Static<typeof OrgUsage>>('/org/usage')

// The planted facts are folded first, which takes long on a read-model server that scans.
const isFolded = async () =>
  (await apiOf(left).send('GET', '/runs?limit=1')).status === 200 &&
  (await usageOf(apiOf(outOfRuns))).usage_percent.runs >= 100
await until(isFolded, { timeoutMs: 60_000 })

const usage = suite('GET /v1/org/usage (SPEC.md, Usage and limits)')

usage('limits: without a subscription all are -1, and no percentage is reported', async () => {
  const { limits, usage_percent, plan } = await usageOf(server.api)
  assert.equal(limits, {
    runs_per_month: -1,
    storage_bytes: -1,
    team_members: -1,
    call_retention_days: -1,
    call_storage_bytes: -1,
  })
  assert.equal(usage_percent, {
    runs: 0,
    file_storage: 0,
    call_storage: 0,
    team_members: 0,
    has_warning: false,
  })
  assert.is(plan.name, 'self_host')
})

usage('plan.name, plan.period_start, plan.period_end: this month, UTC', async () => {
  const { plan, limits } = await usageOf(apiOf(left))
  assert.is(plan.name, 'pro')
  assert.equal(limits, pro.limits)
  const start = new Date(plan.period_start)
  assert.match(plan.period_start, /^\d{4}-\d\d-01T00:00:00\.000Z$/)
  assert.ok(start.getTime() <= Date.now() && Date.now() < Date.parse(plan.period_end))
  assert.is(start.setUTCMonth(start.getUTCMonth() + 1), Date.parse(plan.period_end))
})

usage('org_id: that of the environment', async () => {
  const [{ org_id }, env] = [await usageOf(apiOf(left)), await apiOf(left).get<{ org_id: string }>('/env')]
  assert.is(org_id, env.org_id)
})

usage('usage.*: over all environments of the organization, and of no other', async () => {
  for (const planted of [left, right]) {
    const { usage, usage_percent } = await usageOf(apiOf(planted))
    assert.is(usage.runs_this_period, 3)
    assert.is(usage.call_count, 3)
    assert.is(usage.call_storage_bytes, 120)
    assert.is(usage_percent.runs, 300 / pro.limits.runs_per_month)
  }
})

usage('counts a run and its stored data as soon as the run is visible', async () => {
  const api = apiOf(fresh)
  await deploy(api, 'jobs', { 'jobs.js': FUNCTIONS })
  assert.is((await usageOf(api)).usage.runs_this_period, 0)
  const run = await api.post<Run>('/projects/jobs/eval', { code: '"12345678"' })
  assert.is(run.status, 'succeeded')
  const { usage } = await usageOf(api)
  assert.equal([usage.runs_this_period, usage.call_count], [1, 1])
  assert.is(usage.call_storage_bytes, '[]'.length + '"12345678"'.length)
})

usage('usage.file_storage_bytes: the current size of the files', async () => {
  const api = apiOf(right)
  const put = (content: string) => api.send('PUT', '/files/upload/a/b.txt', { body: content })
  const bytes = async () => (await usageOf(apiOf(left))).usage.file_storage_bytes
  const { json } = await put('12345')
  assert.is(await bytes(), 5)
  await put('123')
  assert.is(await bytes(), 3)
  await api.remove(`/files/${(json as { data: { file_id: string } }).data.file_id}`)
  assert.is(await bytes(), 0)
})

usage('usage.team_members, plan.name: as the operator set them, from the next request on', async () => {
  const { operatorToken } = openSecrets(readConfig(installation(dataDir)))
  const api = apiOf(fresh)
  const { org_id, usage, usage_percent } = await usageOf(api)
  assert.is(usage.team_members, 1)
  assert.is(usage_percent.team_members, 100 / starter.limits.team_members)
  const { status } = await openApi(server.url, operatorToken).send(
    'PATCH',
    `${server.url}/operator/orgs/${org_id}`,
    { body: { plan: 'pro', team_members: 50 } },
  )
  assert.is(status, 200)
  const after = await usageOf(api)
  assert.is(after.plan.name, 'pro')
  assert.equal(after.limits, pro.limits)
  assert.is(after.usage.team_members, 50)
  assert.is(after.usage_percent.team_members, 5000 / pro.limits.team_members)
  assert.is(after.usage_percent.has_warning, true)
})

usage('usage_percent.has_warning: true when any usage exceeds 90 percent', async () => {
  assert.is((await usageOf(apiOf(left))).usage_percent.has_warning, false)
  const { usage_percent } = await usageOf(apiOf(outOfRuns))
  assert.equal([usage_percent.runs, usage_percent.has_warning], [100, true])
})

usage(
  'live_streams: those that are open on the node, of the environment and of its organization',
  async () => {
    const [one, other] = [apiOf(left), apiOf(right)]
    const seenBy = async (api: Api) => (await usageOf(api)).live_streams
    assert.equal(await seenBy(one), { in_env: 0, in_org: 0, limit: pro.counts.streams })
    const open = [await follow(one, '/env/subscribe'), await follow(other, '/env/subscribe')]
    open.push(await follow(one, '/env/subscribe'))
    assert.equal(await seenBy(one), { in_env: 2, in_org: 3, limit: pro.counts.streams })
    assert.equal(await seenBy(other), { in_env: 1, in_org: 3, limit: pro.counts.streams })
    assert.is((await seenBy(apiOf(fresh))).in_org, 0)
    for (const follower of open) follower.close()
    await until(async () => (await seenBy(one)).in_org === 0)
  },
)

usage('is read by the operator, by the slug and by the id of the organization', async () => {
  const operator = openApi(server.url, openSecrets(readConfig(installation(dataDir))).operatorToken)
  for (const planted of [left, fresh, outOfRuns]) {
    const { live_streams, ...own } = await usageOf(apiOf(planted))
    const path = `${server.url}/operator/orgs/${own.org_id}`
    const { slug } = await operator.get<{ slug: string }>(path)
    for (const name of [own.org_id, slug])
      assert.equal(await operator.get(`${server.url}/operator/orgs/${name}/usage`), {
        ...own,
        live_streams: { ...live_streams, in_env: null },
      })
  }
  const missing = await operator.send('GET', `${server.url}/operator/orgs/${newId()}/usage`)
  assert.is(missing.status, 404)
  const asKey = await apiOf(left).send('GET', `${server.url}/operator/orgs/${newId()}/usage`)
  assert.is(asKey.status, 401)
})

usage.run()

const quota = suite('403 quota_exceeded')

/** Asks until it is refused: a service that cannot read the usage of an organization in half a second allows the first requests. */
const refused = (
  ask: () => Promise<Answer>,
  undo: (stored: Record<string, string>) => Promise<unknown> = () => Promise.resolve(),
) =>
  until(async () => {
    const answer = await ask()
    if (answer.status >= 400) return refusal(answer)
    await undo((answer.json as { data: Record<string, string> }).data)
    return undefined
  })

quota('runs_per_month: no run is started', async () => {
  const api = apiOf(outOfRuns)
  const { status, code, message } = await refused(() =>
    api.send('POST', '/events', { body: { event_type: 'any' } }),
  )
  assert.equal([status, code], [403, 'quota_exceeded'])
  assert.match(message, /free allows 10000 runs per month/)
})

quota('call_storage_bytes: starting a run is refused, through the API and in user code', async () => {
  const api = apiOf(outOfCalls)
  await deploy(api, 'jobs', { 'jobs.js': FUNCTIONS })
  const { event_id } = await publish(api, 'deep')
  const [run] = await until(async () => {
    const runs = await runsOf(api, event_id)
    return runs[0]?.status === 'succeeded' ? runs : undefined
  })
  const [first, ...others] = (run?.result ?? []) as string[]
  assert.is(first, 'done')
  assert.is(others.length, 3)
  for (const other of others) assert.match(other, /scale allows \d+ bytes/)

  const [webhook] = (await api.page<Webhook>('/projects/jobs/webhooks')).data
  const refusals = [
    await api.refused('POST', '/events', { event_type: 'any' }),
    await api.refused('POST', '/events', { event_type: 'svc:call', event_data: { fn: 'jobs/add' } }),
    await api.refused('POST', '/events', { event_type: 'svc:replay', event_data: { run_id: run?.run_id } }),
    await api.refused('POST', '/streams/subscribe-with-event', { event_type: 'any', data: 1 }),
    await api.refused('POST', '/projects/jobs/eval', { code: '1' }),
    refusal(await callHook(webhook?.url ?? '')),
  ]
  for (const { status, code } of refusals) assert.equal([status, code], [403, 'quota_exceeded'])

  assert.is((await publish(api, 'svc:cancel', { run_id: run?.run_id })).event_type, 'svc:cancel')
  assert.ok((await usageOf(api)).usage_percent.call_storage > 100)
})

quota('a large webhook that is refused leaves the memory for bodies to the next one', async () => {
  const api = apiOf(almostFull)
  await deploy(api, 'jobs', { 'jobs.js': FUNCTIONS })
  const [webhook] = (await api.page<Webhook>('/projects/jobs/webhooks')).data
  const send = () => api.send('POST', webhook?.url ?? '', { body: LARGE_BODY })
  await refused(send)
  for (let n = 0; n < WEBHOOKS_AT_A_TIME; n++) {
    const { status, code, message } = refusal(await send())
    assert.equal([n, status, code], [n, 403, 'quota_exceeded'], message)
  }
})

quota('the largest file of a plan: an upload in one request is refused as one in parts is', async () => {
  const api = apiOf(outOfRuns)
  const size = termsOf.free.maxFileBytes + 1
  const inParts = await api.refused('POST', '/files/uploads', { path: 'big', expected_size: size })
  const sent = request(`${server.url}/v1/files/upload/big`, {
    method: 'PUT',
    headers: { Authorization: `Bearer ${api.key}`, 'Content-Length': size, Expect: '100-continue' },
  }).on('error', () => {}) // ended below without a body
  sent.flushHeaders()
  const [reply] = (await once(sent, 'response')) as [IncomingMessage]
  const { error } = (await json(reply)) as { error: { code: string; message: string } }
  sent.destroy()
  assert.equal([reply.statusCode, error.code, error.message], [403, 'quota_exceeded', inParts.message])
  assert.is(inParts.message, `The plan allows at most ${size - 1} bytes per file, got ${size}`)
})

quota('a refusal is not stored under an Idempotency-Key, because the plan may be raised', async () => {
  const api = apiOf(outOfRuns)
  const operator = openApi(server.url, openSecrets(readConfig(installation(dataDir))).operatorToken)
  const send = () =>
    api.send('POST', '/events', { body: { event_type: 'any' }, headers: { 'Idempotency-Key': 'again' } })
  assert.is((await send()).status, 403)
  const { org_id } = await usageOf(api)
  const url = `${server.url}/operator/orgs/${org_id}`
  assert.is((await operator.send('PATCH', url, { body: { plan: 'pro' } })).status, 200)
  assert.is((await send()).status, 201)
})

quota('storage_bytes: a file for which there is no room is refused', async () => {
  const api = apiOf(fullOfFiles)
  const put = (path: string, content: string) => api.send('PUT', `/files/upload/${path}`, { body: content })
  const tooLarge = await refused(
    () => put('new', '12345678901'),
    ({ file_id }) => api.remove(`/files/${file_id}`),
  )
  assert.equal([tooLarge.status, tooLarge.code], [403, 'quota_exceeded'])
  assert.is((await put('new', '1234567890')).status, 200)
  assert.is(refusal(await put('another', '1')).code, 'quota_exceeded')
  assert.is((await put('new', '123456789')).status, 200)
})

quota('touches no other organization', async () => {
  assert.is((await publish(apiOf(left), 'any')).event_type, 'any')
})

quota.after(() => server.stop())
quota.run()
