import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import * as assert from 'uvu/assert'
import { deploy, type Project, type Webhook } from '../support/build.ts'
import { type Chromium, hasChromium, startChromium } from '../support/chromium.ts'
import { newSession } from '../api/issuing.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

/** What the tests use of a page, in which their functions run. */
interface PageElement {
  append(child: PageElement): void
  submit(): void
}
declare const document: {
  readonly cookie: string
  readonly body: PageElement
  createElement(name: string): PageElement
}
declare const self: { readonly origin: string }

interface Context {
  server: TestServer
  chromium: Chromium
  /** A page of another site, which CORS allows. */
  allowed: Server
  /** A page of another origin of the same site: a browser sends it cookies that are `SameSite=Strict`. */
  sameSite: Server
}

const isHere = hasChromium()
const attacks = suite<Context>('pages against the cookie of the dashboard, in Chromium', {
  timeoutMs: 120_000,
})
const test = (name: string, work: (context: Context) => Promise<void>) =>
  isHere ? attacks(name, work) : attacks.skip(name)

/** Serves an empty page at every path, at every host by default. */
const pageServer = async (host?: string): Promise<Server> => {
  const server = createServer((_, response) =>
    response.setHeader('Content-Type', 'text/html').end('<body></body>'),
  )
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  return server
}
const portOf = (server: Server): number => (server.address() as AddressInfo).port

/** The attackers that a function deploys. Each tells by its title that its script ran. */
const SCRIPT = `document.title = 'ran'; fetch('/v1/projects', { method: 'POST', headers: { 'Svc-Dashboard': '1' }, body: '{"name":"stolen"}' })`
const HOOKS = `
import { fn } from 'svc'
const script = ${JSON.stringify(SCRIPT)}
const page = (path, type, body, headers = {}) =>
  fn({ webhook: { service: 'evil', path, method: 'GET' } }, () => ({
    status: 200, headers: { 'Content-Type': type, ...headers }, 'body-raw': body,
  }))
const html = '<!doctype html><title>quiet</title><script>' + script + '</script>'
export const plain = page('/html', 'text/html', html)
export const allowing = page('/allowing', 'text/html', html, {
  'Content-Security-Policy': 'sandbox allow-scripts allow-same-origin; script-src * \\'unsafe-inline\\'',
})
export const svg = page('/svg', 'image/svg+xml', '<svg xmlns="http://www.w3.org/2000/svg"><script>' + script + '</script></svg>')
export const xhtml = page('/xhtml', 'application/xhtml+xml', '<html xmlns="http://www.w3.org/1999/xhtml"><head><title>quiet</title><script>' + script + '</script></head></html>')
export const form = page('/form', 'text/html', '<!doctype html><title>quiet</title><form method="post" action="/v1/sign-in" enctype="text/plain"><input name="a"><button>go</button></form>')
`

/** A page of the dashboard whose visitor is signed in. */
const visit = async ({ chromium, server: { url, api } }: Context, token = api.key): Promise<Page> => {
  const { page } = await chromium.open(`${url}/ui`)
  assert.is(await signIn(page, token), 200)
  return page
}

const signIn = (page: Page, token: string): Promise<number> =>
  page.evaluate(async (given) => {
    const headers = { 'Svc-Dashboard': '1', 'Content-Type': 'application/json' }
    return (await fetch('/v1/sign-in', { method: 'POST', headers, body: JSON.stringify({ token: given }) }))
      .status
  }, token)

interface Init {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string
  readonly credentials?: 'include'
  readonly mode?: 'no-cors'
}

/** Sends a request from the page. Resolves with the status, or with the reason why the browser refuses it. */
const sent = (page: Page, url: string, init: Init = {}): Promise<number | string> =>
  page.evaluate(
    ([target, given]) =>
      fetch(target, given).then(
        ({ status }) => status,
        (error: unknown) => String(error),
      ),
    [url, init] as const,
  )

const OURS = { headers: { 'Svc-Dashboard': '1' } }
const names = async ({ server: { api } }: Context): Promise<string[]> =>
  (await api.page<Project>('/projects')).data.map(({ name }) => name)

attacks.before(async (context) => {
  if (!isHere) return
  context.allowed = await pageServer() // its port is known before the host of the service
  const port = portOf(context.allowed)
  context.server = await startServer({
    env: { SVC_CORS_ORIGINS: `http://localhost:${port},http://127.0.0.1:${port}` },
  })
  const isLocalhost = new URL(context.server.url).hostname === 'localhost'
  context.sameSite = await pageServer(isLocalhost ? 'localhost' : '127.0.0.1')
  context.chromium = await startChromium()
  await deploy(context.server.api, 'evil', { 'h.js': HOOKS })
})
attacks.after(async ({ server, chromium, allowed, sameSite }) => {
  if (!isHere) return
  await chromium.close()
  for (const each of [allowed, sameSite]) each.close()
  await server.stop()
})

const pagesOf = ({ server: { url }, allowed, sameSite }: Context): string[] => {
  const { hostname } = new URL(url)
  return [
    `http://${hostname === 'localhost' ? '127.0.0.1' : 'localhost'}:${portOf(allowed)}/`,
    `http://${hostname}:${portOf(sameSite)}/`,
  ]
}

test('the dashboard uses the cookie, and no script can read it', async (context) => {
  const page = await visit(context)
  assert.is(await sent(page, '/v1/projects', OURS), 200)
  assert.is(await sent(page, '/v1/projects'), 401, 'without the header')
  assert.is(await page.evaluate(() => document.cookie), '')
  const cookies = await page.context().cookies(`${context.server.url}/v1/runs`)
  assert.equal(
    cookies.map(({ name, httpOnly, sameSite, path }) => ({ name, httpOnly, sameSite, path })),
    [{ name: 'svc_session', httpOnly: true, sameSite: 'Strict', path: '/v1' }],
  )
  assert.equal(await page.context().cookies(`${context.server.url}/webhook/a/b`), [])
  assert.equal(await page.context().cookies(`${context.server.url}/ui`), [])
})

test('pages of another site and of the same site cannot use the cookie by fetch', async (context) => {
  const page = await visit(context)
  const { url } = context.server
  for (const [at, from] of pagesOf(context).entries()) {
    await page.goto(from)
    const kept = { credentials: 'include' } as const
    const body = JSON.stringify({ name: `by-fetch-${at}` })
    assert.match(String(await sent(page, `${url}/v1/projects`, { ...kept, ...OURS })), 'Failed to fetch')
    assert.match(
      String(await sent(page, `${url}/v1/projects`, { ...kept, ...OURS, method: 'POST', body })),
      'Failed to fetch',
    )
    assert.match(String(await sent(page, `${url}/v1/projects`, kept)), 'Failed to fetch')
    assert.is(
      await sent(page, `${url}/v1/projects`, { ...kept, mode: 'no-cors', method: 'POST', body }),
      0,
      'opaque',
    )
  }
  assert.equal(await names(context), ['evil'])
  await page.goto(`${url}/ui`)
  assert.is(await sent(page, '/v1/projects', OURS), 200, 'the visitor is still signed in')
})

test('a form of another page signs no visitor in', async (context) => {
  const { token } = await newSession(context.server.api, { 'run:*': ['read'] })
  const { url } = context.server
  for (const from of pagesOf(context)) {
    const page = await visit(context)
    await page.goto(from)
    const answered = page.waitForNavigation()
    await page.evaluate(
      ([action, given]) => {
        const form = document.createElement('form')
        Object.assign(form, { method: 'post', enctype: 'text/plain', action })
        const input = document.createElement('input')
        Object.assign(input, { name: `{"token":"${given}`, value: '"}' })
        form.append(input)
        document.body.append(form)
        form.submit()
      },
      [`${url}/v1/sign-in`, token] as const,
    )
    const reply = await answered
    assert.equal([reply?.url(), reply?.status()], [`${url}/v1/sign-in`, 403])
    await page.goto(`${url}/ui`)
    assert.is(await sent(page, '/v1/projects', OURS), 200, 'the session of the visitor, not of the form')
  }
})

test('no other page can frame the dashboard', async (context) => {
  const page = await visit(context)
  for (const from of pagesOf(context)) {
    await page.goto(from)
    const refused = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/ui'))
    await page.evaluate((src) => {
      document.body.append(Object.assign(document.createElement('iframe'), { src }))
    }, `${context.server.url}/ui`)
    assert.match((await refused).failure()?.errorText ?? '', 'ERR_BLOCKED_BY_RESPONSE')
  }
})

test('a page of a function on the same origin runs no script, whatever its type and its policy', async (context) => {
  const page = await visit(context)
  const { data } = await context.server.api.page<Webhook>('/projects/evil/webhooks')
  for (const { url, path } of data) {
    const reply = await page.goto(url)
    assert.is(reply?.status(), 200, path)
    await page.waitForLoadState('networkidle')
    assert.is.not(await page.title(), 'ran', path)
    assert.is(await page.evaluate(() => self.origin), 'null', `${path}: an origin of its own`)
  }
  assert.equal(await names(context), ['evil'])
})

test('a script in a page of a function cannot use the cookie, even if it ran', async (context) => {
  const page = await visit(context)
  const { data } = await context.server.api.page<Webhook>('/projects/evil/webhooks')
  await page.goto(data.find(({ path }) => path === '/html')?.url ?? '')
  const target = `${context.server.url}/v1/projects`
  for (const init of [
    OURS,
    { ...OURS, credentials: 'include' } as const,
    { credentials: 'include' } as const,
  ])
    assert.match(String(await sent(page, target, init)), 'Failed to fetch')
})

test('a form in a page of a function sends nothing', async (context) => {
  const page = await visit(context)
  const { data } = await context.server.api.page<Webhook>('/projects/evil/webhooks')
  const requests: string[] = []
  page.on('request', (request) => requests.push(request.method()))
  await page.goto(data.find(({ path }) => path === '/form')?.url ?? '')
  await page.click('button')
  await page.waitForLoadState('networkidle')
  assert.equal(requests, ['GET'])
})

test('a sign-in ends when its session expires or is revoked', async (context) => {
  const { server } = context
  const { page } = await context.chromium.open(`${server.url}/ui`)
  const { token } = await newSession(server.api, { 'project:*': ['read'] }, { expires_in: 5 })
  assert.is(await signIn(page, token), 200)
  await until(async () => (await sent(page, '/v1/projects', OURS)) === 401)
  assert.is(await sent(page, '/v1/sign-in', OURS), 401)

  const lasting = await newSession(server.api, { 'project:*': ['read'] })
  const other = await visit(context, lasting.token)
  await server.api.remove(`/sessions/${lasting.session_id}`)
  assert.is(await sent(other, '/v1/projects', OURS), 401)
})

attacks.run()
