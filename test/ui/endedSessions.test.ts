import type { Page } from 'playwright-core'
import * as assert from 'uvu/assert'
import { openVisitor } from '../support/dashboard.ts'
import { openApi } from '../support/http.ts'
import { openDashboard, operatorTokenOf, signInAsOperator } from '../support/openDashboard.ts'
import { stories } from '../support/stories.ts'
import { until } from '../support/until.ts'

const story = stories('a session of the dashboard that ends while a page is open', {
  prepare: async (context) => {
    await context.server.api.post('/projects', { name: 'shop' })
  },
})

const again = (page: Page) => page.getByRole('dialog', { name: 'Your session has ended' })

const signInAgain = async (page: Page, token: string): Promise<void> => {
  await again(page)
    .getByLabel(/^API key|^Operator token/)
    .fill(token)
  await page.keyboard.press('Enter')
  await again(page).waitFor({ state: 'detached' })
}

story('what was written in a dialog is kept, and the page below is inert', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, { path: '/events' })
  await page.getByText('Live', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Publish' }).click()
  const dialog = page.getByRole('dialog', { name: 'Publish' })
  await dialog.getByLabel('Data as JSON').fill('{"written": "before"}')
  await dialog.getByLabel('Event type').fill('kept:text')
  let requests = 0
  page.on('request', (request) => void (request.url().includes('/v1/') && requests++))
  await server.api.remove('/sessions')
  await again(page).getByText('What you have written is kept.').waitFor()
  const before = requests
  await page.keyboard.press('Escape')
  for (let times = 0; times < 3; times++) await page.keyboard.press('Escape')
  await again(page).waitFor()
  for (let times = 0; times < 8; times++) {
    await page.keyboard.press('Tab')
    const isBelow = `document.activeElement.closest('main, nav, header, dialog:not(:has([type=password]))') !== null`
    assert.is(await page.evaluate(isBelow), false)
  }
  assert.is(requests, before, 'a page whose session has ended asks for nothing')
  assert.match(await page.locator('body').ariaSnapshot(), 'Your session has ended')
  await signInAgain(page, server.api.key)
  assert.is(await dialog.getByLabel('Event type').inputValue(), 'kept:text')
  assert.ok(await dialog.getByLabel('Event type').evaluate((own) => own.matches(':focus')))
  await page.keyboard.press('Enter')
  await page.getByRole('link', { name: 'kept:text' }).waitFor()
  await page.getByText('Live', { exact: true }).waitFor()
  const { data } = await server.api.page<{ event_data: unknown }>('/events?event_type=kept:text')
  assert.equal(
    data.map(({ event_data }) => event_data),
    [{ written: 'before' }],
  )
})

story('an action that is refused is repeated after the sign-in', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, { path: '/secrets?project=shop' })
  await page.getByRole('button', { name: 'Create secret' }).click()
  const dialog = page.getByRole('dialog', { name: 'Create secret' })
  await dialog.getByLabel('Key').fill('PAYMENT_KEY')
  await dialog.getByLabel('Value').fill('hidden')
  await page.route('**/v1/env/subscribe*', (route) => route.abort()) // the request of the form is the first that is refused
  await server.api.remove('/sessions')
  await dialog.getByRole('button', { name: 'Create secret' }).press('Enter')
  await again(page).waitFor()
  await signInAgain(page, server.api.key)
  await dialog.getByRole('alert').getByText('nothing was done').waitFor()
  const send = dialog.getByRole('button', { name: 'Create secret' })
  await until(() => send.evaluate((own) => own.matches(':focus')))
  await page.keyboard.press('Enter')
  await page.getByText('Created PAYMENT_KEY.').waitFor()
})

story('another environment replaces the page', async ({ chromium, server }) => {
  const operator = openApi(server.url, operatorTokenOf(server))
  const post = <T>(path: string, body: object) => operator.post<T>(`${server.url}/operator${path}`, body)
  const { env_id } = await post<{ env_id: string }>('/orgs/local/envs', { name: 'staging' })
  const { token } = await post<{ token: string }>(`/envs/${env_id}/api-keys`, { name: 'all' })
  const { page } = await openDashboard(chromium, server, { path: '/events' })
  await page.getByRole('button', { name: 'Publish' }).click()
  await page.getByRole('dialog').getByLabel('Event type').fill('not:here')
  await server.api.remove('/sessions')
  await signInAgain(page, token)
  await page.getByRole('banner').getByText('staging', { exact: true }).waitFor()
  assert.is(await page.getByRole('dialog').count(), 0)
})

story('a sign-in in another tab continues this one', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, { path: '/events' })
  await page.getByRole('button', { name: 'Publish' }).click()
  const type = page.getByRole('dialog', { name: 'Publish' }).getByLabel('Event type')
  await type.fill('other:tab')
  const second = await page.context().newPage()
  await second.goto(`${server.url}/ui/domains`)
  await second.getByRole('heading', { name: 'Domains', level: 1 }).waitFor()
  await server.api.remove('/sessions')
  await again(page).waitFor()
  await second.getByRole('link', { name: 'Secrets' }).dispatchEvent('click') // its page may have noticed, and be inert
  await signInAgain(second, server.api.key)
  await again(page).waitFor({ state: 'detached' })
  assert.is(await type.inputValue(), 'other:tab')
})

story('leaving shows the sign-in instead of the page', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, { path: '/events' })
  await page.getByText('Live', { exact: true }).waitFor()
  await server.api.remove('/sessions')
  await again(page).getByRole('button', { name: 'Leave the page and sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in to svc' }).waitFor()
  assert.is(await page.getByRole('navigation').count(), 0)
})

story('the operator signs in again, or continues without it', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, { path: '/operator?show=organizations' })
  await signInAsOperator({ page, server })
  const endIt = async () => {
    const [cookie] = await page.context().cookies(`${server.url}/operator/orgs`)
    await openVisitor(server.url, `${cookie?.name}=${cookie?.value}`).send('DELETE', '/operator/sign-in')
  }
  const dialog = page.getByRole('dialog', { name: 'Create organization' })
  await page.getByRole('button', { name: 'Create organization' }).click()
  await dialog.getByLabel('Slug').fill('kept-slug')
  await endIt()
  await dialog.getByRole('button', { name: 'Create organization' }).click()
  await signInAgain(page, operatorTokenOf(server))
  await dialog.getByRole('button', { name: 'Create organization' }).click()
  await page.getByRole('cell', { name: 'kept-slug' }).first().waitFor()

  await endIt()
  await page.getByRole('link', { name: 'Node' }).click()
  await again(page).getByRole('button', { name: 'Continue without the operator' }).click()
  await page.getByLabel('Operator token').waitFor()
  await page.getByRole('link', { name: 'Runs', exact: true }).click()
  await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor()
})

story('a wrong API key in a field of the page ends no session', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, { path: '/keys' })
  await page.getByRole('button', { name: 'Create session' }).click()
  const dialog = page.getByRole('dialog', { name: 'Create session' })
  await dialog.getByRole('checkbox').first().check()
  await dialog.getByLabel('API key').fill('wrong')
  await dialog.getByRole('button', { name: 'Create session' }).click()
  await dialog.getByRole('alert').getByText('Expected a valid credential').waitFor()
  assert.is(await again(page).count(), 0)
})

story.run()
