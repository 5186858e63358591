import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import { deploy, handle, handled, publish, runsOf, type Webhook } from '../support/build.ts'
import { startWithOther } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

interface Logs {
  readonly run_id: string
  readonly request: null | {
    readonly method: string
    readonly url: string
    readonly query: Record<string, string>
    readonly headers: Record<string, string>
    readonly ip: string | null
    readonly auth: string | null
    readonly body?: unknown
  }
  readonly lines: readonly { timestamp: string; source: string; text: string }[]
}

const server = await startWithOther()
const { api, other } = server

await deploy(api, 'logs', {
  'f.js': `import { context, fn } from 'svc'
    export const prints = fn({ 'on-event': 'prints' }, () => {
      console.log('to', 'stdout', { a: 1 })
      console.error('to stderr')
      process.stdout.write('two\\nlines')
    })
    export const quiet = fn({ 'on-event': 'quiet' }, () => 1)
    export const fails = fn({ 'on-event': 'fails' }, () => {
      console.log('before it failed')
      throw new Error('no')
    })
    export const dies = fn({ 'on-event': 'dies' }, async () => {
      console.log('before it died')
      await new Promise((resolve) => setTimeout(resolve, 600))
      process.abort()
    })
    export const floods = fn({ 'on-event': 'floods' }, () => {
      for (let i = 0; i < 9000; i++) console.log('x'.repeat(99))
    })
    export const waits = fn({ 'on-event': 'waits' }, async () => {
      console.log('it begins')
      while ((await context('GO')) !== 'yes') await new Promise((resolve) => setTimeout(resolve, 20))
      console.log('it ends')
    })
    const web = (path, more) => fn({ webhook: { service: 'web', path, ...more }, 'secret-headers': ['X-Signature'] }, () => {
      console.log('called')
      return { status: 204 }
    })
    export const open = web('/open')
    export const closed = web('/closed', { auth: 'required' })`,
})
await api.post('/projects/logs/context', { key: 'GO', value: 'no' })

const logsOf = (run_id: string): Promise<Logs> => api.get(`/runs/${run_id}/logs`)
const printed = async (run_id: string): Promise<string[]> =>
  (await logsOf(run_id)).lines.map(({ text }) => text)
const webhookAt = async (path: string): Promise<string> =>
  (await api.page<Webhook>('/projects/logs/webhooks')).data.find((each) => each.path === path)?.url ?? ''
const newestCall = async (): Promise<Logs> => {
  const [run] = (await api.page<{ run_id: string }>('/runs?type=call&limit=1')).data
  return logsOf(run?.run_id ?? '')
}

const logs = suite('the logs of a run')

logs('are its output, line by line, with time and source', async () => {
  const { run_id, start_time } = await handle(api, 'prints')
  const { lines, ...rest } = await logsOf(run_id)
  assert.equal(rest, { run_id, request: null })
  assert.equal(
    lines.map(({ source, text }) => [source, text]),
    [
      ['stdout', 'to stdout { a: 1 }'],
      ['stderr', 'to stderr'],
      ['stdout', 'two'],
      ['stdout', 'lines'],
    ],
  )
  for (const { timestamp } of lines) {
    assert.is(new Date(timestamp).toISOString(), timestamp)
    assert.ok(timestamp >= start_time)
  }
})

logs('are empty when it printed nothing', async () => {
  const { run_id } = await handle(api, 'quiet')
  assert.equal(await logsOf(run_id), { run_id, request: null, lines: [] })
})

logs('are complete as soon as the run has ended, also when it failed', async () => {
  for (let i = 0; i < 10; i++) {
    const { run_id, status } = await handle(api, 'fails')
    assert.is(status, 'failed')
    assert.equal(await printed(run_id), ['before it failed'])
  }
  assert.equal(await printed((await handle(api, 'dies')).run_id), ['before it died'])
})

logs('are available while the run continues', async () => {
  const { event_id } = await publish(api, 'waits')
  const run_id = await until(async () => (await runsOf(api, event_id))[0]?.run_id)
  await until(async () => (await printed(run_id)).length > 0)
  assert.equal(await printed(run_id), ['it begins'])
  await api.send('PUT', '/projects/logs/context/GO', { body: { value: 'yes' } })
  await handled(api, event_id)
  assert.equal(await printed(run_id), ['it begins', 'it ends'])
})

logs('are truncated at 256 KiB, with a note', async () => {
  const { run_id, status } = await handle(api, 'floods')
  assert.is(status, 'succeeded')
  const texts = await printed(run_id)
  assert.is(texts.at(-1), '… more output was cut off')
  const bytes = Buffer.byteLength(texts.join('\n'))
  assert.ok(bytes > 250 << 10 && bytes <= (256 << 10) + 100, `${bytes} bytes`)
})

logs('do not exist in another environment, or without a run (I7)', async () => {
  const { run_id } = await handle(api, 'prints')
  for (const [as, id] of [
    [other, run_id],
    [api, newId()],
    [api, 'none'],
  ] as const) {
    const { status, code } = await as.refused('GET', `/runs/${id}/logs`)
    assert.equal([status, code], [404, 'not_found'])
  }
})

logs('are not part of the service’s own log', async () => {
  await handle(api, 'prints')
  assert.not(server.output.join('').includes('to stdout'))
})

logs('of a webhook contain its request: method, url, query, ip and headers in plain text', async () => {
  const url = await webhookAt('/open')
  await api.send('POST', `${url}?page=1`, {
    headers: { 'x-plain': 'seen', 'x-forwarded-for': '203.0.113.9' },
    body: { paid: true },
  })
  const { request, lines } = await newestCall()
  assert.equal(
    lines.map(({ text }) => text),
    ['called'],
  )
  const { headers, ...rest } = request as NonNullable<Logs['request']>
  assert.equal(rest, {
    method: 'POST',
    url: '/webhook/web/open',
    query: { page: '1' },
    ip: '127.0.0.1', // of the peer: no proxy is trusted
    auth: null,
    body: { paid: true },
  })
  assert.is(headers['x-plain'], 'seen')
  assert.not(JSON.stringify(request).includes(url.split('/').at(-1) ?? ''))
})

for (const header of ['authorization', 'cookie', 'proxy-authorization', 'set-cookie', 'x-signature']) {
  logs(`mask the header ${header} (SPEC.md, Authentication, rule 10)`, async () => {
    await api.send('POST', await webhookAt('/open'), { headers: { [header]: 'planted' } })
    const { request } = await newestCall()
    assert.is(request?.headers[header], '***')
    assert.not(JSON.stringify(request).includes('planted'))
  })
}

logs('mask everything in the auth data', async () => {
  const { status } = await api.send('POST', await webhookAt('/closed'))
  assert.is(status, 204)
  const { request } = await newestCall()
  assert.is(request?.auth, '***')
  assert.not(JSON.stringify(request).includes('api-key'))
  assert.not(JSON.stringify(request).includes(api.key.slice(-40)))
})

logs('omit a body of more than 64 KiB', async () => {
  await api.send('POST', await webhookAt('/open'), { body: { big: 'x'.repeat(70_000) } })
  const { request } = await newestCall()
  assert.is(request?.method, 'POST')
  assert.not('body' in (request ?? {}))
})

logs.after(() => server.stop())
logs.run()
