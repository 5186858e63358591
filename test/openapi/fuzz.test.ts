import { request as open } from 'node:http'
import * as assert from 'uvu/assert'
import fc from 'fast-check'
import type { TSchema } from 'typebox'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig } from '../../src/process/config.ts'
import type { OpenApiDocument } from '../../src/api/openapi/document.ts'
import { newId } from '../../src/ids.ts'
import { deploy, handled, publish, runsOf, upload, type Webhook } from '../support/build.ts'
import { type Api, openApi } from '../support/http.ts'
import { installation } from '../support/installation.ts'
import { PATIENCE, SLACK } from '../support/patience.ts'
import { startWithOther, type TestServer } from '../support/server.ts'
import { SEED } from '../support/randomOf.ts'
import { suite } from '../support/suite.ts'
import { zipBuild } from '../support/zipBuild.ts'
import { exampleOf, type FuzzRequest, type Known, operationsOf, requestsTo } from './fuzzRequests.ts'
import { mismatches, replySchema, resolved } from './liveReply.ts'

const REQUESTS = Number(process.env['SVC_TEST_FUZZ_REQUESTS'] ?? 2000)
const AT_ONCE = 16
const LATEST_MS = 10_000 * PATIENCE * SLACK

const filesOf = (service: string) => ({
  'tasks.ts': `
    import { fn } from 'svc'
    export const greet = fn({ 'on-event': 'asked' }, async (event: any) => ({ hello: event.data }))
    export const nightly = fn({ schedule: '0 3 1 1 *' }, async () => null)
    export const hook = fn({ webhook: { service: '${service}', path: '/paid' } }, async () => ({ status: 202 }))
  `,
})

interface Context {
  server: TestServer
  document: OpenApiDocument
  /** By operation, then status: see `repliesOf`. */
  replies: Map<string, Map<number, TSchema | null>>
  /** `doomed` resources may be deleted or renamed; all others outlive the test. */
  known: Record<Known['whose'] | 'doomed', Readonly<Record<string, string>>>
  callers: Record<FuzzRequest['caller'], string | undefined>
}

const fuzz = suite<Context>('generated requests', { timeoutMs: 60_000 + REQUESTS * 60 })

/** One resource of each kind that a path can name. */
const thingsOf = async (api: Api, project: string): Promise<Record<string, string>> => {
  const { build_id } = await deploy(api, project, filesOf(project))
  await upload(api, project, await zipBuild(filesOf(project)), { live: 'true' })
  const [nightly] = await api.get<{ schedule_id: string }[]>(`/projects/${project}/schedules`)
  const { event_id, stream_id } = await publish(api, 'asked', { name: 'Ada' })
  await handled(api, event_id)
  const [run] = await runsOf(api, event_id)
  await api.post(`/projects/${project}/context`, { key: 'KEY', value: 'x' })
  const { session_id } = await api.post<{ session_id: string }>('/sessions', { permissions: {} })
  const { service_key_id } = await api.post<{ service_key_id: string }>('/service-keys', { permissions: {} })
  const { upload_id } = await api.post<{ upload_id: string }>('/files/uploads', { path: `${project}/part` })
  await api.send('PUT', `/files/uploads/${upload_id}/1`, { body: 'text' })
  const { json } = await api.send('PUT', `/files/upload/${project}/kept`, { body: 'text' })
  const { file_id } = (json as { data: { file_id: string } }).data
  const { domain_id } = await api.post<{ domain_id: string }>('/domains', {
    domain: `${newId()}.example.com`,
  })
  const ids = {
    build_id,
    schedule_id: nightly?.schedule_id ?? '',
    event_id,
    stream_id,
    run_id: run?.run_id ?? '',
    session_id,
    service_key_id,
    upload_id,
  }
  return {
    ...ids,
    file_id,
    domain_id,
    project,
    ref: 'tasks%2Fgreet',
    key: 'KEY',
    part_number: '1',
    path: 'a/b',
  }
}

fuzz.before(async (context) => {
  const { other, ...server } = await startWithOther({ env: { SVC_DNS_SERVERS: '127.0.0.1:9' } }) // no server listens there
  context.server = server
  const { operatorToken } = openSecrets(readConfig(installation(server.dataDir)))
  const operator = openApi(server.url, operatorToken)
  const org = `fuzzed-${newId()}`.slice(0, 30)
  await operator.post(`${server.url}/operator/orgs`, { slug: org, plan: 'pro' })
  const env = await operator.post<{ env_id: string }>(`${server.url}/operator/orgs/${org}/envs`, {
    name: 'dev',
  })
  const key = await operator.post<{ api_key_id: string }>(
    `${server.url}/operator/envs/${env.env_id}/api-keys`,
    { name: 'k' },
  )
  const own = await thingsOf(server.api, 'shop')
  const [hook] = await server.api.get<Webhook[]>('/projects/shop/webhooks')
  const [, ownOrg = '', ownEnv = '', rest = ''] =
    /\/webhook\/([^/]+)\/([^/]+)\/(.*)$/.exec(hook?.url ?? '') ?? []
  const page = (await server.api.send('GET', `${server.url}/docs`)).text
  const asset = /docs\/([^"]+)"/.exec(page)?.[1] ?? ''
  const doomed = {
    org,
    env: 'dev',
    env_id: env.env_id,
    api_key_id: key.api_key_id,
    rest,
    asset,
    guide: 'webhooks.md',
  }
  const known = {
    own: { ...doomed, ...own, org: ownOrg, env: ownEnv },
    other: { ...doomed, ...(await thingsOf(other, 'shop')) },
    doomed: { ...doomed, ...(await thingsOf(server.api, 'doomed')) },
  }
  const session = await server.api.post<{ token: string }>('/sessions', {
    permissions: { 'run:*': ['read'] },
  })
  const document = (await server.api.send('GET', `${server.url}/openapi.json`)).json as OpenApiDocument
  const callers = {
    own: undefined,
    none: undefined,
    other: `Bearer ${other.key}`,
    operator: `Bearer ${operatorToken}`,
    session: `Bearer ${session.token}`,
    garbage: 'Bearer svc_x_y',
    basic: 'Basic Og==',
    long: `Bearer ${'x'.repeat(9000)}`,
    unicode: 'Bearer \u00ff\u00e9',
  }
  Object.assign(context, { document, known, callers, replies: new Map() })
})
fuzz.after(({ server }) => server.stop())

interface Received {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  /** Null for a stream and for bytes that are not JSON. */
  readonly json: unknown
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** A webhook that changes nothing, whatever the request. */
const leaves = ({ segments }: FuzzRequest): boolean => segments[0] === 'webhook'

/** Sends a request and returns the reply; a stream is closed at once. `fetch` is not used, because it normalizes paths. */
const exchange = ({ server, known, callers }: Context, asked: FuzzRequest, late: AbortSignal) =>
  new Promise<Received>((resolve, reject) => {
    const { hostname, port } = new URL(server.url)
    const spared = {
      ...known,
      ...(['DELETE', 'PATCH'].includes(asked.method) && !leaves(asked) && { own: known.doomed }),
    }
    const path = asked.segments.map((one) => (typeof one === 'string' ? one : spared[one.whose][one.known]))
    const isOperators = ['operator', 'metrics'].includes(String(asked.segments[0]))
    const authorization =
      asked.caller === 'own'
        ? isOperators
          ? callers.operator
          : `Bearer ${server.api.key}`
        : callers[asked.caller]
    const { text = '', times = 0, latin1 } = asked.body ?? {}
    const body = Buffer.from(text.repeat(times), latin1 ? 'latin1' : 'utf8')
    const outgoing = open({
      hostname,
      port,
      agent: false,
      method: asked.method,
      path: `/${path.join('/')}${asked.query && `?${asked.query}`}`,
      headers: {
        ...(asked.body && { 'Content-Length': String(body.length) }),
        Connection: 'keep-alive', // otherwise an unread rest of the body resets the connection
        ...(authorization !== undefined && { Authorization: authorization }),
        ...asked.headers,
      },
      signal: late,
    })
    outgoing.on('error', reject)
    outgoing.on('response', (incoming) => {
      const { statusCode: status = 0, headers } = incoming
      if (headers['content-type']?.startsWith('text/event-stream')) {
        resolve({ status, headers, json: null })
        incoming.on('error', () => undefined)
        return outgoing.destroy()
      }
      const chunks: Buffer[] = []
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
      incoming.on('error', reject)
      incoming.on('end', () => {
        resolve({ status, headers, json: parsed(Buffer.concat(chunks).toString()) })
        outgoing.destroy()
      })
    })
    outgoing.end(body)
  })

const isEnvelope = (value: unknown): boolean => {
  const { error } = (value ?? {}) as { error?: Record<string, unknown> }
  return ['code', 'message', 'request_id'].every((key) => typeof error?.[key] === 'string')
}

/** Errors from before a request reaches an operation. */
const HEADERS_TOO_LARGE = 431

const isId = /^[0-9a-f-]{36}$/

/** Returns a problem of the reply, if there is one. `walked` requires a documented success. */
const problemOf = async (
  context: Context,
  asked: FuzzRequest,
  walked = false,
): Promise<string | undefined> => {
  let reply: Received
  try {
    reply = await exchange(context, asked, AbortSignal.timeout(LATEST_MS))
  } catch (error) {
    return `no reply: ${String(error)}`
  }
  const { status, headers, json } = reply
  const replied = `a ${status} ${JSON.stringify(json)?.slice(0, 300)}`
  if (status >= 500) return replied
  if (!isId.test(String(headers['x-request-id']))) return `${replied} without X-Request-Id`
  if (status >= 400 && !isEnvelope(json)) return `${replied} without the error envelope`
  if (!asked.routed) return undefined
  const documented = repliesOf(context, asked.operation)
  if (walked && (status >= 400 || !documented.has(status))) return `${replied}, not the documented success`
  if (status >= 400 && status !== HEADERS_TOO_LARGE && !documented.has(status))
    return `${replied} that is not documented`
  const schema = documented.get(status)
  const wrong = schema ? mismatches(schema, json) : []
  return wrong.length > 0 ? `${replied} that is not as documented: ${wrong.join('; ')}` : undefined
}

/** The documented statuses of an operation, with the schemas of those that are JSON. */
const repliesOf = ({ document, replies }: Context, operation: string): Map<number, TSchema | null> => {
  const before = replies.get(operation)
  if (before) return before
  const found = Object.values(document.paths)
    .flatMap((methods) => Object.values(methods))
    .find(({ operationId }) => operationId === operation)
  const responses = resolved(document, found?.['responses']) as Record<
    string,
    { content?: Record<string, { schema?: unknown }> }
  >
  const made = new Map(
    Object.entries(responses).map(([status, { content }]) => [
      Number(status),
      content?.['application/json']?.schema ? replySchema(document, operation, Number(status)) : null,
    ]),
  )
  replies.set(operation, made)
  return made
}

/**
 * Tested in liveReplies.test.ts instead: a form, a name that another example uses, a domain that must be proved, and the
 * reply of a function. Backups are tested in backups.test.ts, because external engines have none, and transfers
 * in transfer.test.ts, sign-ins of browsers in test/api/dashboard.
 */
const ELSEWHERE =
  /^(uploadBuild|updateProject|getPackage|askDomain|call(Domain)?WebhookBy\w+|\w+Backup\w*|(ex|im)portEnv|\w*[sS]ign(In|Out)(Operator)?)$/

fuzz('built from the examples receive documented replies from every operation', async (context) => {
  const problems: string[] = []
  const all = operationsOf(context.document).filter(({ id }) => !ELSEWHERE.test(id))
  const deepestFirst = all
    .filter(({ method }) => method === 'DELETE')
    .sort((a, b) => b.path.length - a.path.length)
  const { api } = context.server
  const things = await thingsOf(api, 'walked')
  const live = await upload(api, 'walked', await zipBuild(filesOf('walked')), { live: 'true' })
  const { build_id } = (live.json as { data: { build_id: string } }).data // a deployed build cannot be deleted
  const doomed = { ...context.known.doomed, ...things, build_id }
  const walk = { ...context, known: { ...context.known, doomed } }
  for (const operation of [...all.filter(({ method }) => method !== 'DELETE'), ...deepestFirst]) {
    const problem = await problemOf(walk, exampleOf(operation), true)
    if (problem !== undefined) problems.push(`${operation.id}: ${problem}`)
  }
  assert.is(problems.length, 0, problems.join('\n'))
})

fuzz(`of all kinds are answered as documented (SVC_TEST_SEED=${SEED})`, async (context) => {
  const operations = operationsOf(context.document)
  const left = fc.sample(requestsTo(operations), { numRuns: REQUESTS, seed: SEED })
  const problems: string[] = []
  const worker = async () => {
    for (let next = left.pop(); next; next = left.pop()) {
      const problem = await problemOf(context, next)
      if (problem !== undefined) problems.push(`${problem}\n  ${described(next)}`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  assert.is(problems.length, 0, `${problems.length} problems:\n${problems.slice(0, 40).join('\n')}`)
})

/** Shortens a problem to a readable line. */
const described = (asked: FuzzRequest): string =>
  JSON.stringify(asked)
    .replace(/(.{1,20}?)\1{9,}/g, '$1…')
    .slice(0, 600)

fuzz.run()
