import type { Page } from 'playwright-core'
import * as assert from 'uvu/assert'
import { publish } from '../support/build.ts'
import { openApi } from '../support/http.ts'
import { openDashboard, operatorTokenOf } from '../support/openDashboard.ts'
import { stories } from '../support/stories.ts'

const story = stories('sessions of the dashboard that change meanwhile')

const envName = (page: Page, name: string) => page.getByRole('banner').getByText(name, { exact: true })

story('a link to another environment replaces what the page shows and follows', async (context) => {
  const { server, chromium } = context
  const operator = openApi(server.url, operatorTokenOf(server))
  const post = <T>(path: string, body: object) => operator.post<T>(`${server.url}/operator${path}`, body)
  const { env_id } = await post<{ env_id: string }>('/orgs/local/envs', { name: 'staging' })
  const { token } = await post<{ token: string }>(`/envs/${env_id}/api-keys`, { name: 'all' })
  const staging = openApi(server.url, token)
  await publish(server.api, 'only:local')
  const { page } = await openDashboard(chromium, server, { path: '/events' })
  const { ticket } = await staging.post<{ ticket: string }>('/sign-in/tickets')
  await page.goto('about:blank')
  await page.goto(`${server.url}/ui/events#ticket=${ticket}`)
  await page.getByRole('link', { name: 'only:local' }).waitFor({ state: 'attached' })
  await page.getByRole('button', { name: 'Use the link' }).click()
  await envName(page, 'staging').waitFor()
  await page.getByText('No event has been published yet.').waitFor()
  await publish(staging, 'only:staging')
  await page.getByRole('link', { name: 'only:staging' }).waitFor()
})

const openPublish = async (page: Page, type: string) => {
  await page.getByRole('button', { name: 'Publish' }).click()
  const dialog = page.getByRole('dialog', { name: 'Publish' })
  await dialog.getByLabel('Event type').fill(type)
  return { dialog, send: dialog.getByRole('button', { name: 'Publish' }) }
}

story('a form that is sent while the service is lost is sent once by a repetition', async (context) => {
  const { server, chromium } = context
  const { page } = await openDashboard(chromium, server, { path: '/events' })
  const { dialog, send } = await openPublish(page, 'sent:once')
  let isLost = true
  await page.route('**/v1/events', async (route) => {
    if (!isLost || route.request().method() !== 'POST') return route.continue()
    const answer = await route.fetch() // the service has received it, and its reply is lost
    await answer.dispose()
    await route.abort('connectionreset')
  })
  await send.click()
  await dialog.getByRole('alert').getByText('The service does not answer.').waitFor()
  isLost = false
  await send.click()
  await dialog.waitFor({ state: 'detached' })
  const { pagination } = await server.api.page('/events?event_type=sent:once')
  assert.is(pagination.total, 1)
})

story.run()
