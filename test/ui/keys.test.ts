import * as assert from 'uvu/assert'
import type { Page } from 'playwright-core'
import { openApi } from '../support/http.ts'
import { openDashboard, signInAsOperator } from '../support/openDashboard.ts'
import { stories } from '../support/stories.ts'
import { until } from '../support/until.ts'

const story = stories('keys and sessions in the dashboard')

/** Reads the token that the page shows once, and closes it. */
const tokenShown = async (page: Page): Promise<string> => {
  const dialog = page.getByRole('dialog').filter({ hasText: 'Copy the token now' })
  const token = await dialog.locator('code').innerText()
  await dialog.getByRole('button', { name: 'Done' }).click()
  await dialog.waitFor({ state: 'detached' })
  return token
}

story(
  'the operator issues a restricted API key, and a page that it may not see names the missing permission',
  async ({ chromium, server }) => {
    const dashboard = await openDashboard(chromium, server, { path: '/keys' })
    const { page, errors } = dashboard
    await page.getByText('Sign in as the operator').click()
    await signInAsOperator(dashboard)

    await page.getByRole('button', { name: 'Create API key' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('files only')
    await dialog.getByRole('button', { name: 'Create API key' }).click()
    await dialog.getByText('Permissions: expected at least one action, got none').waitFor()
    await dialog.getByLabel('file read').check()
    await dialog.getByLabel('session read').check()
    await dialog.getByLabel('Paths of session').fill('all, others')
    await dialog.getByRole('button', { name: 'Create API key' }).click()
    const token = await tokenShown(page)
    await page
      .getByRole('row', { name: /files only/ })
      .getByText('session:others')
      .waitFor()
    assert.equal(errors, [])

    const { page: theirs } = await openDashboard(chromium, server, { token, path: '/keys' })
    const listed = theirs.getByRole('region', { name: 'Service keys' })
    await listed.getByText('key:* read').waitFor()
    await theirs.getByRole('link', { name: 'Files' }).click()
    await theirs.getByRole('heading', { name: 'Files' }).waitFor()
    assert.is(await theirs.getByRole('link', { name: 'Runs' }).count(), 0)
    await theirs.goto(`${server.url}/ui/runs`)
    await theirs.getByText('lacks the permission run:* read').waitFor()
    const refused = await openApi(server.url, token).refused('GET', '/runs')
    assert.equal([refused.status, refused.code], [403, 'forbidden'])

    const row = page.getByRole('row', { name: /files only/ })
    await row.getByRole('button', { name: 'Disable' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Disable' }).click()
    await row.getByText('Disabled', { exact: true }).waitFor()
    assert.is((await openApi(server.url, token).refused('GET', '/files')).status, 401)
    await theirs.goto(`${server.url}/ui/files`)
    await theirs.getByRole('heading', { name: 'Sign in to svc' }).waitFor()

    const methods: string[] = []
    page.on('request', (request) => methods.push(request.method()))
    await row.focus()
    await page.keyboard.press('Enter')
    await row.getByRole('button', { name: 'Rotate' }).click()
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    assert.not.ok(methods.includes('PATCH'), 'expected that Enter on a row changes nothing')

    await row.getByRole('button', { name: 'Enable' }).click()
    await row.getByText('Enabled', { exact: true }).waitFor()
    await row.getByRole('button', { name: 'Rotate' }).click()
    await page.getByLabel('The former key is valid for').selectOption('0')
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click()
    const next = await tokenShown(page)
    await until(async () => (await openApi(server.url, token).send('GET', '/files')).status === 401)
    assert.is((await openApi(server.url, next).send('GET', '/files')).status, 200)
  },
)

story('a service key is issued with an API key, used and revoked', async ({ chromium, server }) => {
  const { page, errors } = await openDashboard(chromium, server, { path: '/keys' })
  await page.getByText('No service key has been created.').waitFor()
  await page.getByRole('button', { name: 'Create service key' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('partner')
  await dialog.getByLabel('event create').check()
  await dialog.getByLabel('Paths of event').fill('order:paid')
  await dialog.getByLabel('Expires').selectOption('In 1 day')
  const submit = dialog.getByRole('button', { name: 'Create service key' })
  await dialog.getByLabel('API key').fill('svc_wrong')
  await submit.click()
  await dialog.getByRole('alert').waitFor()
  await dialog.getByLabel('API key').fill(server.api.key)
  await submit.click()
  const partner = openApi(server.url, await tokenShown(page))
  const publish = (type: string) => partner.send('POST', '/events', { body: { type, data: {} } })
  assert.is((await publish('order:paid')).status, 201)
  assert.is((await publish('order:lost')).status, 403)
  assert.not.match(await page.content(), partner.key)

  const row = page.getByRole('row', { name: /partner/ })
  await row.getByText('Valid', { exact: true }).waitFor()
  await row.getByRole('button', { name: 'Revoke' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
  await row.getByText('Revoked', { exact: true }).waitFor()
  assert.is((await publish('order:paid')).status, 401)
  assert.is(errors.filter((text) => !text.includes('401')).length, 0)
})

story('the session of the dashboard is marked, and revoking it signs out', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, { path: '/keys' })
  await page.getByRole('button', { name: 'Create session' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('stream read').check()
  await dialog.getByLabel('API key').fill(server.api.key)
  await dialog.getByRole('button', { name: 'Create session' }).click()
  const token = await tokenShown(page)
  const own = page.getByRole('row').filter({ hasText: 'this dashboard' })
  await own.waitFor()
  assert.is(await own.count(), 1)

  const other = page.getByRole('row').filter({ hasText: 'stream:*' })
  await other.getByRole('button', { name: 'Revoke' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
  await other.waitFor({ state: 'detached' })
  assert.is((await openApi(server.url, token).send('GET', '/env')).status, 401)

  await own.getByRole('button', { name: 'Revoke' }).click()
  await page.getByText('Ends the session of this dashboard').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
  await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor()
})

story('all service keys are revoked together after a question', async ({ chromium, server }) => {
  const tokens: string[] = []
  for (const name of ['first', 'second']) {
    const permissions = { 'event:*': ['create'] }
    tokens.push((await server.api.post<{ token: string }>('/service-keys', { name, permissions })).token)
  }
  const { page, errors } = await openDashboard(chromium, server, { path: '/keys' })
  const list = page.getByRole('region', { name: 'Service keys, the newest first' })
  await list.getByText('Valid', { exact: true }).nth(1).waitFor()
  await page.getByRole('button', { name: 'Revoke all service keys' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('Revokes every service key').waitFor()
  await dialog.getByRole('button', { name: 'Revoke all service keys' }).click()
  await page.getByRole('status').getByText('Revoked 2 service keys.').waitFor()
  await list.getByText('Valid', { exact: true }).first().waitFor({ state: 'detached' })
  for (const token of tokens) assert.is((await openApi(server.url, token).send('GET', '/env')).status, 401)
  assert.equal(errors, [])
})

story(
  'a token is shown also if the reader leaves the page before the reply',
  async ({ chromium, server }) => {
    const { page } = await openDashboard(chromium, server, { path: '/keys' })
    const reply = Promise.withResolvers<void>()
    await page.route('**/v1/service-keys', async (route) => {
      if (route.request().method() === 'POST') await reply.promise
      await route.continue()
    })
    await page.getByRole('button', { name: 'Create service key' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('late')
    await dialog.getByLabel('event create').check()
    await dialog.getByLabel('API key').fill(server.api.key)
    await dialog.getByRole('button', { name: 'Create service key' }).click()
    await dialog.getByRole('button', { name: 'Back' }).click()
    await page.getByRole('link', { name: 'Runs' }).click()
    await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor()
    reply.resolve()

    const shown = page.getByRole('dialog', { name: 'Service key late' })
    await page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })") // as over plain HTTP
    await shown.getByRole('button', { name: 'Copy the token' }).click()
    await shown.getByRole('status').getByText('Select the text instead.').waitFor()
    const late = openApi(server.url, await tokenShown(page))
    assert.is((await late.send('POST', '/events', { body: { type: 'order:paid', data: {} } })).status, 201)
  },
)

story('revoking all sessions signs the dashboard out', async ({ chromium, server }) => {
  const { token } = await server.api.post<{ token: string }>('/sessions', {
    permissions: { 'env:*': ['read'] },
  })
  const { page } = await openDashboard(chromium, server, { path: '/keys' })
  await page.getByRole('row').filter({ hasText: 'this dashboard' }).waitFor()
  await page.getByRole('button', { name: 'Revoke all sessions' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('you must sign in again').waitFor()
  assert.is((await openApi(server.url, token).send('GET', '/env')).status, 200)
  await dialog.getByRole('button', { name: 'Revoke all sessions' }).click()
  await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor()
  await until(async () => (await page.getByRole('dialog').count()) === 1)
  assert.is((await openApi(server.url, token).send('GET', '/env')).status, 401)
})

story(
  'the grid of permissions shows all of its columns, and none without a box',
  async ({ chromium, server }) => {
    const { page } = await openDashboard(chromium, server, { path: '/keys' })
    for (const label of ['Create service key', 'Create session']) {
      await page.getByRole('button', { name: label }).click()
      const grid = page.getByRole('dialog').getByRole('group', { name: 'Permissions' })
      await grid.getByRole('row').nth(1).waitFor()
      const beyond = await grid.evaluate((own) => own.scrollWidth - own.clientWidth)
      assert.ok(beyond <= 0, `${label}: expected all columns in view, got ${beyond} px beyond`)
      const empty = await grid.locator('thead th').evaluateAll((all) =>
        all.flatMap((head, index) => {
          const cells = head.closest('table')?.querySelectorAll(`tbody tr > :nth-child(${index + 1})`) ?? []
          return [...cells].every((cell) => cell.textContent === '' && !cell.querySelector('input'))
            ? [head.textContent]
            : []
        }),
      )
      assert.equal(empty, [])
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
    }
  },
)

story.run()
