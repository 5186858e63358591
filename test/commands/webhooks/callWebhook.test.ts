import { createHmac } from 'node:crypto'
import * as assert from 'uvu/assert'
import { compilePermissions } from '../../../src/access/permissions.ts'
import { createVariable } from '../../../src/commands/context/createVariable.ts'
import { authorizeWebhook, type Sender } from '../../../src/commands/webhooks/authorizeWebhook.ts'
import { callWebhook } from '../../../src/commands/webhooks/callWebhook.ts'
import { findWebhook, type WebhookAddress } from '../../../src/commands/webhooks/findWebhook.ts'
import { BEYOND_TIMEOUT_MS, storeRequest } from '../../../src/commands/runs/requestRun.ts'
import { cancelRun } from '../../../src/commands/runs/cancelRun.ts'
import { readRunLog } from '../../../src/commands/runs/readRunLog.ts'
import type { Caller } from '../../../src/commands/deps.ts'
import { AppError } from '../../../src/errors.ts'
import type { Permissions } from '../../../src/events/org.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { newId } from '../../../src/ids.ts'
import type { WantedRun } from '../../../src/ports/claimer.ts'
import type { Outcome, WebhookRequest } from '../../../src/ports/runtime.ts'
import { sealMetadata } from '../../../src/secrets/serviceKeyMetadata.ts'
import { suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'
import { openWorker } from '../../worker/openWorker.ts'
import { openCommands } from '../openCommands.ts'
import { plantBuild, plantEnv } from '../plantEnv.ts'
import { refusedWith } from '../refusedWith.ts'

const node = await openCommands()
const env = await plantEnv(node, 'acme')
const other = await plantEnv(node, 'other')
const { keyring } = node.deps
const { worker, held, invocations } = openWorker({ ...node, keyring }, { alone: true })
const deps = { ...node.deps, claimer: worker }
const paid = {
  service: 'stripe',
  path: '/paid',
  method: 'POST',
  name: 'paid',
  description: '',
  auth: 'none',
} as const
await plantBuild(node, env, {
  name: 'shop',
  functions: [{ ns: 'hooks', var: 'paid', webhook: paid, secret_headers: ['x-key'], timeout: 4000 }],
})

const token = keyring.webhookToken(env.env_id, paid)
const address: WebhookAddress = {
  method: 'POST',
  hostname: 'svc.test',
  path: `acme/dev/stripe/paid/${token}`,
}

const endpoint = await findWebhook(deps, address)

const finding = suite('the address of a webhook')

finding('names the function of the deployed build that has the endpoint', async () => {
  const { env: found, deployed, webhook } = await findWebhook(deps, address)
  assert.equal([found.env_id, deployed.fn.var, webhook.path], [env.env_id, 'paid', '/paid'])
})

finding('is the same refusal whatever is wrong with it', async () => {
  const messages = new Set<string>()
  for (const wrong of [
    { path: `acme/dev/stripe/paid/${token}x` },
    { path: 'acme/dev/stripe/paid' },
    { path: `acme/dev/stripe/other/${keyring.webhookToken(env.env_id, { ...paid, path: '/other' })}` },
    { path: `other/dev/stripe/paid/${token}` },
    { path: `none/dev/stripe/paid/${token}` },
    { path: '' },
    { method: 'PUT' },
  ])
    messages.add((await refusedWith('not_found', () => findWebhook(deps, { ...address, ...wrong }))).message)
  assert.is(messages.size, 1)
})

finding(
  'belongs to one environment: its token is not valid in another one with the same webhook',
  async () => {
    await plantBuild(node, other, { name: 'shop', functions: [{ ns: 'hooks', var: 'paid', webhook: paid }] })
    await refusedWith('not_found', () =>
      findWebhook(deps, { ...address, path: `other/dev/stripe/paid/${token}` }),
    )
  },
)

finding.run()

const sender = (permissions: Permissions, more: Partial<Sender> = {}): Sender => ({
  kind: 'api-key',
  id: newId(),
  env_id: env.env_id,
  permissions: compilePermissions(permissions),
  ...more,
})

const authorizing = suite('a webhook that requires a credential')

authorizing('admits one that may execute the service', async () => {
  const auth = await authorizeWebhook(deps, endpoint, sender({ 'webhook:stripe': ['execute'] }))
  assert.equal(auth, { type: 'api-key' })
})

authorizing('forbids one that may execute another service', () =>
  refusedWith('forbidden', () => authorizeWebhook(deps, endpoint, sender({ 'webhook:github': ['execute'] }))),
)

authorizing('does not exist for one of another environment', () =>
  refusedWith('not_found', () =>
    authorizeWebhook(deps, endpoint, sender({ '*:*': ['*'] }, { env_id: other.env_id })),
  ),
)

authorizing('gives the handler the metadata of a service key', async () => {
  const of = { env_id: env.env_id, service_key_id: newId() }
  const metadata = await sealMetadata(keyring, of, { customer: 7 })
  const key = sender({ '*:*': ['*'] }, { kind: 'service-key', id: of.service_key_id, metadata })
  assert.equal(await authorizeWebhook(deps, endpoint, key), {
    type: 'service-key',
    metadata: { customer: 7 },
  })
})

authorizing.run()

const request: WebhookRequest = {
  method: 'POST',
  url: '/webhook/stripe/paid',
  'original-url': `https://svc.test/webhook/${address.path}`,
  headers: { 'x-key': 'top secret', 'x-open': 'hello' },
  body: { amount: 5 },
}
const input = {
  endpoint,
  readRequest: () => Promise.resolve(request),
  defaultTimeoutMs: 60_000,
}

/** Calls the webhook while its run ends as given. */
const call = async (outcome: Outcome, more: Partial<typeof input> = {}) => {
  const before = held.length
  const calling = callWebhook(deps, { ...input, ...more }, env.caller)
  calling.catch(() => {})
  await until(() => held.length > before)
  const invocation = invocations.at(-1)
  held.at(-1)?.(outcome)
  return { ending: await calling, invocation }
}
const succeeded: Outcome = { status: 'succeeded', result: { status: 202 } }

/** The quotas of an organization that may start no further run. */
const full = {
  checkRun: () => Promise.reject(new AppError('quota_exceeded', 'full')),
  dataFor: () => node.quotas.dataFor(''),
}

const calling = suite('a call of a webhook')
calling.after(async () => {
  await worker.stop({ drainMs: 10 })
  await node.close()
})

calling('returns the result of its function', async () => {
  const { ending, invocation } = await call(succeeded)
  const { run_id } = invocation?.run ?? {}
  assert.equal(ending, { status: 'succeeded', run_id, result: { status: 202 } })
})

calling('returns why its function failed', async () => {
  const error = { code: 'function_failed', message: 'no money' }
  const { ending, invocation } = await call({ status: 'failed', error })
  const { run_id } = invocation?.run ?? {}
  assert.equal(ending, { status: 'failed', run_id, ...error, isLive: false })
})

calling('reports that the build of a failed function is a live one', async () => {
  const { deployed } = endpoint
  const live = await plantBuild(node, env, {
    name: 'shop',
    project_id: deployed.project.project_id,
    build_type: 'live',
  })
  const onLive = { ...endpoint, deployed: { ...deployed, build: { ...deployed.build, ...live } } }
  const error = { code: 'function_failed', message: 'no money' }
  const { ending } = await call({ status: 'failed', error }, { endpoint: onLive })
  assert.is(ending.status === 'failed' && ending.isLive, true)
})

calling('whose function was refused by an outage of the service is unavailable', async () => {
  const { message } = await refusedWith('unavailable', () =>
    call({ status: 'failed', error: { code: 'unavailable', message: 'The event store does not answer' } }),
  )
  assert.is(message, 'The event store does not answer')
})

calling('whose build was deleted before its run began is refused like an unknown webhook', async () => {
  const { message } = await refusedWith('not_found', () =>
    call({ status: 'failed', error: { code: 'function_not_found', message: 'Build x no longer exists' } }),
  )
  assert.is(message, 'No webhook here')
})

calling('gives the handler the request as it was received, within the timeout of the function', async () => {
  const { invocation } = await call(succeeded)
  assert.equal(await invocation?.loadInput(), { kind: 'webhook', request })
  assert.is(invocation?.timeoutMs, 4000)
})

calling('stores neither its token nor its secret headers in plain text (I6)', async () => {
  const { invocation } = await call(succeeded)
  let log = ''
  for await (const { event } of node.store.read(`stream-${invocation?.run.stream_id}`))
    log += JSON.stringify(event)
  assert.ok(log.includes('hello'))
  assert.not(log.includes('top secret'))
  assert.not(log.includes(token))
})

calling('keeps its request for the log of its run', async () => {
  const { invocation } = await call(succeeded)
  await node.views.settled()
  const run = await node.views.runs.get(invocation?.run.run_id ?? '')
  assert.ok(run)
  const { request: kept, lines } = await readRunLog(deps, run)
  assert.equal(await node.payloads.load(kept ?? {}), {
    method: 'POST',
    url: '/webhook/stripe/paid',
    headers: { 'x-key': '***', 'x-open': 'hello' },
    body: { amount: 5 },
  })
  assert.equal(lines, [])
})

calling('over the quota is refused before its body is read, and nothing is stored', async () => {
  const before = await node.store.head()
  let reads = 0
  const readRequest = () => Promise.resolve((reads++, request))
  await refusedWith('quota_exceeded', () =>
    callWebhook({ ...deps, quotas: full }, { ...input, readRequest }, env.caller),
  )
  assert.equal([reads, await node.store.head()], [0, before])
})

calling('over the quota gets the reply of a delivery that was accepted, and starts no other', async () => {
  await createVariable(deps, { project: 'shop', key: 'KEY', value: 'secret' }, env.caller)
  const signed = {
    ...endpoint,
    webhook: { ...endpoint.webhook, verify: { preset: 'github', context: 'KEY' } },
  } as const
  const body = '{}'
  const mac = createHmac('sha256', 'secret').update(body).digest('hex')
  const delivery = (id: string, signature = mac) => ({
    endpoint: signed,
    readRequest: () =>
      Promise.resolve({
        ...request,
        body: undefined,
        'body-raw': body,
        headers: { 'x-github-delivery': id, 'x-hub-signature-256': `sha256=${signature}` },
      }),
  })
  const { ending } = await call({ status: 'succeeded', result: 1 }, delivery('one'))
  const again = (sent: ReturnType<typeof delivery>) =>
    callWebhook({ ...deps, quotas: full }, { ...input, ...sent }, env.caller)
  assert.equal(await again(delivery('one')), { ...ending, isRepeated: true })
  const before = await node.store.head()
  await refusedWith('quota_exceeded', () => again(delivery('two')))
  await refusedWith('unauthorized', () => again(delivery('one', 'f'.repeat(64))))
  await refusedWith('quota_exceeded', () =>
    again({
      ...delivery('one'),
      largeBody: async function* () {
        yield Buffer.alloc(100_000)
      },
    } as ReturnType<typeof delivery>),
  )
  assert.is(await node.store.head(), before)
})

calling('keeps a body over 64 KiB out of the log, and the handler receives it', async () => {
  const large = { ...request, body: 'x'.repeat(100_000) }
  const { invocation } = await call(succeeded, { readRequest: () => Promise.resolve(large) })
  assert.equal(await invocation?.loadInput(), { kind: 'webhook', request: large })
  for await (const { event } of node.store.read(`stream-${invocation?.run.stream_id}`))
    assert.ok(JSON.stringify(event).length < 5000)
})

/** Calls it for a caller that waits no longer. */
const impatient = async (claimer: typeof node.deps.claimer) => {
  const { deployed } = endpoint
  const fn = { ...deployed.fn, timeout: -BEYOND_TIMEOUT_MS }
  const of = { run: newId(), stream: newId() }
  const { retryable } = await refusedWith('unavailable', () =>
    callWebhook(
      { ...deps, claimer },
      { ...input, endpoint: { ...endpoint, deployed: { ...deployed, fn } } },
      { ...env.caller, newId: (what) => of[what as keyof typeof of] },
    ),
  )
  const status = await node.aggregates.streams.read(
    streamOf.stream(of.stream),
    ({ runs }) => runs.get(of.run)?.status,
  )
  return { retryable, status }
}

calling(
  'that no worker began in time can be sent again, because its function does not run later',
  async () => {
    assert.equal(await impatient(null), { retryable: true, status: undefined })
  },
)

calling('whose run continues is refused without the advice to send it again', async () => {
  const claimer = {
    hasRoom: () => true,
    isFullFor: () => false,
    take: async (wanted: WantedRun) => void (await storeRequest(deps, wanted, newId())),
  } as unknown as typeof worker
  assert.equal(await impatient(claimer), { retryable: false, status: 'running' })
})

calling('takes room of the plan only until its body is stored, however long its run takes', async () => {
  const plan = await plantEnv(node, 'free', 'free')
  await plantBuild(node, plan, { name: 'shop', functions: [{ ns: 'hooks', var: 'paid', webhook: paid }] })
  const free = await findWebhook(deps, {
    ...address,
    path: `free/dev/stripe/paid/${keyring.webhookToken(plan.env_id, paid)}`,
  })
  const largeBody = async function* () {
    yield Buffer.alloc(100_000)
  }
  const runs: string[] = []
  const requests: Promise<unknown>[] = []
  const send = async () => {
    const [run_id, stream_id] = [newId(), newId()]
    const caller: Caller = { ...plan.caller, newId: (what) => (what === 'run' ? run_id : stream_id) }
    const request = callWebhook({ ...deps, claimer: null }, { ...input, endpoint: free, largeBody }, caller)
    requests.push(request)
    const isStored = () =>
      node.aggregates.streams.read(streamOf.stream(stream_id), (stream) => stream.runs.has(run_id))
    await Promise.race([until(isStored), request])
    runs.push(run_id)
  }
  for (let n = 0; n < 130; n++) await send() // 1 GiB, if each took 8 MiB
  for (const run_id of runs) await cancelRun(deps, run_id, plan.caller.cause)
  await Promise.all(requests)
})

calling.run()
