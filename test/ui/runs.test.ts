import { readFileSync } from 'node:fs'
import type { Locator } from 'playwright-core'
import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import { call, deploy, publish, type Run } from '../support/build.ts'
import { goByKey, openDashboard } from '../support/openDashboard.ts'
import { stories } from '../support/stories.ts'
import { until } from '../support/until.ts'

const FILES = {
  'orders.ts': `
    import { fn } from 'svc'
    export const total = (order: { lines: { price: number }[] }) => {
      console.log('adding up')
      return { total: order.lines.reduce((sum, { price }) => sum + price, 0) }
    }
    export const lost = fn({ 'on-event': 'order:lost', retry: { attempts: 2, delay: 3_600_000 } }, () => {
      throw new Error('No such order')
    })
    export const large = (bytes: number) => ({ text: 'x'.repeat(bytes), last: 'the end' })
    export const hello = (name: string) => 'Hello ' + name
    export const paged = () => null
  `,
}

/** A story cancels as many runs at once. */
const MANY = 200

const story = stories('the runs in the dashboard', {
  prepare: async (context) => {
    await deploy(context.server.api, 'shop', FILES)
  },
})

story(
  'a failed run is found by its function and replayed with corrected input',
  async ({ chromium, server }) => {
    await call(server.api, 'orders/hello', 'you')
    const failed = await call(server.api, 'orders/total', { items: [] })
    assert.is(failed.status, 'failed')
    const { page, errors } = await openDashboard(chromium, server)

    await page.getByLabel('Status').selectOption('Failed')
    await page.getByLabel('Function', { exact: true }).fill('orders/total')
    await page.waitForURL(/status=failed&fn=orders/)
    await page.getByRole('link', { name: 'orders/total' }).click()
    await page.getByRole('heading', { name: 'Run orders/total' }).waitFor()
    const error = page.getByRole('region', { name: /^TypeError/ })
    await error.locator('figcaption').getByText('orders.ts:5:').waitFor()
    assert.match(await error.locator('figure').innerText(), /order\.lines\.reduce/)

    await page.getByRole('button', { name: 'Replay with edited input' }).click()
    const input = page.getByLabel('Input as JSON')
    await until(async () => (await input.inputValue()).includes('items'))
    await input.fill('[{ "lines": [')
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Replay with edited input' }).click()
    await dialog.getByText(/expected JSON/).waitFor()
    await input.fill('[{ "lines": [{ "price": 5 }, { "price": 7 }] }]')
    await dialog.getByRole('button', { name: 'Replay with edited input' }).click()
    await page.getByRole('row').filter({ hasText: 'Succeeded' }).getByRole('link').click()
    await page
      .getByRole('region', { name: /^result of/ })
      .filter({ hasText: '"total": 12' })
      .waitFor()
    await page.getByText('adding up').waitFor()
    assert.equal(errors, [])
  },
)

story(`${MANY} runs are cancelled together after a preview`, async ({ chromium, server }) => {
  const { api } = server
  for (let sent = 0; sent < MANY; sent += 20)
    await Promise.all(Array.from({ length: 20 }, () => publish(api, 'order:lost')))
  const waiting = '/runs?fn=orders/lost&status=pending_retry'
  await until(async () => (await api.page(waiting)).pagination.total === MANY, { timeoutMs: 60_000 })

  const { page } = await openDashboard(chromium, server, { path: waiting })
  await page.getByRole('button', { name: `Select all ${MANY} in the list` }).click()
  await page.getByText(`${MANY} selected`).waitFor()
  await page.getByRole('button', { name: `Cancel ${MANY}` }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText(`${MANY} Waits for retry`).waitFor()
  assert.is((await api.page(waiting)).pagination.total, MANY)
  await dialog.getByRole('button', { name: `Cancel ${MANY}` }).click()
  await page.getByText(`Cancelled ${MANY} runs.`).waitFor({ timeout: 60_000 })
  await page.getByText('No run matches these filters.').waitFor()
  assert.is((await api.page('/runs?fn=orders/lost&status=cancelled')).pagination.total, MANY)
})

story('an older page counts and selects the runs from there on', async ({ chromium, server }) => {
  const { api } = server
  for (let sent = 0; sent < 60; sent += 20)
    await Promise.all(Array.from({ length: 20 }, () => call(api, 'orders/paged')))
  const { page } = await openDashboard(chromium, server, { path: '/runs?fn=orders/paged' })
  await page.getByText('60 in the list', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Older' }).click()
  await page.getByText('10 from here on', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Select all 10 from here on' }).click()
  await page.getByText('10 selected').waitFor()
  const isSelected = (row: Locator) => row.getByRole('checkbox').isChecked()
  const rows = await page.locator('tbody tr').all()
  assert.equal(await Promise.all(rows.map(isSelected)), Array<boolean>(10).fill(true))
})

story(
  'a replay that fails for some runs says so, and its repetition replays none twice',
  async ({ chromium, server }) => {
    const { api } = server
    const first = await call(api, 'orders/hello', 'one')
    const second = await call(api, 'orders/hello', 'two')
    const { page } = await openDashboard(chromium, server, { path: '/runs?fn=orders/hello&text=hello' })
    for (const { run_id } of [first, second])
      await page
        .getByRole('row')
        .filter({ has: page.locator(`a[href$="${run_id}"]`) })
        .getByRole('checkbox')
        .check()
    const path = `**/v1/runs/${second.run_id}/replay`
    const keys = new Set<string | undefined>()
    await page.route(path, async (route) => {
      keys.add(route.request().headers()['idempotency-key'])
      await route.fetch()
      await route.fulfill({ status: 500, body: '{}' }) // it is done, which the browser cannot know
    })
    const dialog = page.getByRole('dialog')
    const replay = (count: number) => page.getByRole('button', { name: `Replay ${count}` })
    await replay(2).click()
    await dialog.getByRole('button', { name: 'Replay 2' }).click()
    await dialog.getByText(/^1 of 2 requests failed/).waitFor()
    await dialog.getByRole('button', { name: 'Replay 1' }).click()
    await dialog.getByText(/^1 of 1 requests failed/).waitFor()
    await dialog.getByRole('button', { name: 'Back' }).click()
    await page.unroute(path)
    await replay(1).click()
    assert.is(await dialog.getByRole('listitem').filter({ hasText: second.run_id }).count(), 1)
    assert.is(await dialog.getByText(first.run_id).count(), 0)
    const [sent] = await Promise.all([
      page.waitForRequest(path),
      dialog.getByRole('button', { name: 'Replay 1' }).click(),
    ])
    keys.add(sent.headers()['idempotency-key'])
    await page.getByText('Replayed 1 run.').waitFor()
    assert.is(keys.size, 1)
    const replayed = async () =>
      (await api.page<Run>('/runs?fn=orders/hello&limit=100')).data
        .map(({ replay_of }) => replay_of)
        .filter((run_id) => run_id === first.run_id || run_id === second.run_id)
    await until(async () => (await replayed()).includes(second.run_id))
    assert.equal((await replayed()).sort(), [first.run_id, second.run_id].sort())
  },
)

story('a new run appears without a reload', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, { path: '/runs?fn=orders/hello' })
  await page.getByText('Live', { exact: true }).waitFor()
  const { total } = (await server.api.page('/runs?fn=orders/hello')).pagination
  const rows = page.locator('tbody tr')
  await until(async () => (await rows.count()) === total) // the list may appear after the connection
  await call(server.api, 'orders/hello', 'again')
  await until(async () => (await rows.count()) === total + 1, { timeoutMs: 30_000 })
})

story('a result of 10 MB is refused with a text that says why', async ({ chromium, server }) => {
  const { run_id } = await call(server.api, 'orders/large', 10 << 20)
  const { page } = await openDashboard(chromium, server, { path: `/runs/${run_id}` })
  await page
    .getByRole('region', { name: /result_too_large/ })
    .getByText(/at most 6291456 bytes/)
    .waitFor()
})

story('a result of 5 MB is shown in part, and downloaded as a whole', async ({ chromium, server }) => {
  const { run_id } = await call(server.api, 'orders/large', 5 << 20)
  const { page, errors } = await openDashboard(chromium, server, { path: `/runs/${run_id}` })
  const result = page.getByRole('region', { name: `result of ${run_id}` })
  await result.getByText('xxx').waitFor()
  assert.ok((await result.innerText()).length < 100_000)
  const download = page.waitForEvent('download')
  await page
    .getByRole('region', { name: 'Result', exact: true })
    .getByRole('button', { name: 'Download' })
    .click()
  const whole = JSON.parse(readFileSync(await (await download).path(), 'utf8')) as {
    text: string
    last: string
  }
  assert.equal([whole.text.length, whole.last], [5 << 20, 'the end'])
  await goByKey(page, 'r')
  await page.getByRole('link', { name: 'orders/large' }).first().waitFor()
  assert.equal(errors, [])
})

story('the list of runs fits a desk', async ({ chromium, server }) => {
  await call(server.api, 'orders/total', { items: [] })
  const { page } = await openDashboard(chromium, server, { path: '/runs?fn=orders/total' })
  await page.setViewportSize({ width: 1280, height: 720 })
  const list = page.getByRole('region', { name: /^Runs/ })
  await list.getByText('Failed', { exact: true }).first().waitFor()
  const hidden = await list.evaluate((own) => own.scrollWidth - own.clientWidth)
  assert.ok(hidden <= 0, `Expected no horizontal scrolling, got ${hidden} px`)
})

story('a run that does not exist is explained', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, { path: `/runs/${newId()}` })
  await page.getByText('There is no run').waitFor()
})

story('filters of links from other pages are named, and can be removed', async ({ chromium, server }) => {
  const { run_id, stream_id } = await call(server.api, 'orders/hello', 'scoped')
  await call(server.api, 'orders/hello', 'another')
  const { page } = await openDashboard(chromium, server, { path: `/runs/${run_id}` })
  await page.getByRole('link', { name: stream_id }).click()
  await page.getByRole('link', { name: 'Runs of this stream' }).click()
  const scope = page.getByRole('paragraph').filter({ hasText: 'Only runs of the stream' })
  assert.is(await scope.getByRole('link').innerText(), stream_id)
  await until(async () => (await page.locator('tbody tr').count()) === 1)
  await scope.getByRole('button', { name: 'Show others too' }).click()
  await until(async () => (await page.locator('tbody tr').count()) > 1)
  assert.is(await scope.count(), 0)
  assert.is(new URL(page.url()).search, '')
})

story.run()
