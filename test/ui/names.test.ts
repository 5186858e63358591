import type { Page } from 'playwright-core'
import * as assert from 'uvu/assert'
import { call, deploy, publish } from '../support/build.ts'
import { openDashboard } from '../support/openDashboard.ts'
import { stories } from '../support/stories.ts'
import { until } from '../support/until.ts'

const story = stories('names that the dashboard shows', {
  prepare: async (context) => {
    await deploy(context.server.api, 'shop', {
      [`${NS.replace('.', '/')}.js`]: `
      import { fn } from 'svc'
      export const onPaymentsOfInternationalCustomersWithTheirReminders = fn(
        { webhook: { service: 'payments-of-the-international-department', path: '/paid/by/customers' } }, () => 1)
      export const nightlyReportOfAllInternationalCustomersAndOrders = fn({ schedule: '0 3 1 1 *' }, () => 1)
      export const failsBecauseTheInternationalDepartmentIsClosed = () => {
        throw new Error('The department is closed on Sundays')
      }
    `,
    })
    await call(context.server.api, `${NS}/failsBecauseTheInternationalDepartmentIsClosed`)
  },
})

const NS = 'orders.handlersOfTheInternationalDepartment'

/** The tables of a page that are wider than their place. */
const tooWide = (page: Page) =>
  page
    .locator('.table')
    .evaluateAll((all) =>
      all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.getAttribute('aria-label')),
    )

story('long names neither hide the columns beside them nor narrow them to letters', async (context) => {
  const { page, go } = await openDashboard(context.chromium, context.server, { path: '/functions' })
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.getByRole('heading', { name: 'Webhooks' }).waitFor()
  assert.equal(await tooWide(page), [])
  for (const text of ['POST payments-of-the', 'Everyone with the URL']) {
    const { height = 999 } = (await page.getByRole('cell', { name: text }).boundingBox()) ?? {}
    assert.ok(height < 130, `Expected a cell with a few lines, got ${height} px for ${text}`)
  }
  await go('/runs')
  const error = page.getByRole('cell', { name: 'The department is closed on Sundays' })
  const { width = 0 } = (await error.boundingBox()) ?? {}
  assert.ok(width >= 100, `Expected a column of at least 100 px, got ${width}`)
  assert.equal(await tooWide(page), [])
})

story('characters that make one name look like another one are shown as escapes', async (context) => {
  const { api } = context.server
  const same = ['مرحبا', 'family-👨‍👩‍👧', 'heart-❤️', '🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}']
  const deceptive = ['\u202etxt.exe', 'in\u200bvoice', 'pay\u00adroll', 'bank\u3164', 'tax\u{e0041}']
  for (const path of [...same, ...deceptive])
    await api.send('PUT', `/files/upload/${encodeURIComponent(path)}`, { body: Buffer.from('a') })
  const { page } = await openDashboard(context.chromium, context.server, { path: '/files' })
  const paths = page.locator('td[data-name=Path]')
  await until(async () => (await paths.count()) === 9)
  const shown = await paths.allTextContents()
  const escapes = ['\\u202etxt.exe', 'in\\u200bvoice', 'pay\\u00adroll', 'bank\\u3164', 'tax\\udb40\\udc41']
  assert.equal(shown.toSorted(), [...same, ...escapes].toSorted())
  const row = page.getByRole('row', { name: /txt\.exe/ })
  await row.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('dialog').getByText('Deletes \\u202etxt.exe.').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await row.waitFor({ state: 'detached' })
})

story('they are escapes in the fields of dialogs too, which have the same value as JSON', async (context) => {
  const { api } = context.server
  await publish(api, 'order:deceptive', { name: '\u202eevil' })
  const { page } = await openDashboard(context.chromium, context.server, {
    path: '/events?event_type=order:deceptive',
  })
  await page.getByRole('button', { name: 'Publish' }).click()
  const data = page.getByRole('dialog').getByLabel('Data as JSON')
  await until(async () => (await data.inputValue()).includes('name'))
  assert.match(await data.inputValue(), '"name": "\\u202eevil"')
  await page.getByRole('dialog').getByRole('button', { name: 'Publish' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  const { data: events } = await api.page<{ event_data: unknown }>('/events?event_type=order:deceptive')
  assert.equal(
    events.map(({ event_data }) => event_data),
    [{ name: '\u202eevil' }, { name: '\u202eevil' }],
  )
})

story.run()
