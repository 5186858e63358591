import * as assert from 'uvu/assert'
import { createClient, ServiceError } from '../../src/client/index.ts'
import { newId } from '../../src/ids.ts'
import { openApi } from '../support/http.ts'
import { operatorTokenOf } from '../support/openDashboard.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { newSession } from './issuing.ts'

const server = await startServer({ dataDir: tempDir() }) // of its own, because the operator's token is needed
const { api } = server
await api.post('/projects', { name: 'shop' })
const operator = openApi(server.url, operatorTokenOf(server))
const run_id = newId()

const links = suite('the Link header of errors')

const linkOf = async (method: string, path: string, body?: unknown): Promise<string | null> => {
  const from = path.startsWith('/operator') ? operator : api
  const url = path.startsWith('/operator') ? server.url + path : path
  const { status, headers } = await from.send(method, url, body === undefined ? {} : { body })
  assert.ok(status >= 400, `Expected ${method} ${path} to be refused, got ${status}`)
  return headers.get('link')
}

const page = (path: string): string => `<${path}>; rel="help"; type="text/html"`

for (const [method, path, body, expected] of [
  ['GET', `/runs/${run_id}`, undefined, `/ui/runs/${run_id}`],
  ['POST', `/runs/${run_id}/cancel`, undefined, `/ui/runs/${run_id}`],
  ['GET', `/streams/${run_id}/subscribe`, undefined, `/ui/streams/${run_id}`],
  ['GET', `/events/${run_id}`, undefined, `/ui/events?event=${run_id}`],
  ['GET', '/projects/a%20%3Cb%3E%22/functions', undefined, '/ui/functions?project=a+%3Cb%3E%22'],
  ['GET', '/projects/none/builds', undefined, '/ui/builds?project=none'],
  ['PUT', '/projects/shop/context/NONE', { value: 'a' }, '/ui/secrets?project=shop'],
  ['POST', '/projects', { name: 'shop' }, undefined],
  ['GET', `/files/${run_id}`, undefined, '/ui/files'],
  ['GET', `/domains/${run_id}`, undefined, '/ui/domains'],
  ['DELETE', `/sessions/${run_id}`, undefined, '/ui/keys'],
  ['GET', '/operator/orgs/none/usage', undefined, '/ui/operator?section=organizations&org=none'],
  ['GET', '/runs?limit=0', undefined, undefined],
  ['GET', '/nothing', undefined, undefined],
] as const)
  links(`${method} ${path} ${expected === undefined ? 'has none' : `leads to ${expected}`}`, async () => {
    assert.is(await linkOf(method, path, body), expected === undefined ? null : page(expected))
  })

links('a missing permission leads to the credentials, on every path', async () => {
  const { token } = await newSession(api, { 'env:*': ['read'] })
  for (const path of ['/runs', `/runs/${run_id}`]) {
    const { status, headers } = await openApi(server.url, token).send('GET', path)
    assert.equal([status, headers.get('link')], [403, page('/ui/keys')])
  }
})

links('a credential that is not valid gets no link', async () => {
  const { status, headers } = await openApi(server.url, 'wrong').send('GET', `/runs/${run_id}`)
  assert.equal([status, headers.get('link')], [401, null])
})

links('a refusal that is repeated for an Idempotency-Key has it too', async () => {
  const send = () =>
    api.send('POST', `/runs/${run_id}/replay`, { headers: { 'Idempotency-Key': 'the-same' } })
  const [first, second] = [await send(), await send()]
  assert.is(second.headers.get('idempotency-replayed'), 'true')
  for (const { headers } of [first, second]) assert.is(headers.get('link'), page(`/ui/runs/${run_id}`))
})

links('a path that is too long for a header gets no link', async () => {
  assert.is(await linkOf('GET', `/projects/${'%C3%A9'.repeat(2000)}/builds`), null)
})

links('the client names the page as a URL of the service, and no other one', async () => {
  const client = createClient({ url: server.url, token: api.key })
  const refusalOf = async (work: Promise<unknown>): Promise<ServiceError> => {
    const error: unknown = await work.catch((thrown: unknown) => thrown)
    assert.instance(error, ServiceError)
    return error as ServiceError
  }
  const { page: own } = await refusalOf(client.runs.get(run_id))
  assert.is(own, `${server.url}/ui/runs/${run_id}`)
  for (const link of [
    '<https://evil.test/>; rel="help"',
    '<javascript:x>; rel="help"',
    '</ui>; rel="next"',
    '<',
  ]) {
    const fetched = () => Promise.resolve(new Response('{}', { status: 404, headers: { link } }))
    const hostile = createClient({ url: server.url, token: api.key, fetch: fetched })
    assert.is((await refusalOf(hostile.runs.get(run_id))).page, null, link)
  }
})

links.after(() => server.stop())
links.run()
