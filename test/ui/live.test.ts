import { deploy, publish, type Run, runsOf } from '../support/build.ts'
import { openDashboard } from '../support/openDashboard.ts'
import { stories } from '../support/stories.ts'
import { until } from '../support/until.ts'

const story = stories('the live updates of the dashboard', {
  prepare: async (context) => {
    await deploy(context.server.api, 'shop', {
      'a.js': `
        import { fn } from 'svc'
        export const waits = fn({ 'on-event': 'wait' }, () => new Promise(() => {}))
      `,
    })
  },
})

story('a run that ends before the feed is open is shown as ended', async ({ server, chromium }) => {
  const { api } = server
  const { event_id } = await publish(api, 'wait', {})
  const { run_id } = await until(async () => (await runsOf(api, event_id))[0])
  const { page, go } = await openDashboard(chromium, server, { path: '/keys' })
  const isDue = Promise.withResolvers<void>()
  await page.route(/\/v1\/env\/subscribe/, async (route) => {
    await isDue.promise
    await route.continue()
  })
  await go(`/runs/${run_id}`)
  const heading = page.locator('.heading')
  await heading.getByText('Running', { exact: true }).waitFor()
  await page.getByRole('region', { name: 'Trace' }).getByRole('listitem').first().waitFor()
  await api.post(`/runs/${run_id}/cancel`)
  await until(async () => (await api.get<Run>(`/runs/${run_id}`)).status === 'cancelled')
  isDue.resolve()
  await heading.getByText('Cancelled', { exact: true }).waitFor()
})

story.run()
