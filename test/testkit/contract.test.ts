/** The same functions through `testRun` and through the real service: results, effects and errors are equal. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import * as assert from 'uvu/assert'
import { testRun, type TestRunOptions } from '../../src/testkit/index.ts'
import { call, deploy, ended, handle, type Run, runsOf, upload } from '../support/build.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const sdk = fileURLToPath(new URL('../../src/sdk/index.ts', import.meta.url))

const source = `
import { call, callWith, context, currentRun, emit, files, fn, run, send } from 'svc'

class Rejected extends Error {
  constructor(message, fields, cause) { super(message, { cause }); Object.assign(this, fields) }
}

export const echo = value => value
export const sum = (a, b) => a + b
export const types = ({ type, data }) => ({ type, data })
export const result = kind => ({
  map: () => ({ tags: [new Map()] }), nan: () => ({ price: NaN }), bigint: () => 1n, date: () => new Date(0),
  error: () => ({ failed: new Error('x') }), instance: () => new (class Order { id = 1 })(), undefined: () => undefined,
  function: () => echo, holes: () => ({ a: undefined, b: [undefined] }), symbol: () => ({ s: Symbol('s') }),
  deep: () => { let v = 1; for (let i = 0; i < 2000; i++) v = [v]; return v },
  circular: () => { const o = {}; o.self = o; return o },
  large: () => 'x'.repeat(7 << 20), bytes: () => ({ content: new Uint8Array(3) }),
})[kind]()
export const throws = kind => {
  if (kind === 'fields') throw new Rejected('No stock', { code: 'no_stock', sku: 'a-1', left: { a: 0 } }, new TypeError('inner'))
  if (kind === 'text') throw 'only text'
  if (kind === 'object') throw { code: 7 }
  if (kind === 'many') throw new AggregateError([new Error('one'), new RangeError('two')], 'several')
  throw new Error('plain')
}
export const sends = async data => { await send('order:paid', data); await emit('token', { text: 'hi' }); await emit('done') }
export const sendsWrong = kind => ({ empty: () => send(''), long: () => send('x'.repeat(300)), control: () => send('a\\nb'),
  emit: () => emit('y'.repeat(300)), deep: () => { let v = 1; for (let i = 0; i < 2000; i++) v = [v]; return send('a', v) },
  huge: () => send('a', 'x'.repeat(9 << 20)), ref: () => run('charge'), reserved: () => send('svc:x'),
  badCall: () => send('svc:call', {}), badArgs: () => send('svc:call', { fn: 'shop/sum', args: {} }),
  badProject: () => send('svc:call', { fn: 'shop/sum', project: 1 }), badReplay: () => send('svc:replay', { run_id: 'x' }) })[kind]()
export const secrets = async key => context(key).then(value => value.length)
export const leaks = async () => { const key = await context('PAYMENT_KEY'); await send('leak', { key }); console.log('key', key); return key }
export const declared = fn({ context: ['OTHER'] }, async key => context(key).then(value => value.length))
export const child = async (n) => 10 + await run('shop/sum', n, 1)
export const failsInChild = () => run('shop/throws', 'fields')
export const background = () => call('shop/sum', 1, 2).then(({ run_id }) => typeof run_id)
export const keyed = async () => {
  const sent = [await send('keyed', 1, { idempotencyKey: 'sent' }), await send('keyed', 1, { idempotencyKey: 'sent' })]
  const called = [await callWith('shop/sum', [1, 2], { idempotencyKey: 'called' }), await callWith('shop/sum', [1, 2], { idempotencyKey: 'called' })]
  const orders = [await send('keyed', { a: 1, b: 2 }, { idempotencyKey: 'o' }), await send('keyed', { b: 2, a: 1 }, { idempotencyKey: 'o' })]
  const codeOf = (work) => work.then(() => 'none', ({ code, message }) => code ?? message)
  return [sent[0].event_id === sent[1].event_id, called[0].run_id === called[1].run_id, orders[0].event_id === orders[1].event_id,
    await codeOf(send('keyed', 2, { idempotencyKey: 'sent' })), await codeOf(callWith('shop/sum', [3], { idempotencyKey: 'called' })),
    await codeOf(send('keyed', 1, { idempotencyKey: 'two words' })), await codeOf(send('keyed', 1, { key: 'sent' }))]
}
export const stores = async () => {
  await files.put('out/b.txt', 'text'); await files.put('out/a.bin', new Uint8Array([255, 0]), { contentType: 'image/png' })
  const { file_id, etag, created_by_run_id, ...info } = await files.get('out/b.txt')
  return { etag, size: info.size, type: info.content_type, backend: info.storage_backend, byThis: created_by_run_id === currentRun().run_id,
    text: new TextDecoder().decode(info.content), list: (await files.list({ prefix: 'out/' })).map(f => [f.path, f.content_type, f.size]),
    deleted: await files.delete('out/b.txt').then(() => files.list({ prefix: 'out/' })).then(l => l.length) }
}
export const largeFile = async () => {
  const bytes = new Uint8Array(11 << 20).fill(7); bytes[10 << 20] = 9
  await files.put('large.bin', bytes)
  const { content, size } = await files.get('large.bin')
  return [size, content[0], content[10 << 20]]
}
export const filesWrong = kind => ({ missing: () => files.get('no.txt'), path: () => files.put('../x', ''), slash: () => files.get('/x'),
  type: () => files.put('x', '', { contentType: 'nonsense' }), limit: () => files.list({ limit: 1000 }), gone: () => files.delete('no.txt') })[kind]()
export const about = () => { const { run_type, attempt, origin_run_id } = currentRun(); return { run_type, attempt, origin_run_id } }
export const logs = () => { console.log('one %d', 1); console.error('two\\nthree'); console.info({ a: 1 }) }
export const noisy = () => { console.log('x'.repeat(300_000)) }
export const slow = fn({ timeout: 100 }, () => new Promise((_, reject) => currentRun().signal.addEventListener('abort', () => reject(new Error('stopped')))))
export const unawaited = () => { void send('late', 1) }
export const onEvent = fn({ 'on-event': 'order:created', retry: { attempts: 2, delay: 10 } }, ({ type, data, source }) => {
  if (data.fail) throw new Error('again')
  return { type, data, source, attempt: currentRun().attempt }
})
export const hook = fn({ webhook: { service: 'shop', path: '/orders/:id' } }, request => {
  const { method, url, params, query, body } = request
  return { status: 201, headers: { 'x-a': 1 }, body: { method, url, params, query, body, raw: request.bodyRaw } }
})
export const badHook = fn({ webhook: { service: 'shop', path: '/bad' } }, () => ({ status: 99, body: 'x' }))
export const responseHook = fn({ webhook: { service: 'shop', path: '/response' } }, () => new Response('<p>', { headers: { 'content-type': 'text/html' } }))
`

type Functions = Readonly<Record<string, (...args: never[]) => unknown>>

interface Context {
  server: TestServer
  functions: Functions
}

/** Imports the source with the SDK of the checkout in place of the package. */
const load = async (text: string): Promise<Functions> => {
  const file = join(tempDir(), 'shop.mjs')
  writeFileSync(file, text.replaceAll("'svc'", JSON.stringify(pathToFileURL(sdk).href)))
  return (await import(pathToFileURL(file).href)) as Functions
}

const variables = { PAYMENT_KEY: 'a-secret-key-of-payments', OTHER: 'other' }

const contract = suite<Context>('testRun and the service', { timeoutMs: 60_000 })

contract.before(async (context) => {
  context.functions = await load(source)
  context.server = await startServer()
  const { api } = context.server
  await deploy(api, 'shop', { 'shop.mjs': source })
  for (const [key, value] of Object.entries(variables))
    await api.post('/projects/shop/context', { key, value, description: '' })
})
contract.after(({ server }) => server.stop())

/** The parts of an error that do not depend on the place of the source. */
const essence = (error: unknown): unknown =>
  JSON.parse(
    JSON.stringify(error ?? null, (key, value: unknown) =>
      key === 'stack' || key === 'location' || key === 'run_id' ? undefined : withoutSize(value),
    ),
  )

/** The bytes of a frame depend on the number of its run. */
const withoutSize = (value: unknown): unknown =>
  typeof value === 'string' ? value.replace(/(bytes of JSON, got )\d+/, '$1…') : value

type Ended = Pick<Run, 'result'> & { readonly error: unknown }

const endOf = ({ status, result, error }: Run): Ended =>
  status === 'succeeded' ? { result, error: null } : { result: null, error: essence(error) }

/** What testRun returns, in the form of the run of the service. */
const locally = async (
  functions: Functions,
  name: string,
  args: readonly unknown[],
  options: TestRunOptions = {},
): Promise<{ readonly end: Ended; readonly t: ReturnType<typeof testRun> }> => {
  const calls = {
    'shop/sum': functions['sum'],
    'shop/throws': functions['throws'],
  } as TestRunOptions['calls']
  const t = testRun({ context: variables, ...(calls && { calls }), ...options })
  const result = await t.run(functions[name] as (...args: unknown[]) => unknown, ...args).catch(() => null)
  return { end: { result: result ?? null, error: essence(t.error) }, t }
}

const same = (name: string, ...args: readonly unknown[]) => {
  contract(`${name} ${JSON.stringify(args)}`, async ({ server, functions }) => {
    const { end } = await locally(functions, name, args)
    const run = await call(server.api, `shop/${name}`, ...args)
    const whole = run.result_ref ? await ended(server.api, run.run_id) : run
    const expected = endOf(whole)
    const isText = typeof expected.result === 'string' && expected.result.length > 1000
    assert.equal(end.error, expected.error)
    if (isText) assert.ok(end.result === expected.result)
    else assert.equal(end.result, expected.result)
  })
}

same('echo', { a: [1, 'x', null, true], b: { c: 'ü' } })
same('echo')
same('sum', 2, 3)
for (const kind of [
  'map',
  'nan',
  'bigint',
  'date',
  'error',
  'instance',
  'undefined',
  'function',
  'holes',
  'symbol',
  'deep',
  'circular',
  'large',
  'bytes',
])
  same('result', kind)
for (const kind of ['plain', 'fields', 'text', 'object', 'many']) same('throws', kind)
for (const kind of [
  'empty',
  'long',
  'control',
  'emit',
  'deep',
  'huge',
  'ref',
  'reserved',
  'badCall',
  'badArgs',
  'badProject',
  'badReplay',
])
  same('sendsWrong', kind)
for (const key of ['OTHER', 'MISSING', 'wrong key', '']) same('secrets', key)
same('leaks')
same('declared', 'OTHER')
same('child', 5)
same('failsInChild')
same('background')
same('keyed')
same('stores')
same('largeFile')
for (const kind of ['missing', 'path', 'slash', 'type', 'limit', 'gone']) same('filesWrong', kind)
same('about')
same('slow')

contract(
  'the refusal of an undeclared context variable differs in the name of the function only',
  async ({ server, functions }) => {
    const { end } = await locally(functions, 'declared', ['PAYMENT_KEY'])
    const { error } = endOf(await call(server.api, 'shop/declared', 'PAYMENT_KEY'))
    const text = JSON.stringify(error)
    assert.match(text, /shop\/declared declares that it does not read/)
    assert.match(JSON.stringify(end.error), /"code":"forbidden"/)
    assert.equal(JSON.stringify(end.error).replace(/test\/[^ ]+/, 'shop/declared'), text)
  },
)

contract(
  'events, live data and their order are recorded as the service stores them',
  async ({ server: { api }, functions }) => {
    const data = { id: 1, at: 'now', none: null }
    const { t } = await locally(functions, 'sends', [data])
    const { stream_id } = await call(api, 'shop/sends', data)
    const events = await until(async () => {
      const { data: page } = await api.page<{ stream_id: string; event_type: string; event_data: unknown }>(
        '/events?limit=100',
      )
      const found = page.filter((each) => each.stream_id === stream_id && each.event_type !== 'svc:call')
      return found.length > 0 ? found : undefined
    })
    assert.equal(
      t.sent,
      events.map(({ event_type: type, event_data }) => ({ type, data: event_data })),
    )
    assert.equal(t.emitted, [
      { dataType: 'token', payload: { text: 'hi' } },
      { dataType: 'done', payload: null },
    ])
  },
)

contract('what has the same idempotency key is recorded once, in a retry too', async ({ functions }) => {
  const { t } = await locally(functions, 'keyed', [])
  await t.run(functions['keyed'] as (...args: unknown[]) => unknown)
  assert.equal(t.sent, [
    { type: 'keyed', data: 1 },
    { type: 'keyed', data: { a: 1, b: 2 } },
  ])
  assert.equal(t.calls, [{ by: 'call', ref: 'shop/sum', args: [1, 2] }])
})

contract('values of context are masked in what is recorded', async ({ functions }) => {
  const { t } = await locally(functions, 'leaks', [])
  assert.equal(t.sent, [{ type: 'leak', data: { key: '***' } }])
  assert.equal(t.logs, [{ source: 'stdout', text: 'key ***' }])
})

contract(
  'the lines of the output are those of the logs of the run',
  async ({ server: { api }, functions }) => {
    for (const name of ['logs', 'noisy']) {
      const { t } = await locally(functions, name, [])
      const { run_id } = await call(api, `shop/${name}`)
      const { lines } = await until(async () => {
        const logs = await api.get<{ lines: { source: string; text: string }[] }>(`/runs/${run_id}/logs`)
        return logs.lines.length >= t.logs.length ? logs : undefined
      })
      assert.ok(t.logs.length > 2)
      assert.equal(
        t.logs.map(({ source, text }) => `${source} ${text}`),
        lines.map(({ source, text }) => `${source} ${text}`),
      )
    }
  },
)

contract(
  'an event handler receives the event of the service and is retried as often',
  async ({ server: { api }, functions }) => {
    const fine = await handle(api, 'order:created', { id: 7 })
    const { end } = await locally(functions, 'onEvent', [{ data: { id: 7 } }])
    assert.equal(end, endOf(fine))

    const { t } = await locally(functions, 'onEvent', [{ data: { fail: true } }])
    assert.equal(t.nextRetry, { attempt: 2, delay: 10 })
    await t.retry().catch(() => {})
    assert.equal(t.nextRetry, { attempt: 3, delay: 10 })
    await t.retry().catch(() => {})
    assert.is(t.nextRetry, null)
    const last = essence(t.error)
    const { event_id } = await api.post<{ event_id: string }>('/events', {
      event_type: 'order:created',
      event_data: { fail: true },
    })
    const runs = await until(async () => {
      const found = await runsOf(api, event_id)
      return found.length === 3 && found.every(({ status }) => status === 'failed') ? found : undefined
    })
    assert.equal(last, essence(runs[0]?.error))
  },
)

contract(
  'a webhook receives the request and replies as in the service',
  async ({ server: { api }, functions }) => {
    const hooks = await api.page<{ var: string; url: string }>('/projects/shop/webhooks')
    const urlOf = (name: string) => hooks.data.find((each) => each.var === name)?.url ?? ''
    const reply = await fetch(`${urlOf('hook').replace(':id', '7')}?a=1`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"n":1}',
    })
    const { end } = await locally(functions, 'hook', [
      { params: { id: '7' }, query: { a: '1' }, body: { n: 1 } },
    ])
    assert.equal((end.result as { body: unknown }).body, await reply.json())
    assert.is((end.result as { status: number }).status, reply.status)
    const bad = await locally(functions, 'badHook', [{}])
    await fetch(urlOf('badHook'), { method: 'POST' })
    const failed = await until(async () =>
      (await api.page<Run>('/runs?status=failed&limit=100')).data.find(({ error }) =>
        JSON.stringify(error).includes('status of a reply'),
      ),
    )
    assert.equal(bad.end.error, endOf(failed).error)
    const { end: response } = await locally(functions, 'responseHook', [{}])
    assert.equal(response.result, {
      status: 200,
      headers: { 'content-type': 'text/html' },
      'body-raw': '<p>',
    })
  },
)

contract('wrong metadata is refused with the text of the upload', async ({ server: { api } }) => {
  for (const metadata of [
    `{ 'on-events': 'a' }`,
    `{ 'on-event': 'svc:x' }`,
    `{ retry: 11 }`,
    `{ schedule: { cron: '* * * * *', tz: 'UTC' } }`,
    `{ schedule: 'every day' }`,
    `{ context: [new Map()] }`,
    `{ webhook: { service: 'a b', path: '/x' } }`,
    `{ timeout: 0 }`,
  ]) {
    const text = `import { fn } from 'svc'\nexport const wrong = fn(${metadata}, function wrong() {})\n`
    const { status, json } = await upload(api, 'shop', { 'shop.mjs': text })
    assert.is(status, 400, metadata)
    const { message } = (json as { error: { message: string } }).error
    const t = testRun()
    const { wrong } = await load(text)
    const refusal = await t.run(wrong as () => void).then(
      () => 'accepted',
      (error: unknown) => (error as Error).message,
    )
    assert.ok(message.endsWith(refusal), `${metadata}: ${refusal} / ${message}`)
  }
})

contract.run()
