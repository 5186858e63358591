import * as assert from 'uvu/assert'
import { lackText } from '../../src/access/permissions.ts'
import { type Build, call, deploy, type Files } from '../support/build.ts'
import { openDashboard } from '../support/openDashboard.ts'
import { stories } from '../support/stories.ts'
import { zipBuild } from '../support/zipBuild.ts'

const filesOf = (version: number, ...more: readonly string[]): Files => ({
  'orders.js': [
    `import { fn } from 'svc'`,
    `export const version = () => ${version}`,
    `export const paid = fn({ 'on-event': 'order:paid:${version}' }, () => 1)`,
    ...more,
  ].join('\n'),
})
const hook = `export const hook = fn({ webhook: { service: 'pay', path: '/hook' } }, () => 1)`

const story = stories('the builds in the dashboard')

const zipOf = async (files: Files) => ({
  name: 'build.zip',
  mimeType: 'application/zip',
  buffer: (await zipBuild(files)).bytes,
})

story(
  'a build is uploaded, compared, deployed after a look at its changes, and rolled back',
  async ({ chromium, server }) => {
    const { api } = server
    const first = await deploy(api, 'shop', filesOf(1, 'export const gone = () => 1'))
    const { page, errors } = await openDashboard(chromium, server, { path: '/builds' })
    await page.waitForURL(/project=shop/)
    const dialog = page.getByRole('dialog')

    await page.getByRole('button', { name: 'Upload' }).click()
    await page.getByLabel('Zip').setInputFiles(await zipOf(filesOf(2, 'export const more = () => 1')))
    await dialog.getByRole('button', { name: 'Upload' }).click()
    await page.getByText('is uploaded with 3 functions').waitFor()
    assert.is((await api.get<Build>('/projects/shop/builds/deployed')).build_id, first.build_id)

    const rows = page.getByRole('row').filter({ has: page.getByRole('link') })
    await rows.nth(1).getByText('Deployed', { exact: true }).waitFor()
    await rows.nth(0).getByRole('link').click()
    const list = page.getByRole('list', { name: 'Changes of functions' })
    await list.getByText('orders/more').waitFor()

    await rows.nth(0).getByRole('button', { name: 'Deploy' }).click()
    await dialog.getByRole('listitem').nth(2).waitFor()
    assert.equal(await dialog.getByRole('listitem').allInnerTexts(), [
      'Added orders/more',
      'Changed orders/paid',
      'Removed orders/gone',
    ])
    await dialog.getByRole('button', { name: 'Back' }).click()
    assert.is((await call(api, 'orders/version')).result, 1)
    await rows.nth(0).getByRole('button', { name: 'Deploy' }).click()
    await dialog.getByRole('button', { name: 'Deploy' }).click()
    await page.getByText('is deployed. 1 added, 1 changed, 1 removed.').waitFor()
    assert.is((await call(api, 'orders/version')).result, 2)

    await rows.nth(0).getByText('Deployed', { exact: true }).waitFor()
    await rows.nth(1).getByRole('button', { name: 'Roll back' }).click()
    await dialog.getByText('Added orders/gone').waitFor()
    await dialog.getByRole('button', { name: 'Roll back' }).click()
    await rows.nth(1).getByText('Deployed', { exact: true }).waitFor()
    assert.is((await call(api, 'orders/version')).result, 1)

    assert.ok(await rows.nth(1).getByRole('button', { name: 'Delete' }).isDisabled())
    await rows.nth(0).getByRole('button', { name: 'Delete' }).click()
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await page.getByText(/^Deleted build/).waitFor()
    await list.waitFor({ state: 'detached' })
    assert.equal((await api.page('/projects/shop/builds')).data.length, 1)
    assert.equal(errors, [])
  },
)

story(
  'a refusal is shown in the dialog: an upload without a zip, a webhook of another project',
  async (context) => {
    const { chromium, server } = context
    await deploy(server.api, 'pays', filesOf(1, hook))
    await deploy(server.api, 'later', filesOf(1))
    const { page } = await openDashboard(chromium, server, { path: '/builds?project=later' })
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Upload' }).click()
    const zip = page.getByLabel('Zip')
    await zip.setInputFiles({ name: 'a.zip', mimeType: 'application/zip', buffer: Buffer.from('text') })
    await dialog.getByRole('button', { name: 'Upload' }).click()
    await dialog.getByRole('alert').waitFor()
    await zip.setInputFiles(await zipOf(filesOf(1, hook)))
    await dialog.getByRole('button', { name: 'Upload' }).click()
    await page.getByText('is uploaded with 3 functions').waitFor()
    await page.getByRole('button', { name: 'Deploy' }).click()
    await dialog.getByText('Added orders/hook').waitFor()
    await dialog.getByRole('button', { name: 'Deploy' }).click()
    await dialog.getByRole('alert').filter({ hasText: 'project "pays" serves it' }).waitFor()
  },
)

story('a key that only reads is shown which permission it lacks', async ({ chromium, server }) => {
  await deploy(server.api, 'read', filesOf(1))
  await deploy(server.api, 'read', filesOf(2))
  const permissions = { 'build:read': ['read'] }
  const { token } = await server.api.post<{ token: string }>('/sessions', { permissions })
  const { page } = await openDashboard(chromium, server, { token, path: '/builds' })
  await page.getByLabel('Project').fill('read')
  const rollback = page.getByRole('button', { name: 'Roll back' })
  await rollback.waitFor()
  assert.ok(await rollback.isDisabled())
  assert.is(await rollback.getAttribute('title'), lackText('build', 'execute', 'read'))
  await page.getByText(lackText('build', 'create', 'read')).waitFor()
})

story('a deployment from elsewhere appears without a reload', async ({ chromium, server }) => {
  const { api } = server
  await deploy(api, 'elsewhere', filesOf(1))
  const { page, go } = await openDashboard(chromium, server, { path: '/builds?project=elsewhere' })
  const rows = page.getByRole('row').filter({ has: page.getByRole('link') })
  await rows.getByText('Deployed', { exact: true }).waitFor()
  await deploy(api, 'elsewhere', filesOf(2))
  await rows.nth(1).waitFor()
  await rows.nth(0).getByText('Deployed', { exact: true }).waitFor()

  await go('/functions?project=elsewhere')
  await page.getByRole('link', { name: 'order:paid:2' }).waitFor()
  await deploy(api, 'elsewhere', filesOf(3, hook.replace('/hook', '/elsewhere')))
  await page.getByRole('link', { name: 'order:paid:3' }).waitFor()
  await page.getByRole('region', { name: 'Webhooks' }).last().waitFor()
})

story.run()
