import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import { deploy } from '../support/build.ts'
import { openDashboard } from '../support/openDashboard.ts'
import { stories } from '../support/stories.ts'

const story = stories('what is deleted while its page of the dashboard is open')

const WAITS = { 'a.js': `export const waits = () => new Promise((done) => setTimeout(done, 60_000))` }

story('a project is gone from its pages after an action that needs it', async ({ chromium, server }) => {
  const { api } = server
  for (const [path, button, fill] of [
    ['secrets', 'Create secret', { Key: 'A', Value: 'b' }],
    ['functions', 'Call', {}],
  ] as const) {
    await deploy(api, path, WAITS)
    const { page } = await openDashboard(chromium, server, { path: `/${path}?project=${path}` })
    await page.getByRole('button', { name: button }).click()
    const dialog = page.getByRole('dialog', { name: button })
    for (const [label, text] of Object.entries(fill)) await dialog.getByLabel(label).fill(text)
    await api.remove(`/projects/${path}`)
    await dialog.getByRole('button', { name: button }).click()
    await page.getByText(`There is no project ${path} in this environment.`).waitFor()
    assert.is(await page.getByRole('button', { name: button }).count(), 0)
    assert.is(await page.getByRole('table').count(), 0)
  }
})

story('the builds of a deleted project are not shown', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, { path: '/builds?project=nowhere' })
  await page.getByText('There is no project nowhere in this environment.').waitFor()
  assert.is(await page.getByRole('button', { name: 'Upload' }).count(), 0)
})

story('a deleted file leaves its list with the action that did not find it', async ({ chromium, server }) => {
  const { status, text } = await server.api.send('PUT', '/files/upload/gone.txt', { body: Buffer.from('a') })
  assert.is(status, 200, text)
  const { page } = await openDashboard(chromium, server, { path: '/files' })
  const row = page.getByRole('row', { name: /^gone\.txt / })
  await row.getByRole('button', { name: 'Delete' }).click()
  const { file_id } = (JSON.parse(text) as { data: { file_id: string } }).data
  await server.api.remove(`/files/${file_id}`)
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await row.waitFor({ state: 'detached' })
})

story('a run that disappears while it is shown is gone with its actions', async ({ chromium, server }) => {
  const { api } = server
  await deploy(api, 'shop', WAITS)
  await api.post('/events', { event_type: 'svc:call', event_data: { fn: 'a/waits', args: [] } })
  const { page } = await openDashboard(chromium, server)
  await page.getByRole('link', { name: 'a/waits' }).click()
  await page.getByRole('button', { name: 'Replay', exact: true }).waitFor()
  await page.route(/\/v1\/runs\/[0-9a-f-]{36}/, async (route) => {
    const error = { code: 'not_found', message: 'No such run', request_id: newId() }
    await route.fulfill({ status: 404, json: { error } })
  })
  await page.getByText('There is no run').waitFor()
  assert.is(await page.getByRole('button', { name: 'Replay', exact: true }).count(), 0)
  assert.is(await page.getByRole('heading', { name: 'Logs' }).count(), 0)
})

story.run()
