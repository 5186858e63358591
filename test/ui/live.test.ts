import type { Page } from 'playwright-core'
import { createClient } from '../../src/client/index.ts'
import type { Permissions } from '../../src/events/org.ts'
import { newSession } from '../api/issuing.ts'
import { deploy, publish, type Run, runsOf } from '../support/build.ts'
import { type Api, openApi } from '../support/http.ts'
import { openDashboard, operatorTokenOf } from '../support/openDashboard.ts'
import { stories } from '../support/stories.ts'
import { until } from '../support/until.ts'

/** Longer than a hidden page keeps its connections. */
const AWAY_MS = 30_000

/** The page as behind another tab of its window, or in front again. */
const setHidden = (page: Page, isHidden: boolean): Promise<unknown> =>
  page.evaluate(`{
    Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true })
    document.dispatchEvent(new Event('visibilitychange'))
  }`)

/** The open live streams of the environment. */
const openStreams = async (api: Api): Promise<number> =>
  (await api.get<{ live_streams: { in_env: number } }>('/org/usage')).live_streams.in_env

const waitingRun = async (api: Api): Promise<Run> => {
  const { event_id } = await publish(api, 'wait', {})
  return until(async () => (await runsOf(api, event_id))[0])
}

const cancel = async (api: Api, { run_id }: Run): Promise<void> => {
  await api.post(`/runs/${run_id}/cancel`)
  await until(async () => (await api.get<Run>(`/runs/${run_id}`)).status === 'cancelled')
}

const story = stories('the live updates of the dashboard', {
  prepare: async (context) => {
    await deploy(context.server.api, 'shop', {
      'a.js': `
        import { emit, fn } from 'svc'
        export const waits = fn({ 'on-event': 'wait' }, () => new Promise(() => {}))
        export const says = fn({ 'on-event': 'say' }, ({ data }) => emit('word', data))
      `,
    })
  },
})

story('a run that ends before the feed is open is shown as ended', async ({ server, chromium }) => {
  const { api } = server
  const run = await waitingRun(api)
  const { page, go } = await openDashboard(chromium, server, { path: '/keys' })
  const isDue = Promise.withResolvers<void>()
  await page.route(/\/v1\/env\/subscribe/, async (route) => {
    await isDue.promise
    await route.continue()
  })
  await go(`/runs/${run.run_id}`)
  const heading = page.locator('.heading')
  await heading.getByText('Running', { exact: true }).waitFor()
  await page.getByRole('region', { name: 'Trace' }).getByRole('listitem').first().waitFor()
  await cancel(api, run)
  isDue.resolve()
  await heading.getByText('Cancelled', { exact: true }).waitFor()
  await page.close() // it has open streams
})

story('a hidden page keeps no connection, and shows what happened when it is shown', async (context) => {
  const { api } = context.server
  const run = await waitingRun(api)
  const { page } = await openDashboard(context.chromium, context.server, { path: `/runs/${run.run_id}` })
  await page.clock.install()
  const heading = page.locator('.heading')
  await heading.getByText('Running', { exact: true }).waitFor()
  await page.getByText('Live', { exact: true }).waitFor()
  await until(async () => (await openStreams(api)) > 0)
  await setHidden(page, true)
  await page.clock.fastForward(AWAY_MS)
  await until(async () => (await openStreams(api)) === 0)
  await cancel(api, run)
  await setHidden(page, false)
  await heading.getByText('Cancelled', { exact: true }).waitFor()
  await page.getByText('Live', { exact: true }).waitFor()
  await page.close()
})

story('a stream has its whole text after the page was hidden', async ({ server, chromium }) => {
  const { api } = server
  const { stream_id } = await publish(api, 'say', 'one ')
  const { page } = await openDashboard(chromium, server, { path: `/streams/${stream_id}` })
  const text = page.getByRole('region', { name: 'Text of word' })
  await text.getByText('one').waitFor()
  await page.getByText('Live', { exact: true }).waitFor()
  await page.clock.install()
  await setHidden(page, true)
  await page.clock.fastForward(AWAY_MS)
  await until(async () => (await openStreams(api)) === 0)
  for (const word of ['two ', 'three ']) await publish(api, 'say', word, { stream_id })
  const stored = async (): Promise<string> => {
    const words: unknown[] = []
    for await (const { event, data } of createClient({ url: server.url, token: api.key }).follow(stream_id))
      if (event === 'stream:data') words.push(data.payload)
    return words.join('')
  }
  await until(async () => (await stored()).length === 'one two three '.length)
  await setHidden(page, false)
  await until(async () => (await text.textContent()) === (await stored()))
})

story('a session without the feed of the environment sees the end of a run', async (context) => {
  const { api } = context.server
  const run = await waitingRun(api)
  const { token } = await newSession(api, { 'run:*': ['read'] })
  const path = `/runs/${run.run_id}`
  const { page } = await openDashboard(context.chromium, context.server, { path, token })
  const heading = page.locator('.heading')
  await heading.getByText('Running', { exact: true }).waitFor()
  await cancel(api, run)
  await heading.getByText('Cancelled', { exact: true }).waitFor()
})

story('the feed begins and ends with its permission', async ({ server, chromium }) => {
  const operator = openApi(server.url, operatorTokenOf(server))
  const { env_id } = await server.api.get<{ env_id: string }>('/env')
  const read: Permissions = { 'run:*': ['read'] }
  const { api_key_id, token } = await operator.post<{ api_key_id: string; token: string }>(
    `${server.url}/operator/envs/${env_id}/api-keys`,
    { name: 'changing', permissions: { ...read, 'env:*': ['read'] } },
  )
  const change = async (permissions: Permissions): Promise<void> => {
    await operator.patch(`${server.url}/operator/api-keys/${api_key_id}`, { permissions })
    await page.evaluate('dispatchEvent(new Event("focus"))')
  }
  const { page } = await openDashboard(chromium, server, { token })
  const feed = page.getByText('Live', { exact: true })
  await feed.waitFor()
  await change(read)
  await page.locator('.connection').waitFor({ state: 'detached' })
  await change({ ...read, 'env:*': ['read'] })
  await feed.waitFor()
})

story.run()
