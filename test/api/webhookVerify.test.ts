import { createHmac } from 'node:crypto'
import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import { deploy, type Run, upload, type Webhook } from '../support/build.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { callHook } from './hooks.ts'
import { isRefused, refusal } from './refusal.ts'

const server = await startServer()
const { api } = server

const SECRET = 'not-so-secret'
const verified = (name: string, verify: string, code: string) =>
  `export const ${name} = fn({ webhook: { service: 's', path: '/${name}', verify: ${verify} } }, ${code})`

await deploy(api, 'verified', {
  'h.js': [
    `import { context, fn } from 'svc'`,
    `const call = () => crypto.randomUUID()`,
    verified(
      'github',
      `{ github: 'SECRET' }`,
      `({ body, bodyRaw }) => ({ call: call(), body, size: bodyRaw.length })`,
    ),
    verified('stripe', `{ stripe: 'SECRET' }`, `({ body }) => ({ call: call(), type: body.type })`),
    verified('slack', `{ slack: 'SECRET' }`, `() => ({ call: call() })`),
    verified('standard', `{ standardWebhooks: 'STANDARD' }`, `() => ({ call: call() })`),
    verified('blank', `{ standardWebhooks: 'BLANK' }`, `() => 1`),
    verified('unset', `{ github: 'NONE' }`, `() => 1`),
    verified(
      'fails',
      `{ github: 'SECRET' }`,
      `({ body }) => { if (body.fail) throw new Error('no'); return { status: body.status ?? 200, body: call() } }`,
    ),
    verified(
      'odd',
      `{ github: 'SECRET' }`,
      `async ({ body }) => {
        call()
        if (body.headers) return { status: 200, headers: body.headers }
        if (body.status) return { status: body.status, call: call() }
        const masked = await context('BYTES')
        return Buffer.from(masked.repeat(body.times), 'base64')
      }`,
    ),
    verified('slow', `{ github: 'SECRET' }`, `() => new Promise((done) => setTimeout(done, 300, call()))`),
  ].join('\n'),
})
for (const [key, value] of [
  ['SECRET', ` ${SECRET}\n`],
  ['BYTES', 'ABCDabcdEFGHefgh'],
  ['BLANK', 'whsec_'],
  ['STANDARD', `whsec_${Buffer.from(SECRET).toString('base64')}`],
])
  await api.post('/projects/verified/context', { key, value })
const { data: webhooks } = await api.page<Webhook>('/projects/verified/webhooks')
const urlOf = (name: string) => webhooks.find((webhook) => webhook.var === name)?.url ?? ''

const macOf = (text: string, encoding: 'hex' | 'base64' = 'hex') =>
  createHmac('sha256', SECRET).update(text).digest(encoding)
const now = () => Math.floor(Date.now() / 1000)

const github = (name: string, body: string, delivery = newId(), signed = body) =>
  callHook(urlOf(name), {
    body,
    headers: { 'X-Hub-Signature-256': `sha256=${macOf(signed)}`, 'X-GitHub-Delivery': delivery },
  })
const callIn = ({ json }: { json: unknown }) => (json as { call: string }).call
const runCount = async () => (await api.page('/runs')).pagination.total

const verifying = suite('a webhook that verifies signatures')

verifying('runs its function for a request that the provider signed', async () => {
  const { status, json } = await github('github', '{"a":"ü"}')
  assert.is(status, 200)
  assert.equal((json as { body: unknown }).body, { a: 'ü' })
})

verifying('knows the rules of Stripe, Slack and Standard Webhooks', async () => {
  const time = now()
  const stripe = '{"id":"evt_rules","type":"paid"}'
  const answers = [
    await callHook(urlOf('stripe'), {
      body: stripe,
      headers: { 'Stripe-Signature': `t=${time},v1=${macOf(`${time}.${stripe}`)}` },
    }),
    await callHook(urlOf('slack'), {
      body: 'a=1',
      headers: {
        'X-Slack-Request-Timestamp': String(time),
        'X-Slack-Signature': `v0=${macOf(`v0:${time}:a=1`)}`,
      },
    }),
    await callHook(urlOf('standard'), {
      body: '{}',
      headers: {
        'webhook-id': 'msg_rules',
        'webhook-timestamp': String(time),
        'webhook-signature': `v1,${macOf(`msg_rules.${time}.{}`, 'base64')}`,
      },
    }),
  ]
  assert.equal(
    answers.map(({ status }) => status),
    [200, 200, 200],
  )
})

verifying('refuses any other request with 401, without a run', async () => {
  const before = await runCount()
  for (const answer of [
    await callHook(urlOf('github'), { body: '{}' }),
    await callHook(urlOf('github'), { body: '{}', headers: { 'X-Hub-Signature-256': 'sha256=00' } }),
    await github('github', '{}', newId(), '{ }'),
    await github('github', 'x'.repeat(100_000), newId(), 'x'.repeat(100_001)),
    await callHook(urlOf('stripe'), {
      body: '{}',
      headers: { 'Stripe-Signature': `t=${now() - 301},v1=${macOf(`${now() - 301}.{}`)}` },
    }),
  ]) {
    const { status, code, message } = refusal(answer)
    assert.equal([status, code], [401, 'unauthorized'])
    assert.match(message, /^The webhook is not verified: /)
    assert.not.match(message, SECRET)
  }
  assert.is(await runCount(), before)
})

verifying('verifies bytes and bodies that are stored while they arrive', async () => {
  const large = JSON.stringify({ text: 'ü'.repeat(200_000) })
  const { status, json } = await github('github', large)
  assert.equal([status, (json as { size: number }).size], [200, large.length])
  const bytes = new Uint8Array([0xff, 0, 0x80])
  const signature = `sha256=${createHmac('sha256', SECRET).update(bytes).digest('hex')}`
  assert.is(
    (await callHook(urlOf('github'), { body: bytes, headers: { 'X-Hub-Signature-256': signature } })).status,
    200,
  )
})

verifying('refuses every request while the project lacks the secret', async () => {
  const before = await runCount()
  const { status, message } = refusal(await github('unset', '{}'))
  assert.is(status, 500)
  assert.is(
    message,
    'The webhook cannot be verified: its project lacks the context variable that `verify` names',
  )
  assert.is(await runCount(), before)
})

verifying('refuses every request while the secret is an empty key, which every sender knows', async () => {
  const signature = createHmac('sha256', '').update(`msg_1.${now()}.{}`).digest('base64')
  const { status, message } = refusal(
    await callHook(urlOf('blank'), {
      body: '{}',
      headers: {
        'webhook-id': 'msg_1',
        'webhook-timestamp': String(now()),
        'webhook-signature': `v1,${signature}`,
      },
    }),
  )
  assert.is(status, 500)
  assert.is(
    message,
    'The webhook cannot be verified: the context variable that `verify` names contains no secret',
  )
})

verifying('is a warning of the deployment while the project lacks the secret', async () => {
  const files = { 'h.js': `import { fn } from 'svc'\n${verified('f', `{ github: 'LATER' }`, '() => 1')}` }
  const warningsOf = async () => (await deploy(api, 'later', files)).warnings
  assert.equal(await warningsOf(), [
    'h/f: the project has no context variable LATER, so the webhook refuses every request',
  ])
  await api.post('/projects/later/context', { key: 'LATER', value: SECRET })
  assert.equal(await warningsOf(), [])
  const [hook] = (await api.page<Webhook>('/projects/later/webhooks')).data
  assert.equal(hook?.verify, { preset: 'github', context: 'LATER' })
})

for (const [verify, message] of [
  [`{ github: 7 }`, 'Expected webhook.verify.github to be the key of a context variable'],
  [
    `{ paypal: 'KEY' }`,
    'Expected webhook.verify to be an object with one of stripe, github, slack, standard-webhooks, got ["paypal"]',
  ],
  [`{ github: 'A', stripe: 'B' }`, 'got ["github","stripe"]'],
  [`'github'`, 'got "github"'],
] as const) {
  verifying(`is refused at the upload with verify: ${verify}`, async () => {
    const files = { 'h.js': `import { fn } from 'svc'\n${verified('f', verify, '() => 1')}` }
    isRefused(await upload(api, 'verified', files), message)
  })
}

verifying.run()

const delivering = suite('a delivery that a provider sends again')

delivering('gets the reply of its first run, and no other run', async () => {
  const delivery = newId()
  const first = await github('github', '{"n":1}', delivery)
  const before = await runCount()
  const again = await github('github', '{"n":1}', delivery)
  assert.equal([again.status, again.text], [200, first.text])
  assert.equal(
    [first.headers.get('idempotency-replayed'), again.headers.get('idempotency-replayed')],
    [null, 'true'],
  )
  assert.is(await runCount(), before)
  assert.is.not(callIn(await github('github', '{"n":1}', newId())), callIn(first))
})

delivering('is recognized by the id in the body of Stripe, whatever its signature is', async () => {
  const body = JSON.stringify({ id: newId(), type: 'paid', text: 'x'.repeat(50_000) })
  const send = (time: number) =>
    callHook(urlOf('stripe'), {
      body,
      headers: { 'Stripe-Signature': `t=${time},v1=${macOf(`${time}.${body}`)}` },
    })
  assert.is((await send(now() - 60)).text, (await send(now())).text)
})

for (const preset of ['slack', 'stripe'] as const) {
  delivering(`of ${preset} is recognized when a proxy forwards its body in chunks`, async () => {
    const delivery = newId()
    const body = JSON.stringify({ type: 'paid', event_id: delivery, id: delivery })
    const time = now()
    const headers = {
      'X-Slack-Request-Timestamp': String(time),
      'X-Slack-Signature': `v0=${macOf(`v0:${time}:${body}`)}`,
      'Stripe-Signature': `t=${time},v1=${macOf(`${time}.${body}`)}`,
    }
    const send = (content: NonNullable<RequestInit['body']>) =>
      callHook(urlOf(preset), { body: content, headers, duplex: 'half' })
    const first = await send(body)
    const before = await runCount()
    const again = await send(new Blob([body]).stream())
    assert.equal([again.status, again.text], [200, first.text])
    assert.is(again.headers.get('idempotency-replayed'), 'true')
    assert.is(await runCount(), before)
  })
}

delivering('shares the run when it arrives several times at once', async () => {
  const delivery = newId()
  const before = await runCount()
  const answers = await Promise.all(Array.from({ length: 4 }, () => github('slow', '{}', delivery)))
  assert.is(new Set(answers.map(({ text }) => text)).size, 1)
  assert.is(await runCount(), before + 1)
})

delivering('runs again after its run failed or replied with an error', async () => {
  const delivery = newId()
  const attempts = [
    await github('fails', '{"fail":true}', delivery),
    await github('fails', '{"status":503}', delivery),
    await github('fails', '{"status":404}', delivery),
    await github('fails', '{}', delivery),
    await github('fails', '{}', delivery),
  ]
  assert.equal(
    attempts.map(({ status }) => status),
    [500, 503, 404, 200, 200],
  )
  assert.is(attempts[4]?.text, attempts[3]?.text)
})

const runOf = async ({ json }: { json: unknown }) =>
  api.get<Run>(`/runs/${(json as { error: Record<string, string> }).error['run_id']}`)

delivering('runs again after its reply had headers that cannot be sent', async () => {
  const delivery = newId()
  const body = JSON.stringify({ headers: { 'content-disposition': 'attachment; filename=报告.pdf' } })
  const failed = await github('odd', body, delivery)
  assert.is(failed.status, 500)
  assert.is((await runOf(failed)).status, 'failed')
  const again = await github('odd', '{"headers":{"content-disposition":"attachment"}}', delivery)
  assert.equal([again.status, again.headers.get('idempotency-replayed')], [200, null])
})

for (const times of [1, 10_000]) {
  delivering(`runs again after its reply had bytes with a masked value ${times} times`, async () => {
    const delivery = newId()
    const failed = await github('odd', JSON.stringify({ times }), delivery)
    const run = await runOf(failed)
    assert.equal([failed.status, run.status, run.error], [500, 'succeeded', undefined])
    const again = await github('odd', '{"headers":{}}', delivery)
    assert.equal([again.status, again.headers.get('idempotency-replayed')], [200, null])
  })
}

delivering('is accepted with a plain value that has a number as its status', async () => {
  const delivery = newId()
  const first = await github('odd', '{"status":1000}', delivery)
  const again = await github('odd', '{"status":1000}', delivery)
  assert.equal([first.status, again.status, again.text], [200, 200, first.text])
})

delivering('runs each time without an id', async () => {
  const send = () =>
    callHook(urlOf('github'), { body: '{}', headers: { 'X-Hub-Signature-256': `sha256=${macOf('{}')}` } })
  assert.is.not(callIn(await send()), callIn(await send()))
})

delivering('belongs to its endpoint', async () => {
  const delivery = newId()
  const first = await github('github', '{}', delivery)
  const other = await github('fails', '{}', delivery)
  assert.is.not(other.text, first.text)
  const runs = (await api.page<Run>('/runs?limit=2')).data
  assert.equal(
    runs.map(({ fn }) => fn),
    ['h/fails', 'h/github'],
  )
})

delivering.after(() => server.stop())
delivering.run()
