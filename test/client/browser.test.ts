import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import * as assert from 'uvu/assert'
import { deploy, publish, type Run } from '../support/build.ts'
import { type Chromium, hasChromium, startChromium } from '../support/chromium.ts'
import { type FaultProxy, openFaultProxy } from '../support/faultProxy.ts'
import { EMBEDDED } from '../support/installation.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const WORDS = Array.from({ length: 100 }, (_, n) => `word-${n}`)

const FILES = {
  'chat.ts': `
    import { emit, fn } from 'svc'
    export const talk = fn({ 'on-event': 'talk' }, async (event: any) => {
      for (const word of event.data) {
        await emit('word', word)
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    })
    // The stream is not complete before this is cancelled.
    export const hold = fn({ 'on-event': 'talk' }, () => new Promise((resolve) => setTimeout(resolve, 3_600_000)))
  `,
}

interface Context {
  server: TestServer
  /** The way of the browser to the service. */
  proxy: FaultProxy
  url: string
  chromium: Chromium
  pages: readonly [allowed: Page, other: Page]
}

interface Page {
  readonly url: string
  readonly server: Server
}

const isHere = hasChromium()
const browser = suite<Context>('the API in Chromium', { timeoutMs: 60_000 })
const test = (name: string, work: (context: Context) => Promise<void>) =>
  isHere ? browser(name, work) : browser.skip(name)

/** Serves an empty page on an origin of its own. */
const servePage = async (): Promise<Page> => {
  const server = createServer((_, response) => {
    response
      .setHeader('content-type', 'text/html')
      .end('<!doctype html><link rel="icon" href="data:,"><p></p>')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}

browser.before(async (context) => {
  if (!isHere) return
  const pages = [await servePage(), await servePage()] as const
  const server = await startServer({ env: { ...EMBEDDED, SVC_CORS_ORIGINS: pages[0].url } })
  await deploy(server.api, 'chat', FILES)
  const { hostname, port } = new URL(server.url)
  const proxy = await openFaultProxy({ host: hostname, port: Number(port) })
  Object.assign(context, {
    server,
    proxy,
    url: proxy.url(server.url),
    pages,
    chromium: await startChromium(),
  })
})
browser.after(async ({ chromium, proxy, server, pages }) => {
  if (!isHere) return
  await chromium.close()
  for (const page of pages) page.server.close()
  await proxy.close()
  await server.stop()
})

/** Fetches in the page: the status and the body, or the error that the browser gives to the page. */
const fetched = async (
  { chromium, url }: Context,
  from: Page,
  request: {
    readonly method?: string
    readonly path: string
    readonly token: string
    readonly body?: string
  },
): Promise<string> => {
  const { page } = await chromium.open(from.url)
  return page.evaluate(
    async ({ target, method, token, body }) => {
      const headers = {
        authorization: `Bearer ${token}`,
        ...(body !== undefined && {
          'content-type': 'application/json',
          'idempotency-key': crypto.randomUUID(),
        }),
      }
      try {
        const response = await fetch(target, { method, headers, ...(body !== undefined && { body }) })
        return `${response.status} ${response.headers.get('x-request-id') === null} ${await response.text()}`
      } catch (error) {
        return String(error)
      }
    },
    { target: url + request.path, method: request.method ?? 'GET', token: request.token, body: request.body },
  )
}

const newSession = async ({ server }: Context, permissions: object): Promise<string> =>
  (await server.api.post<{ token: string }>('/sessions', { permissions })).token

test('lets an allowed page read and write with a session, and read errors', async (context) => {
  const [allowed] = context.pages
  const token = await newSession(context, { 'event:*': ['create'], 'run:*': ['read'] })
  assert.match(await fetched(context, allowed, { path: '/v1/runs', token }), /^200 false \{/)
  const body = JSON.stringify({ event_type: 'nothing', event_data: { a: 1 } })
  const published = await fetched(context, allowed, { method: 'POST', path: '/v1/events', token, body })
  assert.match(published, /^201 false \{/)
  const refused = await fetched(context, allowed, { path: '/v1/projects', token })
  assert.match(refused, /^403 false .*lacks the permission/)
})

test('keeps the replies from a page of another origin', async (context) => {
  const [, other] = context.pages
  const token = await newSession(context, { 'run:*': ['read'] })
  assert.is(await fetched(context, other, { path: '/v1/runs', token }), 'TypeError: Failed to fetch')
})

test('refuses the API key of a page, with the way out', async (context) => {
  const [allowed] = context.pages
  const refused = await fetched(context, allowed, { path: '/v1/runs', token: context.server.api.key })
  assert.match(refused, /^403 false .*expected a session from a browser, got an API key/)
})

test('follows a stream with EventSource and a session, and loses nothing with its connection', async (context) => {
  const { chromium, proxy, server, url, pages } = context
  const { stream_id } = await publish(server.api, 'talk', WORDS)
  const token = await newSession(context, { [`stream:${stream_id}`]: ['read'] })
  const { page } = await chromium.open(pages[0].url)
  let opened = 0
  page.on('request', () => opened++)
  const target = `${url}/v1/streams/${stream_id}/subscribe?from=start&session=${token}`
  const following = page.evaluate(
    (address) =>
      new Promise<unknown[]>((resolve) => {
        const words: unknown[] = []
        const events = new EventSource(address)
        events.addEventListener('stream:data', (message: Event) => {
          words.push((JSON.parse(String((message as MessageEvent).data)) as { payload: unknown }).payload)
          console.log(`seen ${words.length}`)
        })
        events.addEventListener('stream:complete', () => {
          events.close()
          resolve(words)
        })
      }),
    target,
  )
  await page.waitForEvent('console', (line) => line.text() === 'seen 10')
  proxy.reset()
  await proxy.heal()
  await until(() => opened >= 2)
  const [held] = (await server.api.page<Run>(`/runs?stream=${stream_id}&fn=chat/hold`)).data
  await server.api.post(`/runs/${held?.run_id}/cancel`)
  assert.equal(await following, WORDS)
})

browser.run()
