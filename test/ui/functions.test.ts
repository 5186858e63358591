import * as assert from 'uvu/assert'
import { lackText } from '../../src/access/permissions.ts'
import type { Schedule, Webhook } from '../../src/client/api.ts'
import { call, deploy, type Run } from '../support/build.ts'
import { openApi } from '../support/http.ts'
import { openDashboard, operatorTokenOf } from '../support/openDashboard.ts'
import { stories } from '../support/stories.ts'
import { until } from '../support/until.ts'

const FILES = {
  'orders.js': `
    import { fn } from 'svc'
    export const total = (...prices) => ({ total: prices.reduce((sum, price) => sum + price, 0) })
    export const fails = () => { throw new Error('No such order') }
    export const paid = fn({ 'on-event': 'order:paid' }, ({ data }) => data)
    export const hook = fn({ webhook: { service: 'pay', path: '/hook' } }, () => 'received')
    export const nightly = fn({ schedule: { cron: '0 3 1 1 *', timezone: 'Europe/Berlin' } }, ({ data }) => data)
  `,
}

const story = stories('the functions in the dashboard', {
  prepare: async (context) => {
    await deploy(context.server.api, 'shop', FILES)
  },
})

story(
  'a function is called with arguments, after wrong ones, and its result and figures appear',
  async ({ chromium, server }) => {
    const { page, errors } = await openDashboard(chromium, server, { path: '/functions' })
    await page.waitForURL(/project=shop/)
    const list = page.getByRole('table', { name: 'Functions' })
    const total = list.getByRole('row').filter({ hasText: 'orders/total' })
    await total.getByText('No runs').waitFor()
    await total.getByRole('button', { name: 'Call' }).click()
    const dialog = page.getByRole('dialog')
    const args = dialog.getByLabel('Arguments as a JSON list')
    const call = dialog.getByRole('button', { name: 'Call' })
    for (const [wrong, message] of [
      ['[1, ', 'expected JSON'],
      ['{ "price": 1 }', 'expected a list such as'],
    ] as const) {
      await args.fill(wrong)
      await call.click()
      await dialog.getByRole('alert').filter({ hasText: message }).waitFor()
    }
    await args.fill('[5, 7]')
    await call.click()
    await page
      .getByRole('region', { name: 'result of orders/total' })
      .filter({ hasText: '"total": 12' })
      .waitFor()
    await total.getByText('1 run, none failed, p95').waitFor()

    const fails = list.getByRole('row').filter({ hasText: 'orders/fails' })
    await fails.getByRole('button', { name: 'Call' }).click()
    await call.click()
    await page.getByText('The run failed.').waitFor()
    await page
      .getByRole('region', { name: /^Error/ })
      .getByText('No such order', { exact: true })
      .waitFor()
    await fails.getByRole('link', { name: '1 failed' }).click()
    await page.getByRole('heading', { name: 'Runs' }).waitFor()
    await page
      .getByRole('row')
      .filter({ hasText: 'Failed' })
      .getByRole('link', { name: 'orders/fails' })
      .click()
    await page.getByRole('heading', { name: 'Run orders/fails' }).waitFor()
    assert.equal(errors, [])
  },
)

story('a handler links to its events, and is called with one', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, { path: '/functions?project=shop' })
  const paid = page
    .getByRole('table', { name: 'Functions' })
    .getByRole('row')
    .filter({ hasText: 'orders/paid' })
  const link = paid.getByRole('link', { name: 'order:paid' })
  assert.match((await link.getAttribute('href')) ?? '', 'event_type=order%3Apaid')
  await paid.getByRole('button', { name: 'Call' }).click()
  const args = page.getByLabel('Arguments as a JSON list')
  assert.equal(JSON.parse(await args.inputValue()), [{ type: 'order:paid', data: {} }])
})

story(
  'a webhook shows its URL, a command that calls it, and its deliveries',
  async ({ chromium, server }) => {
    const { api } = server
    const [hook] = (await api.page<Webhook>('/projects/shop/webhooks')).data
    const { page } = await openDashboard(chromium, server, { path: '/functions?project=shop' })
    const row = page
      .getByRole('table', { name: 'Webhooks' })
      .getByRole('row')
      .filter({ hasText: 'orders/hook' })
    await row.getByText(hook?.url ?? 'no URL').waitFor()
    await row.getByText('None', { exact: true }).waitFor()
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await row.getByRole('button', { name: 'Copy as curl' }).click()
    await page.getByText('Copied').waitFor()
    assert.is(
      await page.evaluate('navigator.clipboard.readText()'),
      `curl -X POST '${hook?.url}' -H 'Content-Type: application/json' -d '{}'`,
    )
    await page.getByText('Live', { exact: true }).waitFor()
    let asked = 0
    page.on('request', (request) => (asked += /\/v1\/runs\?.*fn=orders/.test(request.url()) ? 1 : 0))
    const others = page.waitForResponse(/\/schedules/)
    await call(api, 'orders/total', 1)
    await others
    assert.is(asked, 0, 'a run of another function reloads no deliveries')
    await fetch(hook?.url ?? '', { method: 'POST' })
    await row.getByText('Succeeded', { exact: true }).waitFor()
    await row.getByRole('link').click()
    await page.getByRole('heading', { name: 'Run orders/hook' }).waitFor()
  },
)

story(
  'a schedule is paused, is paused after a reload, is resumed, and is run now as far as its run',
  async ({ chromium, server }) => {
    const { api } = server
    const schedule = async () => (await api.page<Schedule>('/projects/shop/schedules')).data[0]
    const { page, errors } = await openDashboard(chromium, server, { path: '/functions?project=shop' })
    const row = page.getByRole('table', { name: 'Schedules' }).getByRole('row').filter({ hasText: 'nightly' })
    const dialog = page.getByRole('dialog')
    await row.getByText('Active', { exact: true }).waitFor()
    assert.is(await row.locator('time').getAttribute('datetime'), (await schedule())?.next_time)
    await row.getByRole('button', { name: 'Pause' }).click()
    assert.is((await schedule())?.paused, false)
    await dialog.getByRole('button', { name: 'Pause' }).click()
    await row.getByText('Paused', { exact: true }).waitFor()
    await page.reload()
    await row.getByText('Paused', { exact: true }).waitFor()
    assert.is((await schedule())?.paused, true)

    await row.getByRole('button', { name: 'Resume' }).click()
    await row.getByText('Active', { exact: true }).waitFor()
    await row.getByRole('button', { name: 'Run now' }).click()
    await dialog.getByRole('button', { name: 'Run now' }).click()
    await page.getByRole('status').getByRole('link', { name: 'Show its run' }).click()
    await page.getByRole('heading', { name: 'Run orders/nightly' }).waitFor()
    await page.getByText('Succeeded', { exact: true }).waitFor()
    const runs = await until(async () => (await api.page<Run>('/runs?fn=orders/nightly')).data)
    assert.equal(
      runs.map(({ run_type, status }) => [run_type, status]),
      [['schedule', 'succeeded']],
    )
    assert.equal(errors, [])
  },
)

story('a key that only reads is shown which permissions it lacks', async ({ chromium, server }) => {
  const permissions = { 'build:shop': ['read'] }
  const { token } = await server.api.post<{ token: string }>('/sessions', { permissions })
  const { page } = await openDashboard(chromium, server, { token, path: '/functions?project=shop' })
  const button = (table: string, row: string, name: string) =>
    page
      .getByRole('table', { name: table })
      .getByRole('row')
      .filter({ hasText: row })
      .getByRole('button', { name })
  for (const [refused, reason] of [
    [button('Functions', 'orders/total', 'Call'), lackText('event', 'create', 'svc:call')],
    [button('Schedules', 'orders/nightly', 'Pause'), lackText('build', 'execute', 'shop')],
  ] as const) {
    assert.is(await refused.getAttribute('title'), reason)
    assert.ok(await refused.isDisabled())
  }
})

story('a page of many requests does not end in the rate of a plan', async ({ chromium, server }) => {
  const operator = openApi(server.url, operatorTokenOf(server))
  const post = <T>(path: string, body: object) => operator.post<T>(`${server.url}/operator${path}`, body)
  await post('/orgs', { slug: 'small', plan: 'free' })
  const { env_id } = await post<{ env_id: string }>('/orgs/small/envs', { name: 'dev' })
  const { token } = await post<{ token: string }>(`/envs/${env_id}/api-keys`, { name: 'all' })
  const functions = Array.from({ length: 20 }, (_, n) => `export const f${n} = () => ${n}`)
  await until(() => openApi(server.url, token).page('/projects'))
  await deploy(openApi(server.url, token), 'many', { 'a.js': functions.join('\n') })
  const { page } = await openDashboard(chromium, server, { token, path: '/functions?project=many' })
  const cells = page.getByRole('table', { name: 'Functions' }).locator('td[data-name="Last 24 hours"]')
  const seen = async (): Promise<boolean> => {
    const texts = await cells.allInnerTexts()
    const refused = texts.find((text) => text.includes('requests per second'))
    if (refused !== undefined) assert.unreachable(refused)
    return texts.filter((text) => text === 'No runs').length === functions.length
  }
  await until(seen, { timeoutMs: 30_000 })
})

story.run()
