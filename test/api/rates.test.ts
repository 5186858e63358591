import * as assert from 'uvu/assert'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { clock } from '../../src/clock.ts'
import { readConfig } from '../../src/process/config.ts'
import type { Plan } from '../../src/events/org.ts'
import { newId } from '../../src/ids.ts'
import { deploy, type Webhook } from '../support/build.ts'
import { engineUrl } from '../support/engines.ts'
import { type Answer, type Api, openApi } from '../support/http.ts'
import { installation } from '../support/installation.ts'
import { plantOrg } from '../support/plantOrg.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import { callHook } from './hooks.ts'
import { newSession } from './issuing.ts'
import { refusal } from './refusal.ts'

const perSecond = { free: 5, starter: 20, pro: 100 } as const

const dataDir = tempDir()
/** Keys of organizations without any request so far, by test. */
const keys: Record<string, readonly string[]> = {}
const plant = async (name: string, plan: Plan, envs = 1) => {
  keys[name] = (await plantOrg(dataDir, plan, ...Array.from({ length: envs }, () => []))).map(
    ({ key }) => key,
  )
}
for (const plan of ['free', 'starter', 'pro', 'scale', 'self_host'] as const) await plant(plan, plan)
for (const name of ['waits', 'headers', 'order']) await plant(name, 'free')
await plant('envs', 'free', 2)
await plant('hooks', 'starter')
await plant('closed', 'starter')
await plant('stranger', 'free')
const server = await startServer({ dataDir })
const of = (name: string, env = 0): Api => openApi(server.url, keys[name]?.[env] ?? '')
const operator = () => openApi(server.url, openSecrets(readConfig(installation(dataDir))).operatorToken)

/**
 * Sends `count` requests at once; resolves with the number that passed and the time they took. Some are refused only if they
 * take less time than the limit allows for all of them, so a test that needs refusals sends many.
 */
const flood = async (count: number, ask: (i: number) => Promise<Answer>) => {
  const began = clock.monotonic()
  const answers = await Promise.all(Array.from({ length: count }, (_, i) => ask(i)))
  const seconds = (clock.monotonic() - began) / 1000
  const refused = answers.filter(({ status }) => status === 429)
  return { seconds, refused, passed: count - refused.length }
}

const rate = suite('SPEC.md, Limits: rate per organization')

for (const plan of ['free', 'starter', 'pro'] as const) {
  const limit = perSecond[plan]
  rate(`${plan}: ${limit} requests per second`, async () => {
    const { seconds, refused, passed } = await flood(limit * 3, () => of(plan).send('GET', '/env'))
    assert.ok(passed >= limit, `${passed} passed`)
    assert.ok(passed <= limit + Math.ceil(seconds * limit), `${passed} passed in ${seconds} s`)
    for (const answer of refused) {
      assert.equal([refusal(answer).status, refusal(answer).code], [429, 'rate_limit_exceeded'])
    }
  })
}

for (const plan of ['scale', 'self_host'] as const) {
  rate(`${plan}: unlimited, and no header mentions a limit`, async () => {
    const answers = await Promise.all(Array.from({ length: 300 }, () => of(plan).send('GET', '/env')))
    for (const { status, headers } of answers) {
      assert.is(status, 200)
      assert.is(headers.get('RateLimit'), null)
      assert.is(headers.get('RateLimit-Policy'), null)
    }
  })
}

rate('Exceeded rate: 429 with Retry-After, after which requests pass again', async () => {
  const api = of('waits')
  const { refused } = await flood(100, () => api.send('GET', '/env'))
  const [first] = refused
  assert.is(first?.headers.get('Retry-After'), '1')
  await until(async () => (await api.send('GET', '/env')).status === 200)
})

rate('RateLimit-Policy and RateLimit report the limit and its remainder', async () => {
  const api = of('headers')
  const { headers, status } = await api.send('GET', '/env')
  assert.is(status, 200)
  assert.is(headers.get('RateLimit-Policy'), '"org";q=5;w=1')
  assert.is(headers.get('RateLimit'), '"org";r=4;t=1')
  const { refused } = await flood(100, () => api.send('GET', '/env'))
  assert.match(refused[0]?.headers.get('RateLimit') ?? '', /^"org";r=0;t=1$/)
})

rate('is shared by all environments of the organization', async () => {
  const { seconds, passed } = await flood(20, (i) => of('envs', i % 2).send('GET', '/env'))
  assert.ok(passed <= 5 + Math.ceil(seconds * 5), `${passed} passed in ${seconds} s`)
})

rate('counts a request before it is validated, and none without a valid credential', async () => {
  const api = of('order')
  const stranger = openApi(server.url, `${api.key}x`)
  assert.is((await flood(20, () => stranger.send('GET', '/env'))).refused.length, 0)
  const { refused } = await flood(100, () => api.send('POST', '/projects', { body: 'no JSON' }))
  assert.ok(refused.length > 0)
})

rate('counts webhook requests, but only those with the right token', async () => {
  const api = of('hooks')
  const code = `import { fn } from 'svc'\nexport const hook = fn({ webhook: { service: 's', path: '/hook' } }, () => 'ran')\n`
  await deploy(api, 'hooks', { 'h.js': code })
  const [webhook] = (await api.page<Webhook>('/projects/hooks/webhooks')).data
  const url = webhook?.url ?? ''
  const wrong = await flood(60, () => callHook(`${url}x`))
  assert.is(wrong.refused.length, 0)
  const { refused } = await flood(300, () => callHook(url))
  assert.ok(refused.length > 0)
  assert.is(refused[0]?.headers.get('Retry-After'), '1')
})

rate(
  'counts refused requests to a webhook that requires a credential, for the owner of the credential',
  async () => {
    const api = of('closed')
    const code = `import { fn } from 'svc'\nexport const hook = fn({ webhook: { service: 's', path: '/hook', auth: 'required' } }, () => 'ran')\n`
    await deploy(api, 'closed', { 'h.js': code })
    const [webhook] = (await api.page<Webhook>('/projects/closed/webhooks')).data
    const callAs = (key: string) =>
      callHook(webhook?.url ?? '', { headers: { Authorization: `Bearer ${key}` } })
    const { token } = await newSession(api, { 'run:*': ['read'] })
    for (const [key, perSecond, otherwise] of [
      [token, 20, 403],
      [of('stranger').key, 5, 404],
    ] as const) {
      const answers: Answer[] = []
      const { refused } = await flood(300, async () => {
        const answer = await callAs(key)
        answers.push(answer)
        return answer
      })
      assert.ok(refused.length > 0)
      assert.equal(new Set(answers.map(({ status }) => status)), new Set([otherwise, 429]))
      for (const { headers } of answers)
        assert.is(headers.get('RateLimit-Policy'), `"org";q=${perSecond};w=1`)
    }
  },
)

rate('does not apply to public endpoints, nor to the operator', async () => {
  const { refused } = await flood(100, (i) =>
    i % 2
      ? operator().send('GET', `${server.url}/status`)
      : operator().send('GET', `${server.url}/operator/orgs?limit=1`),
  )
  assert.is(refused.length, 0)
})

rate('follows a changed plan from the next request on', async () => {
  const { org_id } = await of('scale').get<{ org_id: string }>('/env')
  const { status } = await operator().send('PATCH', `${server.url}/operator/orgs/${org_id}`, {
    body: { plan: 'free' },
  })
  assert.is(status, 200)
  assert.is((await of('scale').send('GET', '/env')).headers.get('RateLimit-Policy'), '"org";q=5;w=1')
})

rate.after(() => server.stop())
rate.run()

const redis = engineUrl('redis')
if (redis !== null) {
  const shared = suite('the rate of an organization on two nodes that share Redis')

  shared('is one', async () => {
    // Else embedded, wherever this runs: nodes that share notices must share all engines, or those of one mislead the other.
    const others = { SVC_EVENT_STORE: 'embedded:', SVC_READ_MODELS: 'embedded:', SVC_BLOBS: 'embedded:' }
    const env = { ...others, SVC_REDIS: `${redis}${redis.includes('?') ? '&' : '?'}prefix=${newId()}:` }
    const nodes = await Promise.all([startServer({ env }), startServer({ env })])
    // The first organization has the same id on both, though they share nothing else.
    for (const { url, dataDir, api } of nodes) {
      const { operatorToken } = openSecrets(readConfig(installation(dataDir)))
      const { org_id } = await api.get<{ org_id: string }>('/env')
      const path = `${url}/operator/orgs/${org_id}`
      assert.is(
        (await openApi(url, operatorToken).send('PATCH', path, { body: { plan: 'free' } })).status,
        200,
      )
    }
    const [one, other] = nodes.map(({ api }) => api) as [Api, Api]
    const { seconds, passed } = await flood(30, (i) => (i % 2 ? one : other).send('GET', '/env'))
    assert.ok(passed >= 5, `${passed} passed`)
    assert.ok(passed <= 5 + Math.ceil(seconds * 5), `${passed} passed in ${seconds} s`)
    await Promise.all(nodes.map((node) => node.stop()))
  })

  shared.run()
}
