import * as assert from 'uvu/assert'
import { deploy, type Run } from '../support/build.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { callHook, deployHooks, HOOKS, hookUrls } from './hooks.ts'

const server = await startServer({ env: { SVC_WEBHOOK_TIMEOUT_MS: '600' } })
const { api } = server
const known = await deployHooks(api)
const urlOf = (name: string) => known.get(`POST s.1/${name}`) ?? ''

const answering = suite('a webhook reply')

const reply = (value: unknown) => callHook(urlOf('reply'), { body: JSON.stringify(value) })

answering('has the status, headers and body that the function returned', async () => {
  const { status, headers, json } = await reply({
    status: 202,
    headers: { 'X-Mine': 'yes', 'Set-Cookie': ['a=1', 'b=2'] },
    body: { ok: true },
  })
  assert.equal([status, headers.get('x-mine'), json], [202, 'yes', { ok: true }])
  assert.equal(headers.getSetCookie(), ['a=1', 'b=2'])
  assert.match(headers.get('content-type') ?? '', 'application/json')
})

answering('may have another content type, or no body', async () => {
  const { headers, text } = await fetch(urlOf('reply'), {
    method: 'POST',
    body: JSON.stringify({ status: 200, headers: { 'Content-Type': 'text/html' }, body: 'text' }),
  }).then(async (response) => ({ headers: response.headers, text: await response.text() }))
  assert.equal([headers.get('content-type'), text], ['text/html', '"text"'])
  assert.equal([(await reply({ status: 204 })).status, (await reply({ status: 204 })).text], [204, ''])
  assert.equal([(await reply({ status: 404 })).status, (await reply({ status: 404 })).text], [404, ''])
})

for (const value of [
  null,
  0,
  false,
  '',
  'text',
  [1],
  { a: 1 },
  { status: 'ok' },
  { status: 99 },
  { status: 600 },
  { status: 200.5 },
]) {
  answering(`is 200 with any other value as JSON: ${JSON.stringify(value)}`, async () => {
    const { status, json, headers } = await reply(value)
    assert.equal([status, json], [200, value])
    assert.match(headers.get('content-type') ?? '', 'application/json')
  })
}

answering('is null when the function returns nothing', async () =>
  assert.is((await callHook(urlOf('nothing'))).json, null),
)

answering('cannot break the protocol by its headers', async () => {
  for (const headers of [{ 'X-A': 'a\r\nSet-Cookie: b' }, { 'bad name': 'x' }, { 'X-Ü': '1' }]) {
    assert.is((await reply({ status: 200, headers })).status, 500)
  }
  const { status, headers, json } = await reply({
    status: 200,
    headers: { 'Content-Length': '1', 'Transfer-Encoding': 'x', 'X-Request-Id': 'mine' },
    body: 'whole',
  })
  assert.equal([status, json], [200, 'whole'])
  assert.is.not(headers.get('x-request-id'), 'mine')
})

answering('to a function that fails is 500 with the error, and is not retried', async () => {
  const { status, json } = await callHook(urlOf('throws'))
  const { code, message } = (json as { error: Record<string, string> }).error
  assert.equal([status, code, message], [500, 'internal_server_error', 'out of order'])
  const [run] = (await api.page<Run>('/runs?limit=1')).data as [Run]
  assert.equal([run.status, run.retry_at, run.fn], ['failed', null, 'h/throws'])
})

answering('of a function that fails is not logged as an error of the service', async () => {
  await callHook(urlOf('throws'))
  await reply({ status: 200, headers: { 'bad name': 'x' } })
  assert.not.match(server.output.join('\n'), /A request failed|out of order|bad name/)
})

answering('ends after the timeout of the function', async () => {
  for (const name of ['slow', 'long']) {
    const { status, json } = await callHook(urlOf(name))
    assert.is(status, 500)
    assert.match((json as { error: { message: string } }).error.message, /did not end within (300|600) ms/)
  }
})

answering('belongs to its own run', async () => {
  await reply('once')
  const [run] = (await api.page<Run>('/runs?limit=1')).data as [Run]
  assert.equal([run.run_type, run.status, run.result, run.event_id], ['call', 'succeeded', 'once', null])
})

answering.run()

const redeploying = suite('webhooks over redeploys')

redeploying('keep their URL, lose it with their metadata, and get it back', async () => {
  const url = urlOf('reply')
  await deploy(api, 'hooks', { 'moved/h.js': HOOKS })
  assert.equal(await hookUrls(api), known)
  assert.is((await callHook(url, { body: '7' })).json, 7)

  await deploy(api, 'hooks', { 'h.js': `export const reply = ({ body }) => body` })
  assert.is((await hookUrls(api)).size, 0)
  assert.is((await callHook(url, { body: '7' })).status, 404)

  await deploy(api, 'hooks', { 'h.js': HOOKS })
  assert.is((await callHook(url, { body: '7' })).json, 7)
})

redeploying('are not served by two projects', async () => {
  const clash = deploy(api, 'thief', { 'h.js': HOOKS })
  await clash.then(
    () => assert.unreachable('expected a refusal'),
    (error: Error) => assert.match(error.message, '409'),
  )
})

redeploying('are removed with their project', async () => {
  await api.remove('/projects/hooks')
  assert.is((await callHook(urlOf('reply'), { body: '7' })).status, 404)
})

redeploying('write no token to the log', () => {
  const tokens = [...known.values()].map((url) => url.split('/').at(-1) ?? url)
  assert.equal(
    server.output.filter((line) => tokens.some((token) => line.includes(token))),
    [],
  )
})

redeploying.after(() => server.stop())
redeploying.run()
