import type { Page } from 'playwright-core'
import * as assert from 'uvu/assert'
import { follow } from '../api/sse.ts'
import { call, deploy } from '../support/build.ts'
import { openDashboard, operatorTokenOf, signIn } from '../support/openDashboard.ts'
import { stories } from '../support/stories.ts'
import { until } from '../support/until.ts'

const FILES = {
  'orders.js': `
    export const works = () => 1
    export const fails = () => { throw new Error('No such order') }
    export const slow = () => new Promise((resolve) => setTimeout(resolve, 60_000))
  `,
}

const OUTCOMES = 'Runs per minute by outcome'

const story = stories('the overview of the dashboard', {
  prepare: async (context) => {
    const { api } = context.server
    await deploy(api, 'shop', FILES)
    for (let sent = 0; sent < 3; sent++) await call(api, 'orders/works')
    await call(api, 'orders/fails')
  },
})

/** The number that the page shows below a name. */
const countOf = (page: Page, name: string) =>
  page.locator('dl[aria-label="Runs now"] div', { hasText: name }).getByRole('link')

/** The sum of a column of the table below a picture. */
const sumOf = async (page: Page, table: string, column: string): Promise<number> => {
  const cells = await page
    .getByRole('table', { name: table })
    .locator(`td[data-name="${column}"]`)
    .allInnerTexts()
  return cells.reduce((sum, text) => sum + Number(text), 0)
}

/** Whether the picture of the outcomes has a pixel of the color that a variable of the style sheet has now. */
const hasColor = async (page: Page, variable: string): Promise<boolean> => {
  await page.getByRole('img', { name: OUTCOMES }).waitFor()
  return page.evaluate<boolean>(`{
    const canvas = document.querySelector('canvas[aria-label="${OUTCOMES}"]')
    const probe = document.createElement('canvas').getContext('2d')
    probe.fillStyle = getComputedStyle(canvas).getPropertyValue('${variable}')
    probe.fillRect(0, 0, 1, 1)
    const [color] = new Uint32Array(probe.getImageData(0, 0, 1, 1).data.buffer)
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
    new Uint32Array(data.buffer).includes(color)
  }`)
}

story('the runs are counted by outcome, in a picture and in a table', async ({ chromium, server }) => {
  const { page, errors } = await openDashboard(chromium, server, { path: '' })
  await until(async () => (await countOf(page, 'Succeeded').innerText()) === '3')
  assert.is(await countOf(page, 'Failed').innerText(), '1')
  for (const color of ['--good', '--bad']) await until(() => hasColor(page, color))
  assert.is(await hasColor(page, '--warn'), false)
  await page.getByText('As a table').first().click()
  await page.getByRole('table', { name: OUTCOMES }).waitFor()
  assert.is(await sumOf(page, OUTCOMES, 'Succeeded'), 3)
  assert.is(await sumOf(page, OUTCOMES, 'Failed'), 1)
  await page.getByText('As a table').nth(1).click()
  const durations = page.getByRole('table', { name: 'Duration of the runs per minute' })
  await durations
    .getByText(/^\d+ ms$|^\d+\.\d s$/)
    .first()
    .waitFor()
  assert.equal(errors, [])
})

story('the pictures follow the theme', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, { path: '' })
  await page.emulateMedia({ colorScheme: 'light' })
  await until(() => hasColor(page, '--bad'))
  await page.getByRole('button', { name: 'Theme: system' }).click()
  await page.getByRole('button', { name: 'Theme: light' }).click()
  await page.getByRole('button', { name: 'Theme: dark' }).waitFor()
  await until(() => hasColor(page, '--bad'))
})

story('the period is in the URL', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, { path: '' })
  await page.getByLabel('Period').selectOption('Last 30 days')
  await page.waitForURL(/range=month/)
  await page.getByRole('heading', { name: 'Runs per day' }).waitFor()
  await page.reload()
  await page.getByText('As a table').first().click()
  const rows = page.getByRole('table', { name: 'Runs per day by outcome' }).locator('tbody tr')
  await until(async () => (await rows.count()) === 30)
})

story('an error code leads to the runs that failed with it', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, { path: '' })
  const row = page
    .getByRole('table', { name: 'Errors by code' })
    .getByRole('row')
    .filter({ hasText: 'No such order' })
  await row.getByRole('link').first().click()
  await page.waitForURL(/\/ui\/runs\?status=failed&error_code=/)
  await page.getByRole('link', { name: 'orders/fails' }).waitFor()
  assert.is(await page.locator('tbody tr').count(), 1)
})

story('a run that starts and is cancelled is counted without a reload', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, { path: '' })
  await page.getByText('Live', { exact: true }).waitFor()
  await until(async () => (await countOf(page, 'Running now').innerText()) === '0')
  const { event_id } = await server.api.post<{ event_id: string }>('/events', {
    event_type: 'svc:call',
    event_data: { fn: 'orders/slow', args: [] },
  })
  await until(async () => (await countOf(page, 'Running now').innerText()) === '1')
  const [run] = (await server.api.page<{ run_id: string }>(`/events/${event_id}/runs`)).data
  await server.api.post(`/runs/${run?.run_id}/cancel`)
  await until(async () => (await countOf(page, 'Cancelled').innerText()) === '1')
})

story('a session that may only read runs sees no quota and no failure', async ({ chromium, server }) => {
  const { token } = await server.api.post<{ token: string }>('/sessions', {
    permissions: { 'run:*': ['read'] },
  })
  const { page } = await openDashboard(chromium, server, { token, path: '' })
  await until(async () => (await countOf(page, 'Succeeded').innerText()) === '3')
  await page.getByRole('img', { name: OUTCOMES }).waitFor()
  assert.is(await page.getByRole('heading', { name: 'Quota' }).count(), 0)
  assert.is(await page.getByRole('alert').count(), 0)
})

story('the overview counts the open live streams of the environment', async ({ chromium, server }) => {
  const { page, go } = await openDashboard(chromium, server, { path: '' })
  const shown = page.getByRole('region', { name: 'Quota' }).locator('div', { hasText: 'of this environment' })
  const isShown = async (least: number) => {
    await go('')
    const count = Number(await shown.getByRole('definition').innerText())
    const { live_streams } = await server.api.get<{ live_streams: { in_env: number } }>('/org/usage')
    const isSame = Math.abs(count - live_streams.in_env) <= 1 // one of the two may count the stream of the page itself
    return isSame && count >= least ? { count } : undefined
  }
  const { count } = await until(() => isShown(0))
  const followers = await Promise.all([1, 2, 3].map(() => follow(server.api, '/env/subscribe')))
  await until(() => isShown(count + 2)) // the page may have counted its own stream
  for (const follower of followers) follower.close()
})

story('the operator sees the disk of the node, others do not', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, { path: '' })
  await page.getByRole('img', { name: OUTCOMES }).waitFor()
  assert.is(await page.getByText('Disk of the node').count(), 0)
  await page.getByRole('button', { name: 'Sign out' }).click()
  await signIn(page, operatorTokenOf(server))
  await signIn(page, server.api.key)
  await page.getByText(/^Disk of the node: .*free|^disk: /).waitFor()
})

story('the period moves on without a run, and the warnings are read again', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, {
    token: operatorTokenOf(server),
    path: '/operator',
  })
  await page.clock.install()
  await page.goto(`${server.url}/ui`)
  await signIn(page, server.api.key)
  await page.getByText(/^Disk of the node: .*free|^disk: /).waitFor()
  await page.getByText('Live', { exact: true }).waitFor()
  for (const asked of [
    /\/v1\/runs\/stats\?interval=/,
    /\/v1\/org\/usage/,
    /\/v1\/runs\?status=failed/,
    /\/operator\/checks/,
  ])
    await Promise.all([page.waitForRequest(asked), page.clock.fastForward(60_000)])
})

story.run()
