import type { Page } from 'playwright-core'
import { newId } from '../../src/ids.ts'
import { call, deploy, publish, runsOf } from '../support/build.ts'
import { openDashboard, operatorTokenOf, signInAsOperator } from '../support/openDashboard.ts'
import { stories } from '../support/stories.ts'
import { until } from '../support/until.ts'

const FILES = {
  'a.js': `
    import { fn } from 'svc'
    export const hook = fn({ webhook: { service: 'pay', path: '/hook' } }, () => 'received')
    export const nightly = fn({ schedule: { cron: '0 3 1 1 *' } }, () => 1)
    export const talks = fn({ 'on-event': 'talk' }, async () => {
      console.log('one line')
      await new Promise(() => {})
    })
    export const echo = (text) => text
  `,
}

const story = stories('pages of the dashboard whose refresh fails', {
  prepare: async (context) => {
    await deploy(context.server.api, 'shop', FILES)
    await call(context.server.api, 'a/echo', 'hi')
  },
})

const MESSAGE = 'Not at present'

/** From now on, the requests to these paths are refused. */
const refuse = (page: Page, paths: RegExp): Promise<unknown> =>
  page.route(
    ({ pathname }) => paths.test(pathname),
    (route) =>
      route.fulfill({
        status: 400,
        json: { error: { code: 'validation_failed', message: MESSAGE, request_id: newId() } },
      }),
  )

/** After a sign-in, a page loads again what it shows. */
const signInAgain = async (page: Page, token: string): Promise<void> => {
  const dialog = page.getByRole('dialog', { name: 'Your session has ended' })
  await dialog.getByLabel(/^API key|^Operator token/).fill(token)
  await page.keyboard.press('Enter')
  await dialog.waitFor({ state: 'detached' })
}

/** Waits for at least as many errors: a page reads again when its feed is open, which may be before or after the first refusal. What the page had shown must be beside them. */
const keeps = async (page: Page, errors: number, shown: readonly ReturnType<Page['locator']>[]) => {
  await until(async () => (await page.getByRole('main').getByText(MESSAGE).count()) >= errors)
  for (const one of shown) await one.first().waitFor()
}

story('the overview keeps its counts', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, { path: '/' })
  const counts = page.getByRole('main').getByText('All runs')
  await counts.waitFor()
  await page.getByText('Live', { exact: true }).waitFor()
  await refuse(page, /\/v1\/runs/)
  await call(server.api, 'a/echo', 'again')
  await keeps(page, 2, [counts, page.getByRole('figure')])
})

story('the page of a run keeps the output, the input and the trace', async ({ chromium, server }) => {
  const { event_id } = await publish(server.api, 'talk', {})
  const { run_id } = await until(async () => (await runsOf(server.api, event_id))[0])
  const { page } = await openDashboard(chromium, server, { path: `/runs/${run_id}` })
  const shown = [
    page.getByRole('log').getByText('one line'),
    page.getByRole('region', { name: `input of ${run_id}` }),
    page.getByRole('region', { name: 'Trace' }).getByRole('listitem'),
    page.getByRole('heading', { name: 'Run a/talks' }),
  ]
  for (const one of shown) await one.first().waitFor()
  await page.getByText('Live', { exact: true }).waitFor()
  await refuse(page, /\/v1\/runs\/./)
  await server.api.remove('/sessions')
  await signInAgain(page, server.api.key)
  await keeps(page, 5, shown)
})

story('the functions keep their project, schedules, webhooks and figures', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, { path: '/functions?project=shop' })
  const project = page.getByRole('combobox', { name: /^Project/ })
  const shown = [
    project,
    page.getByRole('table', { name: 'Schedules' }),
    page.getByRole('table', { name: 'Webhooks' }).getByText('None'),
    page.getByRole('table', { name: 'Functions' }).getByText(/runs?, none failed/),
  ]
  for (const one of shown) await one.first().waitFor()
  await page.getByText('Live', { exact: true }).waitFor()
  await refuse(page, /\/v1\/(?:runs|projects$|projects\/shop\/(?:schedules|webhooks)$)/)
  await server.api.remove('/sessions')
  await signInAgain(page, server.api.key)
  const figures = await page.getByRole('table', { name: 'Functions' }).getByRole('row').count()
  await keeps(page, 3 + 1 + figures - 1, shown)
})

story('a comparison of builds is kept', async ({ chromium, server }) => {
  const { data } = await server.api.page<{ build_id: string }>('/projects/shop/builds')
  const path = `/builds?project=shop&build=${data[0]?.build_id}`
  const { page } = await openDashboard(chromium, server, { path })
  await page.getByRole('table').waitFor() // with it, the comparison begins again
  const shown = page.getByText('This build is deployed.')
  await shown.waitFor()
  await refuse(page, /\/changes$/)
  await server.api.remove('/sessions')
  await signInAgain(page, server.api.key)
  await keeps(page, 1, [shown])
})

story('a resource over time is kept', async ({ chromium, server }) => {
  const { data } = await server.api.page<{ project_id: string }>('/projects')
  const path = `/operator?section=audit&of=${data[0]?.project_id}`
  const dashboard = await openDashboard(chromium, server, { path })
  const { page } = dashboard
  await signInAsOperator(dashboard)
  const shown = page.getByRole('slider', { name: /^Fact/ })
  await shown.waitFor()
  await page.getByRole('table').waitFor()
  await refuse(page, /\/audit\/replay$/)
  const ofList = /\/operator\/audit(?:\?|$)/
  await page.route(ofList, (route) =>
    route.fulfill({
      status: 401,
      json: { error: { code: 'unauthorized', message: 'Ended', request_id: newId() } },
    }),
  )
  await page.evaluate(`dispatchEvent(new Event('focus'))`) // the list is loaded again
  await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor()
  await page.unroute(ofList)
  await signInAgain(page, operatorTokenOf(server))
  await keeps(page, 1, [shown])
})

story.run()
