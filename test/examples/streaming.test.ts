import * as assert from 'uvu/assert'
import { openBundler } from '../../src/bundle/openBundler.ts'
import { readSettings } from '../../src/bundle/settings.ts'
import { deploy, type Run } from '../support/build.ts'
import { type Chromium, hasChromium, startChromium } from '../support/chromium.ts'
import { compile, installExample } from '../support/example.ts'
import { type FaultProxy, openFaultProxy } from '../support/faultProxy.ts'
import { EMBEDDED } from '../support/installation.ts'
import { launch, type Launched } from '../support/launch.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

interface Context {
  server: TestServer
  /** The way of the browser to the service. */
  proxy: FaultProxy
  chromium: Chromium
  /** The installed example. */
  project: string
  /** The server of the example; its address is that of the page. */
  pageServer: Launched
}

const isHere = hasChromium()

const streaming = suite<Context>('the streaming example in Chromium', { timeoutMs: 120_000 })
const test = (name: string, work: (context: Context) => Promise<void>) =>
  isHere ? streaming(name, work) : streaming.skip(name)

const deployExample = async ({ api }: TestServer, project: string): Promise<void> => {
  const settings = readSettings(project)
  const bundler = await openBundler(settings)
  const { zip, sha256 } = await bundler.rebuild()
  await bundler.close()
  await deploy(api, settings.project, { bytes: Buffer.from(zip), hash: sha256 })
}

streaming.before(async (context) => {
  if (!isHere) return
  context.project = await installExample('streaming')
  context.server = await startServer({ env: { ...EMBEDDED, SVC_CORS_ORIGINS: 'loopback' } })
  await deployExample(context.server, context.project)
  const { hostname, port } = new URL(context.server.url)
  context.proxy = await openFaultProxy({ host: hostname, port: Number(port) })
  const SVC_URL = context.proxy.url(context.server.url)
  context.pageServer = await launch([process.execPath, 'server.ts'], {
    cwd: context.project,
    env: { PATH: process.env['PATH'], SVC_URL, SVC_KEY: context.server.api.key, PORT: '0' },
    ready: /http:\S+/,
  })
  context.chromium = await startChromium()
})
streaming.after(async ({ chromium, proxy, server, pageServer }) => {
  if (!isHere) return
  await chromium.close()
  await pageServer.stop()
  await proxy.close()
  await server.stop()
})

/** A further function for the question: without it, the stream could be complete before its connection is lost. */
const HOLD = {
  'hold.js': `import { fn } from 'svc'
export const hold = fn({ 'on-event': 'question:asked' }, () => new Promise((done) => setTimeout(done, 3_600_000)))`,
}

const ANSWER = `You asked: ä & <b>?\n${Array.from({ length: 79 }, (_, n) => `${n + 1} `).join('')}`

test('shows each token once and in order, although the connection is lost twice', async (context) => {
  const { chromium, proxy, server } = context
  await deploy(server.api, 'hold', HOLD)
  const { page, errors } = await chromium.open(context.pageServer.ready)
  const opened: string[] = []
  const failed: string[] = []
  page.on('request', (request) => request.method() === 'GET' && opened.push(request.url()))
  page.on('requestfailed', (request) => failed.push(request.url()))
  await page.fill('input', 'ä & <b>?')
  await page.click('button')
  for (const token of [10, 40]) {
    await page.locator('pre', { hasText: String(token) }).waitFor()
    proxy.refuse()
    const lost = failed.length
    await until(() => failed.length > lost + 1) // the open stream, and an attempt to open it again
    await proxy.heal()
  }
  const [held] = (await server.api.page<Run>('/runs?fn=hold/hold&status=running')).data
  await server.api.post(`/runs/${held?.run_id}/cancel`)
  await page.getByRole('status').filter({ hasText: 'complete' }).waitFor()
  await server.api.remove('/projects/hold')
  assert.is(await page.textContent('pre'), ANSWER)
  const streams = opened.filter((url) => url.includes('/subscribe'))
  assert.ok(streams.length >= 3, streams.join('\n'))
  assert.ok(
    errors.every((text) => text.includes('net::')),
    errors.join('\n'),
  ) // the lost connections only
})

test('gives the page a session for its stream, and keeps the key', async (context) => {
  const { chromium, server } = context
  const { page } = await chromium.open(context.pageServer.ready)
  const replied = page.waitForResponse((response) => response.url().endsWith('/ask'))
  await page.click('button')
  const { token, stream_id } = (await (await replied).json()) as { token: string; stream_id: string }
  assert.match(token, /^s_/)
  const statusOf = async (path: string) =>
    (await server.api.send('GET', path, { headers: { Authorization: `Bearer ${token}` } })).status
  assert.is(await statusOf('/runs'), 403)
  assert.is(await statusOf('/streams/01a206b9-1d32-7931-9f27-e4dac9cf92a9/subscribe'), 403)
  await until(async () =>
    (await server.api.page<Run>('/runs')).data.some((run) => run.stream_id === stream_id),
  )
  assert.not.match(await page.content(), server.api.key)
})

test('compiles with the installed package', ({ project }) => compile(project))

streaming.run()
