import * as assert from 'uvu/assert'
import { call, deploy } from '../support/build.ts'
import { openFaultProxy } from '../support/faultProxy.ts'
import { goByKey, openDashboard, signInAsOperator } from '../support/openDashboard.ts'
import { stories } from '../support/stories.ts'
import { until } from '../support/until.ts'

const story = stories('pages of the dashboard that are opened while the service is lost')

/** The key after `g` of each page, and a text that only its content has. */
const PAGES = {
  o: /All runs/,
  r: /in the list/,
  s: /Newest event/,
  e: /Sent by run/,
  f: /Last 24 hours/,
  b: /SHA-256/,
  i: /No file is stored/,
  x: /This project has no secret/,
  k: /this dashboard/,
  d: /No domain is registered/,
  a: /ProjectCreated/,
  p: /self_host/,
} as const

story('each of them says so, and shows its content when the service answers again', async (context) => {
  const { chromium, server } = context
  await deploy(server.api, 'shop', { 'a.js': 'export const echo = (text) => text' })
  const { run_id } = await call(server.api, 'a/echo', 'hi')
  const { hostname, port } = new URL(server.url)
  const proxy = await openFaultProxy({ host: hostname, port: Number(port) })
  const dashboard = await openDashboard(
    chromium,
    { ...server, url: proxy.url(server.url) },
    { path: '/operator' },
  )
  const { page } = dashboard
  await signInAsOperator(dashboard)
  const main = page.getByRole('main')
  const tried = 'The service does not answer. The page tries again when it does.'
  for (const [key, content] of Object.entries(PAGES)) {
    await goByKey(page, key === 'k' ? 'd' : 'k')
    await page.getByRole('heading', { level: 1 }).waitFor()
    proxy.refuse()
    await goByKey(page, key)
    await main.getByRole('alert').filter({ hasText: tried }).first().waitFor()
    await page.getByText('Connection lost').waitFor()
    assert.is(await main.getByText(content).count(), 0, key)
    await proxy.heal()
    await main.getByText(content).first().waitFor()
    await page.getByText('Connection lost').waitFor({ state: 'detached' })
    await until(async () => (await main.getByRole('alert').count()) === 0) // a page may ask for several things
  }
  await dashboard.go('/runs')
  await page.getByRole('link', { name: 'a/echo' }).waitFor()
  proxy.refuse()
  await page.getByRole('link', { name: 'a/echo' }).click()
  await main.getByRole('alert').filter({ hasText: tried }).waitFor()
  await proxy.heal()
  await main.getByText(run_id).first().waitFor()
  await proxy.close()
})

story('a reply that never comes is asked for again', async ({ chromium, server }) => {
  await deploy(server.api, 'shop', { 'a.js': 'export const echo = (text) => text' })
  await call(server.api, 'a/echo', 'hi')
  const { page, go } = await openDashboard(chromium, server, { path: '/keys' })
  await page.clock.install()
  let sent = 0
  await page.route(/\/v1\/runs\?/, async (route) => {
    if (sent++ > 0) await route.continue()
  })
  await go('/runs')
  await until(() => sent === 1)
  await page.clock.fastForward(60_000)
  await page.getByRole('link', { name: 'a/echo' }).first().waitFor()
  await page.getByText('Connection lost').waitFor({ state: 'detached' })
})

story.run()
