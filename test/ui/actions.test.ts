import type { Page } from 'playwright-core'
import * as assert from 'uvu/assert'
import { call, deploy, type Run } from '../support/build.ts'
import { openDashboard } from '../support/openDashboard.ts'
import { stories } from '../support/stories.ts'
import { until } from '../support/until.ts'

const story = stories('the actions of the dashboard', {
  prepare: async (context) => {
    await deploy(context.server.api, 'shop', { 'a.js': 'export const echo = (text) => text' })
  },
})

/** Opens a dialog whose button has the same label. */
const openDialog = async (page: Page, label: string) => {
  await page.getByRole('button', { name: label }).click()
  const dialog = page.getByRole('dialog', { name: label })
  return { dialog, send: dialog.getByRole('button', { name: label }) }
}

const openPublish = async (page: Page, type: string) => {
  const opened = await openDialog(page, 'Publish')
  await opened.dialog.getByLabel('Event type').fill(type)
  return opened
}

/** Replies that do not say whether the service has done what was sent. */
const UNKNOWN_OUTCOMES = {
  'an internal error': { status: 500, body: '{}' },
  'an error of a proxy': { status: 524, body: 'A timeout occurred' },
  'a first request that is still in progress': {
    status: 409,
    headers: { 'retry-after': '1' },
    body: '{"error":{"code":"conflict","message":"The first request with this key is still in progress"}}',
  },
  'a reply that was cut': { status: 201, body: '{"da' },
} as const

for (const [outcome, reply] of Object.entries(UNKNOWN_OUTCOMES))
  story(`an action that is repeated after ${outcome} is done once`, async ({ server, chromium }) => {
    const { page } = await openDashboard(chromium, server, { path: '/events' })
    const event_type = `once:${outcome.replaceAll(' ', '-')}`
    const { dialog, send } = await openPublish(page, event_type)
    let isUnknown = true
    await page.route('**/v1/events', async (route) => {
      if (!isUnknown || route.request().method() !== 'POST') return route.continue()
      const answer = await route.fetch()
      await answer.dispose()
      await route.fulfill(reply)
    })
    await send.click()
    await dialog.getByRole('alert').filter({ hasText: /./ }).waitFor()
    isUnknown = false
    await send.click()
    await dialog.waitFor({ state: 'detached' })
    const { pagination } = await server.api.page(`/events?event_type=${event_type}`)
    assert.is(pagination.total, 1)
  })

story('an action of several runs that is repeated while it is in progress is done once', async (context) => {
  const { server, chromium } = context
  const { run_id } = await call(server.api, 'a/echo', 'several')
  const { page } = await openDashboard(chromium, server, { path: '/runs?fn=a/echo' })
  await page
    .getByRole('row')
    .filter({ has: page.locator(`a[href$="${run_id}"]`) })
    .getByRole('checkbox')
    .check()
  let isUnknown = true
  await page.route(`**/v1/runs/${run_id}/replay`, async (route) => {
    if (!isUnknown) return route.continue()
    const answer = await route.fetch()
    await answer.dispose()
    await route.fulfill(UNKNOWN_OUTCOMES['a first request that is still in progress'])
  })
  const { dialog, send } = await openDialog(page, 'Replay 1')
  await send.click()
  await dialog.getByText(/^1 of 1 requests failed/).waitFor()
  isUnknown = false
  await send.click()
  await page.getByText('Replayed 1 run.').waitFor()
  const { pagination } = await server.api.page('/events?event_type=svc:replay')
  assert.is(pagination.total, 1)
})

story('a double click on an action without a dialog does it once', async ({ server, chromium }) => {
  const { run_id } = await call(server.api, 'a/echo', 'twice')
  const { page } = await openDashboard(chromium, server, { path: `/runs/${run_id}` })
  let requests = 0
  page.on('request', (request) => void (request.url().endsWith(`/runs/${run_id}/replay`) && requests++))
  const button = page.getByRole('button', { name: 'Replay', exact: true })
  const notices = page.getByText('The replay was requested.')
  await button.hover()
  await page.mouse.down({ clickCount: 1 })
  await page.mouse.up({ clickCount: 1 })
  await notices.waitFor()
  await page.mouse.down({ clickCount: 2 })
  await page.mouse.up({ clickCount: 2 })
  await page.evaluate('new Promise((resolve) => requestAnimationFrame(resolve))')
  assert.is(requests, 1)
  await button.focus()
  await page.keyboard.press('Enter')
  await until(() => requests === 2)
  const replays = async () =>
    (await server.api.page<Run>('/runs?fn=a/echo')).data.filter(({ replay_of }) => replay_of === run_id)
  await until(async () => (await replays()).length === 2)
})

/** Delays the requests of this method until it is called. */
const delay = async (page: Page, method: string, path: string) => {
  const isDue = Promise.withResolvers<void>()
  await page.route(path, async (route) => {
    if (route.request().method() === method) await isDue.promise
    await route.continue()
  })
  return isDue.resolve
}

story('a late reply leaves a dialog that was opened again as it is', async ({ server, chromium }) => {
  const { page } = await openDashboard(chromium, server, { path: '/events' })
  const arrive = await delay(page, 'POST', '**/v1/events')
  const { dialog, send } = await openPublish(page, 'late:first')
  await send.click()
  await dialog.getByRole('button', { name: 'Back' }).click()
  await dialog.waitFor({ state: 'detached' })
  await openPublish(page, 'late:second')
  arrive()
  await page.getByText('Published.').waitFor()
  assert.is(await dialog.count(), 1)
  assert.is(await dialog.getByLabel('Event type').inputValue(), 'late:second')
  await send.click()
  await dialog.waitFor({ state: 'detached' })
  for (const type of ['late:first', 'late:second'])
    assert.is((await server.api.page(`/events?event_type=${type}`)).pagination.total, 1)
})

story('a late refusal is no refusal of a dialog that was opened again', async ({ server, chromium }) => {
  const { page } = await openDashboard(chromium, server, { path: '/events' })
  const isDue = Promise.withResolvers<void>()
  await page.route('**/v1/events', async (route) => {
    if (route.request().method() !== 'POST') return route.continue()
    await isDue.promise
    await route.fulfill({ status: 400, json: { error: { code: 'bad_request', message: 'Not at present' } } })
  })
  const { dialog, send } = await openPublish(page, 'late:refused')
  await send.click()
  await dialog.getByRole('button', { name: 'Back' }).click()
  await dialog.waitFor({ state: 'detached' })
  await openPublish(page, 'late:third')
  isDue.resolve()
  await page.getByText('Not at present').waitFor()
  assert.is(await dialog.getByText('Not at present').count(), 0)
})

story('a late reply leaves the value of a dialog that was opened again', async ({ server, chromium }) => {
  const { page } = await openDashboard(chromium, server, { path: '/secrets?project=shop' })
  const arrive = await delay(page, 'POST', '**/v1/projects/shop/context')
  const { dialog, send } = await openDialog(page, 'Create secret')
  await dialog.getByLabel('Key').fill('FIRST')
  await dialog.getByLabel('Value').fill('one')
  await send.click()
  await dialog.getByRole('button', { name: 'Back' }).click()
  await dialog.waitFor({ state: 'detached' })
  await openDialog(page, 'Create secret')
  await dialog.getByLabel('Key').fill('SECOND')
  await dialog.getByLabel('Value').fill('two')
  arrive()
  await page.getByText('Created FIRST.').waitFor()
  assert.is(await dialog.count(), 1)
  assert.is(await dialog.getByLabel('Value').inputValue(), 'two')
})

story.run()
