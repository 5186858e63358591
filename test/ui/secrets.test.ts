import * as assert from 'uvu/assert'
import { lackText } from '../../src/access/permissions.ts'
import { call, deploy } from '../support/build.ts'
import { openDashboard } from '../support/openDashboard.ts'
import { stories } from '../support/stories.ts'

const VALUE = 'sk-live-a1b2c3'

const story = stories('the secrets in the dashboard', {
  prepare: async (context) => {
    await deploy(context.server.api, 'shop', {
      'pay.js': `import { context } from 'svc'\nexport const length = async () => (await context('PAYMENT_KEY')).length`,
    })
  },
})

story(
  'a secret is created after a wrong key, replaced and deleted, and its value is shown nowhere',
  async ({ chromium, server }) => {
    const { api } = server
    const { page, errors, go } = await openDashboard(chromium, server, { path: '/secrets' })
    await page.getByText('This project has no secret.').waitFor()
    const dialog = page.getByRole('dialog')
    const [key, value] = [dialog.getByLabel('Key'), dialog.getByLabel('Value')]

    await page.getByRole('button', { name: 'Create secret' }).click()
    await key.fill('1 payment')
    await value.fill(VALUE)
    assert.equal(
      [await value.getAttribute('type'), await value.getAttribute('autocomplete')],
      ['password', 'off'],
    )
    await dialog.getByRole('button', { name: 'Create secret' }).click()
    await dialog.getByRole('alert').filter({ hasText: 'key' }).waitFor()
    await key.fill('PAYMENT_KEY')
    await dialog.getByLabel('Description').fill('From the bank')
    await dialog.getByRole('button', { name: 'Create secret' }).click()
    await page.getByText('Created PAYMENT_KEY.').waitFor()
    const row = page.getByRole('row').filter({ hasText: 'PAYMENT_KEY' })
    await row.getByText('From the bank').waitFor()
    assert.is((await call(api, 'pay/length')).result, VALUE.length)

    await page.getByRole('button', { name: 'Create secret' }).click()
    assert.is(await value.inputValue(), '')
    await key.fill('PAYMENT_KEY')
    await value.fill('other')
    await dialog.getByRole('button', { name: 'Create secret' }).click()
    await dialog.getByRole('alert').filter({ hasText: 'PAYMENT_KEY' }).waitFor()
    await dialog.getByRole('button', { name: 'Back' }).click()

    await row.getByRole('button', { name: 'Replace' }).click()
    assert.is(await value.inputValue(), '')
    await value.fill(VALUE + VALUE)
    await dialog.getByRole('button', { name: 'Replace' }).click()
    await page.getByText('Replaced PAYMENT_KEY.').waitFor()
    assert.is((await call(api, 'pay/length')).result, VALUE.length * 2)
    await go('/secrets?project=shop')
    await row.getByText('From the bank').waitFor()
    assert.not.match(await page.content(), VALUE)

    await row.getByRole('button', { name: 'Delete' }).click()
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await page.getByText('This project has no secret.').waitFor()
    assert.is((await call(api, 'pay/length')).status, 'failed')
    assert.equal(
      errors.filter((text) => !/status of (?:400|409)/.test(text)),
      [],
    )
  },
)

story('a value of several lines is not pasted without its line breaks', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, { path: '/secrets?project=shop' })
  await page.getByRole('button', { name: 'Create secret' }).click()
  const value = page.getByLabel('Value')
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.evaluate("navigator.clipboard.writeText('first\\nsecond')")
  await value.press('Control+V')
  await page.getByText('Value: expected one line.').waitFor()
  assert.is(await value.inputValue(), '')
})

story('a key that only reads is shown which permission it lacks', async ({ chromium, server }) => {
  await server.api.post('/projects/shop/context', { key: 'OTHER', value: VALUE })
  const permissions = { 'context:shop': ['read'] }
  const { token } = await server.api.post<{ token: string }>('/sessions', { permissions })
  const { page } = await openDashboard(chromium, server, { token, path: '/secrets?project=shop' })
  const replace = page.getByRole('row').filter({ hasText: 'OTHER' }).getByRole('button', { name: 'Replace' })
  await replace.waitFor()
  assert.ok(await replace.isDisabled())
  await page.getByText(lackText('context', 'create', 'shop')).waitFor()
})

story('a key without the permission to read secrets is shown it', async ({ chromium, server }) => {
  const permissions = { 'build:shop': ['read'] }
  const { token } = await server.api.post<{ token: string }>('/sessions', { permissions })
  const { page } = await openDashboard(chromium, server, { token, path: '/secrets?project=shop' })
  await page.getByText('context:* read').waitFor()
})

story.run()
