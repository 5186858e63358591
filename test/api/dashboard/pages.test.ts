import * as assert from 'uvu/assert'
import { startServer } from '../../support/server.ts'
import { suite } from '../../support/suite.ts'
import { head, raw } from '../../attacks/raw.ts'

const { url, stop } = await startServer()

interface Got {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** Reads the whole reply: one that is not read keeps its connection. */
const get = async (path: string, sent: Readonly<Record<string, string>> = {}): Promise<Got> => {
  const reply = await fetch(url + path, { headers: sent, redirect: 'manual' })
  const { status, headers } = reply
  return { status, headers, text: await reply.text() }
}

const asset = /src="(\/ui\/assets\/[^"]+)"/.exec((await get('/ui')).text)?.[1] ?? ''

const pages = suite('the pages of the dashboard')

pages('are one document at every path below /ui', async () => {
  const { text: first } = await get('/ui')
  for (const path of ['/ui/', '/ui/runs', '/ui/runs/a?status=failed', '/ui/a/b/c']) {
    const reply = await get(path)
    assert.is(reply.status, 200, path)
    assert.is(reply.headers.get('content-type'), 'text/html; charset=utf-8')
    assert.is(reply.text, first, path)
  }
})

pages('allow no inline code, no other hosts and no frames', async () => {
  for (const path of ['/ui', asset]) {
    const { headers } = await get(path)
    const policy = headers.get('content-security-policy') ?? ''
    const rules = policy.split('; ')
    for (const rule of [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "connect-src 'self'",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ])
      assert.ok(rules.includes(rule), `${path}: ${rule}`)
    assert.not.match(policy, /unsafe|\*|http/)
    assert.is(headers.get('x-frame-options'), 'DENY')
    assert.is(headers.get('cross-origin-opener-policy'), 'same-origin')
    assert.is(headers.get('x-content-type-options'), 'nosniff')
    assert.is(headers.get('referrer-policy'), 'no-referrer')
  }
})

pages('are checked for a new version each time, and assets are kept for ever', async () => {
  const page = await get('/ui')
  assert.is(page.headers.get('cache-control'), 'no-cache')
  const current = { 'If-None-Match': page.headers.get('etag') ?? '', 'Cache-Control': 'max-age=0' }
  assert.is((await get('/ui/runs', current)).status, 304)
  const script = await get(asset)
  assert.is(script.status, 200)
  assert.match(script.headers.get('content-type') ?? '', 'text/javascript')
  assert.is(script.headers.get('cache-control'), 'public, max-age=31536000, immutable')
})

pages('are compressed for a client that accepts it, under another ETag', async () => {
  const plain = await raw(url, head(`GET ${asset}`, 'Host: svc'))
  const packed = await get(asset, { 'Accept-Encoding': 'br' })
  assert.is(packed.headers.get('content-encoding'), 'br')
  assert.match(packed.headers.get('vary') ?? '', 'Accept-Encoding')
  assert.not.match(plain.text, /content-encoding/i)
  assert.not.match(plain.text, packed.headers.get('etag') ?? 'none')
  assert.ok(plain.text.endsWith(packed.text)) // fetch decompresses it
})

pages('have no other files', async () => {
  for (const path of ['/ui/assets/none.js', '/ui/assets/..%2findex.html', '/ui/assets/__proto__']) {
    const { status } = await raw(url, head(`GET ${path}`, 'Host: svc'))
    assert.is(status, 404, path)
  }
})

pages('are where / leads a browser, and no other client', async () => {
  const browser = await get('/', { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' })
  assert.equal([browser.status, browser.headers.get('location')], [302, '/ui'])
  assert.match(browser.headers.get('vary') ?? '', 'Accept')
  for (const Accept of ['*/*', 'application/json', 'application/json, text/html;q=0.5']) {
    const reply = await get('/', { Accept })
    assert.is(reply.status, 404, Accept)
    const { error } = JSON.parse(reply.text) as { error: { code: string; message: string } }
    assert.equal([error.code, error.message], ['not_found', 'No route GET /'])
  }
})

pages.after(stop)
pages.run()
