import type { Page } from 'playwright-core'
import * as assert from 'uvu/assert'
import { call, deploy } from '../support/build.ts'
import { hasChromium } from '../support/chromium.ts'
import { openDashboard, type StartedDashboard, startDashboard } from '../support/openDashboard.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const isHere = hasChromium()
const names = suite<StartedDashboard>('names that the dashboard shows', { timeoutMs: 120_000 })
const story = (name: string, tell: (context: StartedDashboard) => Promise<void>) =>
  isHere ? names(name, tell) : names.skip(name)

const NS = 'orders.handlersOfTheInternationalDepartment'

names.before(async (context) => {
  if (!isHere) return
  Object.assign(context, await startDashboard())
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
})
names.after(({ stop }) => stop?.())

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
  for (const text of ['POST payments-of-the', 'Everyone who has the URL']) {
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
  for (const path of ['\u202etxt.exe', 'in\u200bvoice', 'مرحبا', 'family-👨‍👩‍👧'])
    await api.send('PUT', `/files/upload/${encodeURIComponent(path)}`, { body: Buffer.from('a') })
  const { page } = await openDashboard(context.chromium, context.server, { path: '/files' })
  const paths = page.locator('td[data-name=Path]')
  await until(async () => (await paths.count()) === 4)
  const shown = await paths.allTextContents()
  assert.equal(shown.toSorted(), ['\\u202etxt.exe', 'family-👨‍👩‍👧', 'in\\u200bvoice', 'مرحبا'].toSorted())
  const row = page.getByRole('row', { name: /txt\.exe/ })
  await row.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('dialog').getByText('Deletes \\u202etxt.exe.').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await row.waitFor({ state: 'detached' })
})

names.run()
