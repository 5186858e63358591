import * as assert from 'uvu/assert'
import { startServer, type TestServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

const page = suite<{ server: TestServer }>('the docs page')

page.before(async (context) => {
  context.server = await startServer()
})
page.after(({ server }) => server.stop())

const types = { css: /^text\/css/, js: /^text\/javascript/, png: /^image\/png/ }

page('loads all its files from this server only', async ({ server: { api, url } }) => {
  const { status, headers, text } = await api.send('GET', `${url}/docs`)
  assert.is(status, 200)
  assert.match(headers.get('content-type') ?? '', /^text\/html/)
  const named = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = '']) => path)
  assert.is(named.length, 4)
  for (const path of named) {
    assert.match(path, /^\/docs\//)
    const asset = await fetch(`${url}${path}`)
    assert.is(asset.status, 200, path)
    const type = types[path.split('.').at(-1) as keyof typeof types]
    assert.match(asset.headers.get('content-type') ?? '', type)
    const { byteLength } = await asset.arrayBuffer()
    assert.is(String(byteLength), asset.headers.get('content-length'))
    assert.ok(byteLength > 100, path)
  }
})

page('allows no other hosts and no inline code', async ({ server: { api, url } }) => {
  const policy = (await api.send('GET', `${url}/docs`)).headers.get('content-security-policy') ?? ''
  assert.match(policy, /default-src 'none'/)
  assert.match(policy, /connect-src 'self'/)
  assert.not.match(policy, /unsafe|https?:|\*/)
})

page('does not send the document to an external validator', async ({ server: { api, url } }) => {
  assert.match((await api.send('GET', `${url}/docs/open.js`)).text, /validatorUrl: null/)
})

page('can be cached by browsers', async ({ server: { api, url } }) => {
  const { headers } = await api.send('GET', `${url}/docs/swagger-ui.css`)
  assert.match(headers.get('cache-control') ?? '', /max-age=3600/)
  const again = await api.send('GET', `${url}/docs/swagger-ui.css`, {
    headers: { 'If-None-Match': headers.get('etag') ?? '', 'Cache-Control': 'max-age=0' }, // else fetch forbids a 304
  })
  assert.is(again.status, 304)
})

page('compares the ETag and not the date when a client sends both', async ({ server: { api, url } }) => {
  const { headers } = await api.send('GET', `${url}/docs/open.js`)
  const conditions = {
    'If-None-Match': `W/${headers.get('etag')}`,
    'If-Modified-Since': 'Thu, 01 Jan 2026 00:00:00 GMT',
    'Cache-Control': 'max-age=0', // else fetch forbids a 304
  }
  assert.is((await api.send('GET', `${url}/docs/open.js`, { headers: conditions })).status, 304)
})

page('has the same headers for HEAD as for GET', async ({ server: { url } }) => {
  const reply = await fetch(`${url}/docs/swagger-ui-bundle.js`, { method: 'HEAD' })
  assert.is(reply.status, 200)
  assert.ok(Number(reply.headers.get('content-length')) > 1_000_000)
})

page('serves no other file of the package', async ({ server: { api, url } }) => {
  for (const name of ['package.json', '..%2Fpackage.json', 'swagger-ui.js.map', 'constructor']) {
    const { status, code } = await api.refused('GET', `${url}/docs/${name}`)
    assert.is(status, 404)
    assert.is(code, 'not_found')
  }
})

page.run()
