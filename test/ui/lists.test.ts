import type { Page } from 'playwright-core'
import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import { openDashboard } from '../support/openDashboard.ts'
import type { Api } from '../support/http.ts'
import { stories } from '../support/stories.ts'
import { until } from '../support/until.ts'

const story = stories('the lists of the dashboard')

const FILES = '**/v1/files?*'

const put = async (api: Api, path: string): Promise<void> => {
  const { status, text } = await api.send('PUT', `/files/upload/${path}`, { body: Buffer.from('a') })
  assert.is(status, 200, text)
}

const fileRow = (page: Page, path: string) => page.getByRole('row', { name: new RegExp(`^${path} `) })

story('a list shows no table before its first reply, and none in place of a failure', async (context) => {
  const { server, chromium } = context
  await put(server.api, 'a.txt')
  const { page } = await openDashboard(chromium, server)
  const held = Promise.withResolvers<void>()
  await page.route(FILES, async (route) => {
    await held.promise
    const error = { code: 'forbidden', message: 'Not now', request_id: newId() }
    await route.fulfill({ status: 403, json: { error } })
  })
  await page.getByRole('link', { name: 'Files' }).click()
  await page.getByRole('heading', { name: 'Files', level: 1 }).waitFor()
  await page.getByRole('main').getByText('Loading…').waitFor()
  assert.is(await page.getByRole('columnheader').count(), 0)
  held.resolve()
  await page.getByRole('alert').getByText('Not now').waitFor()
  assert.is(await page.getByText('Loading…').count(), 0)
  assert.is(await page.getByRole('columnheader').count(), 0)
  await page.unroute(FILES)
  await page.getByRole('button', { name: 'Try again' }).click()
  await fileRow(page, 'a.txt').waitFor()
})

story('a page after the end of its list leads back to the beginning', async ({ chromium, server }) => {
  await put(server.api, 'a.txt')
  const { page } = await openDashboard(chromium, server, { path: '/files?offset=50' })
  await page.getByText('The list ends before this page').waitFor()
  assert.is(await page.getByText('No file is stored').count(), 0)
  await page.getByRole('button', { name: 'Show its beginning' }).click()
  await fileRow(page, 'a.txt').waitFor()
})

story('a filter that fails shows no rows of the former one, and marks them until then', async (context) => {
  const { server, chromium } = context
  await put(server.api, 'former/a.txt')
  const { page } = await openDashboard(chromium, server, { path: '/files' })
  await fileRow(page, 'former/a.txt').waitFor()
  const message = 'Not at present'
  const held = Promise.withResolvers<void>()
  let isHeld = true
  await page.route('**/v1/files?*prefix=*', async (route) => {
    if (isHeld) await held.promise
    const json = { error: { code: 'unavailable', message, request_id: newId() } }
    await route.fulfill({ status: 503, json })
  })
  await page.getByLabel('Path begins with').fill('other')
  await page.locator('.table[aria-busy=true]').waitFor()
  isHeld = false
  held.resolve()
  await page.getByRole('alert').getByText(message).waitFor()
  assert.is(await fileRow(page, 'former/a.txt').count(), 0)

  await page.getByLabel('Path begins with').fill('')
  await fileRow(page, 'former/a.txt').waitFor()
  assert.is(await page.getByRole('alert').count(), 0)
  await page.route('**/v1/files?*', async (route) => {
    const json = { error: { code: 'unavailable', message, request_id: newId() } }
    await route.fulfill({ status: 503, json })
  })
  const dialog = page.getByRole('dialog', { name: 'Delete' })
  await fileRow(page, 'former/a.txt').getByRole('button', { name: 'Delete' }).click()
  await dialog.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('alert').getByText(message).waitFor()
  assert.is(
    await fileRow(page, 'former/a.txt').count(),
    1,
    'a failed reload keeps what the same query returned',
  )
})

const remove = async (page: Page, path: string): Promise<void> => {
  await fileRow(page, path).getByRole('button', { name: 'Delete' }).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'Delete' }).getByRole('button', { name: 'Delete' }).focus()
  await page.keyboard.press('Enter')
  await fileRow(page, path).waitFor({ state: 'detached' })
}

const hasFocus = (page: Page, selector: string) =>
  until(() => page.locator(selector).evaluate((own) => own.matches(':focus')))

story('the focus is on the next row after an action that removes its row', async ({ chromium, server }) => {
  for (const path of ['focus/a', 'focus/b', 'focus/c']) await put(server.api, path)
  const { page } = await openDashboard(chromium, server, { path: '/files?prefix=focus' })
  await remove(page, 'focus/a')
  await hasFocus(page, 'tr:has-text("focus/b")')
  await page.keyboard.press('j')
  await hasFocus(page, 'tr:has-text("focus/c")')
  await remove(page, 'focus/c')
  await hasFocus(page, 'tr:has-text("focus/b")')
  await remove(page, 'focus/b')
  await page.getByText('No file has such a path.').waitFor()
  await hasFocus(page, 'main')
})

story('the focus stays with a button that can do nothing after its action', async ({ chromium, server }) => {
  const permissions = { 'webhook:*': ['execute'] }
  await server.api.post('/service-keys', { name: 'partner', permissions, metadata: null })
  const { page } = await openDashboard(chromium, server, { path: '/keys' })
  await page
    .getByRole('row', { name: /^partner / })
    .getByRole('button', { name: 'Revoke' })
    .focus()
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'Revoke' }).getByRole('button', { name: 'Revoke' }).focus()
  await page.keyboard.press('Enter')
  await page.getByText('Revoked', { exact: true }).waitFor()
  await hasFocus(page, 'tr:has-text("partner") button:has-text("Revoke")')
})

story('a list is loaded again when the reader returns to its window', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, { path: '/files?prefix=elsewhere' })
  await page.getByText('No file has such a path.').waitFor()
  await put(server.api, 'elsewhere.txt')
  await page.evaluate('dispatchEvent(new Event("focus"))')
  await page.getByRole('row', { name: /^elsewhere\.txt/ }).waitFor()
})

story.run()
