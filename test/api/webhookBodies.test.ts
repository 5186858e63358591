import * as assert from 'uvu/assert'
import { deploy, type Run, type Webhook } from '../support/build.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

const server = await startServer()
const { api } = server

/** Characters that JSON escapes, pairs of surrogates and one without a partner. */
const ESCAPES = '"\\\n\u0001/"\\"grüß😀\ud83d!\ud83d'

const RAW = `
import { context, fn } from 'svc'
const hook = (handler) => fn({ webhook: { service: 'raw', path: String(count++) } }, handler)
let count = 0
const LATIN1 = new Uint8Array([0x66, 0xfc, 0x72, 0x00, 0xff])
const ESCAPES = ${JSON.stringify(ESCAPES)}
export const response = hook(() => new Response('<h1>grüß</h1>', { status: 203, headers: { 'content-type': 'text/html; charset=utf-8', 'x-mine': 'yes' } }))
export const json = hook(() => Response.json({ a: [1, 'ü'] }, { status: 201 }))
export const empty = hook(() => new Response(null, { status: 204 }))
export const redirect = hook(() => Response.redirect('https://example.com/next', 303))
export const binary = hook(() => new Response(LATIN1, { headers: { 'content-type': 'image/x-raw' } }))
export const stream = hook(() => new Response(ReadableStream.from([LATIN1, LATIN1])))
export const large = hook(() => new Response('é'.repeat(100_000), { headers: { 'content-type': 'text/plain' } }))
export const largeBytes = hook(() => ({ status: 200, body: Buffer.alloc(100_000, 0xff) }))
export const html = hook(() => ({ status: 200, headers: { 'Content-Type': 'text/html' }, body: '<h1>hi</h1>' }))
export const xml = hook(() => ({ status: 200, headers: { 'content-type': 'application/xml' }, body: '<a/>' }))
export const largeText = hook(() => ({ status: 200, headers: { 'content-type': 'text/csv' }, body: 'ü,1\\n'.repeat(30_000) }))
export const escapes = hook(() => ({ status: 200, headers: { 'content-type': 'text/csv' }, body: ESCAPES.repeat(5000) }))
export const oddBytes = hook(() => ({ status: 200, body: Buffer.alloc(100_001, 'ü') }))
export const problem = hook(() => ({ status: 400, headers: { 'content-type': 'application/problem+json' }, body: 'text' }))
export const largeJson = hook(() => ({ status: 200, headers: { 'content-type': 'application/ld+json' }, body: Array(20_000).fill('line') }))
export const buffer = hook(() => ({ status: 200, headers: new Headers({ 'content-type': 'image/x-raw', 'x-mine': 'yes' }), body: Buffer.from(LATIN1) }))
export const bytes = hook(() => LATIN1)
export const arrayBuffer = hook(() => ({ status: 200, body: LATIN1.buffer }))
export const used = hook(async () => { const response = new Response('x'); await response.text(); return response })
export const failed = hook(() => Response.error())
export const endless = hook(() => new Response(ReadableStream.from((async function* () { for (;;) yield new Uint8Array(1 << 20) })())))
export const leaks = hook(async () => new Response(Buffer.concat([Buffer.from(await context('RAW_SECRET')), LATIN1])))
`
await deploy(api, 'raw', { 'h.js': RAW })
await api.post('/projects/raw/context', { key: 'RAW_SECRET', value: 'a-long-secret-value' })
const rawUrls = new Map(
  (await api.page<Webhook>('/projects/raw/webhooks?limit=100')).data.map((hook) => [hook.var, hook.url]),
)
const fetched = async (name: string) => {
  const response = await fetch(rawUrls.get(name) ?? '', { method: 'POST', redirect: 'manual' })
  const type = response.headers.get('content-type')
  return { response, status: response.status, type, bytes: Buffer.from(await response.arrayBuffer()) }
}
const LATIN1 = Buffer.from([0x66, 0xfc, 0x72, 0x00, 0xff])

const answering = suite('the body of a webhook reply')

for (const [name, status, type, content] of [
  ['response', 203, 'text/html; charset=utf-8', '<h1>grüß</h1>'],
  ['json', 201, 'application/json', '{"a":[1,"ü"]}'],
  ['empty', 204, null, ''],
  ['binary', 200, 'image/x-raw', LATIN1],
  ['stream', 200, 'application/octet-stream', Buffer.concat([LATIN1, LATIN1])],
  ['large', 200, 'text/plain', 'é'.repeat(100_000)],
  ['largeBytes', 200, 'application/octet-stream', Buffer.alloc(100_000, 0xff)],
  ['html', 200, 'text/html', '<h1>hi</h1>'],
  ['xml', 200, 'application/xml', '<a/>'],
  ['largeText', 200, 'text/csv', 'ü,1\n'.repeat(30_000)],
  ['escapes', 200, 'text/csv', ESCAPES.repeat(5000).toWellFormed()],
  ['oddBytes', 200, 'application/octet-stream', Buffer.alloc(100_001, 'ü')],
  ['largeJson', 200, 'application/ld+json', JSON.stringify(Array(20_000).fill('line'))],
  ['problem', 400, 'application/problem+json', '"text"'],
  ['buffer', 200, 'image/x-raw', LATIN1],
  ['bytes', 200, 'application/octet-stream', LATIN1],
  ['arrayBuffer', 200, 'application/octet-stream', LATIN1],
] as const) {
  answering(`has the bytes that the function returned: ${name}`, async () => {
    const answer = await fetched(name)
    assert.equal([answer.status, answer.type], [status, type])
    assert.ok(answer.bytes.equals(Buffer.from(content)), answer.bytes.toString('latin1', 0, 200))
    if (status !== 204) assert.is(answer.response.headers.get('content-length'), `${answer.bytes.length}`)
  })
}

answering('has the headers of a Response', async () => {
  assert.is((await fetched('response')).response.headers.get('x-mine'), 'yes')
  assert.is((await fetched('buffer')).response.headers.get('x-mine'), 'yes')
  const { status, response } = await fetched('redirect')
  assert.equal([status, response.headers.get('location')], [303, 'https://example.com/next'])
})

for (const [name, message] of [
  ['used', 'Expected a Response whose body was not read'],
  ['failed', 'Expected the status of a reply to be a whole number from 200 to 599, got 0'],
  ['endless', 'Expected a reply of at most 4194304 bytes, got 5242880 or more'],
] as const) {
  answering(`that cannot be sent fails the run: ${name}`, async () => {
    const { status, bytes } = await fetched(name)
    const { run_id } = (JSON.parse(bytes.toString()) as { error: { run_id: string } }).error
    assert.equal([status, (await api.get<Run>(`/runs/${run_id}`)).error?.message], [500, message])
  })
}

answering('contains no context variable, also not in bytes', async () => {
  const { status, bytes } = await fetched('leaks')
  assert.is(status, 500)
  assert.not.match(bytes.toString(), 'a-long-secret')
})

answering.after(() => server.stop())
answering.run()
