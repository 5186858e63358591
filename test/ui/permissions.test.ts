import * as assert from 'uvu/assert'
import { lackText } from '../../src/access/permissions.ts'
import type { Permissions } from '../../src/events/org.ts'
import { newSession } from '../api/issuing.ts'
import { call, deploy, handle } from '../support/build.ts'
import { openDashboard, operatorTokenOf, type StartedDashboard } from '../support/openDashboard.ts'
import { openApi } from '../support/http.ts'
import { stories } from '../support/stories.ts'
import { until } from '../support/until.ts'

interface Context extends StartedDashboard {
  run_id: string
}

const story = stories<Context>('permissions in the dashboard', {
  prepare: async (context) => {
    await deploy(context.server.api, 'shop', {
      'a.js': `import { fn } from 'svc'
        export const echo = (text) => text
        export const onPaid = fn({ 'on-event': 'paid' }, () => 1)`,
    })
    context.run_id = (await call(context.server.api, 'a/echo', 'hi')).run_id
  },
})

/** An API key whose permissions the operator changes. */
const openKey = async ({ server }: Context, given: Permissions) => {
  const operator = openApi(server.url, operatorTokenOf(server))
  const { env_id } = await server.api.get<{ env_id: string }>('/env')
  const { api_key_id, token } = await operator.post<{ api_key_id: string; token: string }>(
    `${server.url}/operator/envs/${env_id}/api-keys`,
    { name: 'changing', permissions: given },
  )
  const change = (next: Permissions) =>
    operator.patch(`${server.url}/operator/api-keys/${api_key_id}`, { permissions: next })
  return { token, change }
}

story(
  'a permission that is withdrawn while a page is open is named by its actions and its page',
  async (context) => {
    const { chromium, server } = context
    await server.api.send('PUT', '/files/upload/kept.txt', { body: Buffer.from('a') })
    const { token, change } = await openKey(context, {
      'file:*': ['*'],
      'run:*': ['read'],
      'env:*': ['read'],
    })
    const { page } = await openDashboard(chromium, server, { token, path: '/files' })
    const upload = page.getByRole('button', { name: 'Upload' })
    await page.getByRole('row', { name: /^kept\.txt/ }).waitFor()

    await change({ 'file:*': ['read'], 'run:*': ['read'], 'env:*': ['read'] })
    await upload.click()
    const dialog = page.getByRole('dialog', { name: 'Upload' })
    const note = { name: 'note.txt', mimeType: 'text/plain', buffer: Buffer.from('note') }
    await dialog.getByLabel('File').setInputFiles(note)
    await dialog.getByRole('button', { name: 'Upload' }).click()
    await dialog
      .getByRole('alert')
      .getByText(lackText('file', 'create', 'note.txt'))
      .waitFor()
    assert.is(await dialog.getByLabel('Path').inputValue(), 'note.txt')
    await page.keyboard.press('Escape')
    assert.ok(await upload.isDisabled())
    assert.ok(await upload.evaluate((own) => own.matches(':focus')))
    await page.keyboard.press('Enter')
    await page
      .getByRole('status')
      .getByText(`Upload: ${lackText('file', 'create')}`)
      .waitFor()
    assert.is(await dialog.count(), 0)
    await page.getByRole('row', { name: /^kept\.txt/ }).waitFor()

    await change({ 'run:*': ['read'], 'env:*': ['read'] })
    await page.getByLabel('Path begins with').fill('k')
    await page.getByRole('main').getByText(lackText('file', 'read')).waitFor()
    assert.is(await page.getByRole('link', { name: 'Files' }).count(), 0)
    assert.is(await page.getByRole('row').count(), 0)
    await page.getByRole('link', { name: 'Runs' }).click()
    await page.getByRole('link', { name: 'a/echo' }).waitFor()
  },
)

story('a credential that may only replace a file can upload it', async (context) => {
  const { chromium, server } = context
  await server.api.send('PUT', '/files/upload/replaced.txt', { body: Buffer.from('a') })
  const { token } = await openKey(context, { 'file:*': ['read', 'update'], 'env:*': ['read'] })
  const { page } = await openDashboard(chromium, server, { token, path: '/files' })
  await page.getByRole('button', { name: 'Upload' }).click()
  const dialog = page.getByRole('dialog', { name: 'Upload' })
  const file = { name: 'replaced.txt', mimeType: 'text/plain', buffer: Buffer.from('other') }
  await dialog.getByLabel('File').setInputFiles(file)
  await dialog.getByRole('button', { name: 'Upload' }).click()
  await page.getByRole('row', { name: /^replaced\.txt 5 bytes/ }).waitFor()
})

story('a permission that is added while a page is open is used without a reload', async (context) => {
  const { chromium, server } = context
  await server.api.send('PUT', '/files/upload/kept.txt', { body: Buffer.from('a') })
  const all = { 'file:*': ['*'], 'run:*': ['read'], 'env:*': ['read'] } as const
  const { token, change } = await openKey(context, all)
  const { page } = await openDashboard(chromium, server, { token, path: '/files' })
  const kept = page.getByRole('row', { name: /^kept\.txt/ })
  await kept.waitFor()
  await page.evaluate('globalThis.isSamePage = true')
  const upload = page.getByRole('button', { name: 'Upload' })
  const readerReturns = () => page.evaluate('dispatchEvent(new Event("focus"))')

  await change({ ...all, 'file:*': ['read'] })
  await readerReturns()
  await until(() => upload.isDisabled())
  await change(all)
  await readerReturns()
  await until(async () => !(await upload.isDisabled()))

  await change({ ...all, 'file:*': ['read'] })
  await readerReturns()
  await until(() => upload.isDisabled())
  await change(all)
  await upload.click({ force: true }) // refused by what the page knew, which it reads again
  await until(async () => !(await upload.isDisabled()))

  await change({ 'run:*': ['read'], 'env:*': ['read'] })
  await page.getByLabel('Path begins with').fill('k')
  await page.getByRole('main').getByText(lackText('file', 'read')).waitFor()
  await change(all)
  await kept.waitFor()
  assert.is(await page.evaluate('globalThis.isSamePage'), true)
})

story('every page that a credential may not see names the permission in the same words', async (context) => {
  const { chromium, server, run_id } = context
  const { token } = await newSession(server.api, { 'webhook:*': ['execute'] })
  const { page, go } = await openDashboard(chromium, server, { token, path: '/keys' })
  for (const [path, type] of [
    ['', 'run'],
    ['/runs', 'run'],
    [`/runs/${run_id}`, 'run'],
    ['/streams', 'stream'],
    ['/events', 'event'],
    ['/functions', 'build'],
    ['/builds', 'build'],
    ['/files', 'file'],
    ['/secrets', 'context'],
    ['/keys', 'key'],
    ['/keys', 'session'],
    ['/domains', 'domain'],
    ['/history', 'env'],
  ] as const) {
    await go(path)
    await page.getByRole('main').getByText(lackText(type, 'read')).waitFor()
    assert.is(await page.getByRole('button', { name: 'Try again' }).count(), 0, path)
  }
})

story('a part of a page that a credential may not see is named, and not shown as empty', async (context) => {
  const { chromium, server, run_id } = context
  const { token } = await newSession(server.api, { 'run:*': ['read'], 'event:*': ['read'] })
  const { page, go } = await openDashboard(chromium, server, { token, path: '/events' })
  await page.getByRole('region', { name: 'Handlers' }).getByText(lackText('project', 'read')).waitFor()
  assert.is(await page.getByText('No deployed function handles events').count(), 0)
  await go(`/runs/${run_id}`)
  await page.getByRole('region', { name: 'Trace' }).getByText('a/echo').waitFor()
  const { token: fewer } = await newSession(server.api, { 'run:*': ['read'] })
  const other = await openDashboard(chromium, server, { token: fewer, path: `/runs/${run_id}` })
  await other.page.getByRole('region', { name: 'Trace' }).getByText(lackText('event', 'read')).waitFor()
  const handled = await handle(server.api, 'paid', { n: 1 })
  await other.go(`/runs/${handled.run_id}`)
  await other.page.getByRole('region', { name: 'Input' }).getByText(lackText('event', 'read')).waitFor()
})

story.run()
