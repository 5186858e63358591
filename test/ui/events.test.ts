import * as assert from 'uvu/assert'
import { lackText } from '../../src/access/permissions.ts'
import { newId } from '../../src/ids.ts'
import { deploy, handle, publish } from '../support/build.ts'
import { openDashboard } from '../support/openDashboard.ts'
import { stories } from '../support/stories.ts'
import { until } from '../support/until.ts'

const FILES = {
  'orders.ts': `
    import { fn } from 'svc'
    export const ship = fn({ 'on-event': 'order:paid' }, ({ data }: any) => data.amount * 2)
  `,
}

/** More than one request of the page reads together, and more than a page of handlers. */
const PROJECTS = 22

const story = stories('events in the dashboard', {
  prepare: async (context) => {
    await deploy(context.server.api, 'shop', FILES)
  },
})

story(
  'an event with the shape of the newest is published, and leads to its run',
  async ({ chromium, server }) => {
    await handle(server.api, 'order:paid', { amount: 20, currency: 'EUR' })
    const { page, errors } = await openDashboard(chromium, server, { path: '/events' })
    await page
      .getByRole('table', { name: 'Functions by the type' })
      .getByRole('link', { name: 'orders/ship' })
      .waitFor()
    await page.getByRole('button', { name: 'Publish' }).click()
    const dialog = page.getByRole('dialog')
    const suggested = dialog.locator('datalist option')
    await until(async () => (await suggested.count()) === 1)
    assert.is(await suggested.getAttribute('value'), 'order:paid')
    await dialog.getByLabel('Event type').fill('order:paid')
    const data = dialog.getByLabel('Data as JSON')
    await until(async () => (await data.inputValue()).includes('"currency": "EUR"'))

    await data.fill('{ "amount": ')
    await dialog.getByRole('button', { name: 'Publish' }).click()
    await dialog
      .getByRole('alert')
      .getByText(/^Data: expected JSON/)
      .waitFor()
    assert.is(await data.getAttribute('aria-invalid'), 'true')
    const described = dialog.locator(`[id="${await data.getAttribute('aria-describedby')}"]`)
    assert.match(await described.innerText(), /^Data: expected JSON/)
    assert.is(await dialog.getByRole('alert').count(), 1) // the field shows it, and nothing else does
    assert.is((await server.api.page('/events?event_type=order:paid')).pagination.total, 1)

    await data.fill('{ "amount": 21 }')
    await dialog.getByRole('button', { name: 'Publish' }).click()
    const notice = page.locator('.notice')
    await notice.getByText('It starts 1 function.').waitFor()
    await notice.getByRole('link', { name: 'Event' }).click()
    await page.waitForURL(/\/ui\/events\?event=/)
    await page.getByRole('region', { name: 'Data of the event' }).getByText('"amount": 21').waitFor()
    await page
      .getByRole('row')
      .filter({ hasText: 'Succeeded' })
      .getByRole('link', { name: 'orders/ship' })
      .click()
    await page
      .getByRole('region', { name: /^result of/ })
      .getByText('42')
      .waitFor()
    assert.equal(errors, [])
  },
)

story(
  'a refusal of the service is shown in the dialog, and nothing is published',
  async ({ chromium, server }) => {
    const { page } = await openDashboard(chromium, server, { path: '/events' })
    await page.getByRole('button', { name: 'Publish' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Event type').fill('order:lost')
    await dialog.getByLabel('Stream to continue').fill('order-17')
    await dialog.getByRole('button', { name: 'Publish' }).click()
    await dialog
      .getByRole('alert')
      .getByText(/^stream_id: expected/)
      .waitFor()
    assert.is((await server.api.page('/events?event_type=order:lost')).pagination.total, 0)
  },
)

story('the list shows one type, and a new event without a reload', async ({ chromium, server }) => {
  await publish(server.api, 'user:left', { name: 'Ada' })
  const { page } = await openDashboard(chromium, server, { path: '/events' })
  await page.getByLabel('Event type').fill('user:left')
  await page.waitForURL(/event_type=user/)
  const rows = page.getByRole('table', { name: 'Events, the newest first' }).locator('tbody tr')
  await until(async () => (await rows.count()) === 1)
  await page.getByText('Live', { exact: true }).waitFor()
  await publish(server.api, 'user:left', { name: 'Bob' })
  await rows.getByText('{"name":"Bob"}').waitFor()
  assert.is(await rows.count(), 2)
})

story('a session that may not publish is refused before it tries', async ({ chromium, server }) => {
  const { token } = await server.api.post<{ token: string }>('/sessions', {
    permissions: { 'event:*': ['read'] },
  })
  const { page } = await openDashboard(chromium, server, { token, path: '/events' })
  const button = page.getByRole('button', { name: 'Publish' })
  assert.is(await button.isDisabled(), true)
  assert.is(await button.getAttribute('title'), lackText('event', 'create'))
})

story('the functions of all projects are listed with the progress', async ({ chromium, server }) => {
  const one = (type: string) => `fn({ 'on-event': '${type}' }, () => 1)`
  const many = Array.from({ length: 120 }, (_, n) => `export const f${n} = ${one('many:done')}`)
  await deploy(server.api, 'many', { 'f.js': `import { fn } from 'svc'\n${many.join('\n')}` })
  for (let n = 0; n < PROJECTS; n++)
    await deploy(server.api, `small-${n}`, {
      'f.js': `import { fn } from 'svc'\nexport const last = ${one('small:done')}`,
    })
  const { page, errors, go } = await openDashboard(chromium, server, { path: '/files' })
  const { promise: isSeen, resolve: proceed } = Promise.withResolvers<void>()
  await page.route('**/event-handlers?*', async (route) => {
    await isSeen
    await route.continue()
  })
  await go('/events')
  await page.getByText(`Reading the functions of ${PROJECTS + 2} projects`).waitFor()
  proceed()
  const table = page.getByRole('table', { name: 'Functions by the type' })
  await page.getByText(`1–50 of ${PROJECTS + 121}`).waitFor()
  assert.is(await page.getByRole('progressbar').count(), 0)
  for (const range of ['51–100', '101–143']) {
    await page.getByRole('button', { name: 'Next' }).last().click()
    await page.getByText(`${range} of ${PROJECTS + 121}`).waitFor()
  }
  await table.getByRole('cell', { name: `small-${PROJECTS - 1}`, exact: true }).waitFor()
  assert.equal(errors, [])
})

story('an event with more runs than its page lists leads to all of them', async ({ chromium, server }) => {
  const many = Array.from(
    { length: 101 },
    (_, n) => `export const g${n} = fn({ 'on-event': 'all' }, () => 1)`,
  )
  await deploy(server.api, 'all', { 'g.js': `import { fn } from 'svc'\n${many.join('\n')}` })
  const { event_id } = await publish(server.api, 'all')
  const of = `/runs?event=${event_id}&status=succeeded`
  await until(async () => (await server.api.page(of)).pagination.total === 101, { timeoutMs: 60_000 })
  const { page } = await openDashboard(chromium, server, { path: `/events?event=${event_id}` })
  await page.getByRole('link', { name: 'All runs of the event' }).click()
  await page.getByText('101 in the list', { exact: true }).waitFor()
})

story('an event that does not exist is explained', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, { path: `/events?event=${newId()}` })
  await page.getByText('There is no event').waitFor()
})

story.run()
