import type { Page } from 'playwright-core'
import * as assert from 'uvu/assert'
import { call, deploy, handled, publish, type Run, runsOf } from '../support/build.ts'
import { openDashboard } from '../support/openDashboard.ts'
import { stories } from '../support/stories.ts'
import { until } from '../support/until.ts'

const FILES = {
  'chat.ts': `
    import { emit, fn, run } from 'svc'
    import { setTimeout as delay } from 'node:timers/promises'
    export const child = () => emit('answer', 'from the child')
    export const talk = async (words: string[]) => {
      for (const word of words) {
        await emit('word', word)
        await delay(100)
      }
      await run('chat/child')
    }
    export const many = async (count: number) => {
      for (let sent = 0; sent < count; sent += 500)
        await Promise.all(Array.from({ length: 500 }, (_, n) => emit('token', sent + n)))
    }
    export const waiting = fn({ 'on-event': 'wait' }, async () => {
      for (let n = 0; n < 600; n++) {
        await emit('tick', n)
        await delay(100)
      }
    })
    export const silent = () => 1
    export const breaks = fn({ 'on-event': 'break', retry: { attempts: 1, delay: 1 } }, () => { throw new Error('no') })
  `,
}

/** As many emits are still one shape in the picture. */
const MANY = 10_000

const story = stories('the page of a run', {
  prepare: async (context) => {
    await deploy(context.server.api, 'chat', FILES)
  },
})

const sliderOf = (page: Page) => page.getByRole('slider', { name: /^Emitted data/ })

const lineOf = (page: Page, fn: string) =>
  page
    .getByRole('region', { name: 'Trace' })
    .getByRole('listitem')
    .filter({ has: page.getByRole('link', { name: fn, exact: true }) })

/** The chosen datum, as a screen reader reads it. */
const isChosen = (page: Page, text: RegExp) =>
  until(async () => text.test((await sliderOf(page).getAttribute('aria-valuetext')) ?? ''))

story('emitted data is on the time axis, and chosen with the keyboard', async ({ chromium, server }) => {
  const { run_id } = await call(server.api, 'chat/talk', ['one', 'two', 'three'])
  const { page, errors } = await openDashboard(chromium, server, { path: `/runs/${run_id}` })
  await lineOf(page, 'chat/talk')
    .getByRole('img', { name: /^Emitted data: 3, from / })
    .waitFor()
  await lineOf(page, 'chat/child')
    .getByRole('img', { name: /^Emitted data: 1, at / })
    .waitFor()
  await isChosen(page, /^4 of 4, after .*: answer "from the child"$/)

  await sliderOf(page).focus()
  await page.keyboard.press('Home')
  await isChosen(page, /^1 of 4, after .*: word "one"$/)
  await page.keyboard.press('ArrowRight')
  await isChosen(page, /^2 of 4, after .*: word "two"$/)
  await page.getByRole('region', { name: 'Trace' }).getByText('"two"').waitFor()

  await page.setViewportSize({ width: 360, height: 740 })
  const marks = lineOf(page, 'chat/talk').getByRole('img')
  const { width = 0, height = 0 } = (await marks.boundingBox()) ?? {}
  assert.ok(width > 250 && height > 8, `Expected marks that a phone shows, got ${width} x ${height} px`)
  await marks.click({ position: { x: width - 2, y: 4 } })
  await isChosen(page, /^3 of 4, after .*: word "three"$/)
  assert.equal(errors, [])
})

story(`${MANY} emits are one shape, and each is within reach`, async ({ chromium, server }) => {
  const { run_id } = await call(server.api, 'chat/many', MANY)
  const { page, errors } = await openDashboard(chromium, server, { path: `/runs/${run_id}` })
  await isChosen(page, /^10,000 of 10,000, /)
  await sliderOf(page).fill('5000')
  await isChosen(page, /^5,000 of 10,000, after .*: token \d+$/)
  assert.is(await page.locator('.marks path').count(), 2)
  const shape = (await page.locator('.marks path').first().getAttribute('d')) ?? ''
  assert.ok(shape.length < 20_000)
  assert.is(await page.locator('.emitted li').count(), 100)
  await page.getByText('The newest 100 are listed.').waitFor()
  assert.equal(errors, [])
})

story('data that the page does not keep has a dashed line', async ({ chromium, server }) => {
  const { run_id } = await call(server.api, 'chat/many', 21_000)
  const { page, errors } = await openDashboard(chromium, server, { path: `/runs/${run_id}` })
  await isChosen(page, /^20,000 of 20,000, /)
  await lineOf(page, 'chat/many')
    .getByRole('img', { name: /^Emitted data: 20,000, from .*; 1,000 earlier are left out$/ })
    .waitFor()
  assert.is(await page.locator('.marks .left-out').count(), 1)
  await page.getByText('a dashed line is the time of earlier data.').waitFor()
  assert.equal(errors, [])
})

story(
  'texts that follow each other are one text, and ids in the reasons are links',
  async ({ chromium, server }) => {
    const { run_id } = await call(server.api, 'chat/talk', ['two ', 'words, <b>one</b>\n', 'text'])
    const { page } = await openDashboard(chromium, server, { path: `/runs/${run_id}` })
    const emitted = page.getByRole('region', { name: 'Emitted data' })
    await emitted.getByText('3 texts').waitFor()
    assert.is(await emitted.locator('pre').textContent(), 'two words, <b>one</b>\ntext')

    const why = page.getByRole('region', { name: 'Why did this run?' })
    await why.getByText(run_id).waitFor()
    assert.is(await why.getByRole('link', { name: run_id }).count(), 0)
    const child = lineOf(page, 'chat/child').getByRole('link')
    await child.click()
    await page.getByRole('heading', { name: 'Run chat/child' }).waitFor()
    await why.getByRole('link', { name: run_id }).click()
    await page.getByRole('heading', { name: 'Run chat/talk' }).waitFor()
  },
)

story('data appears while the run emits it, and the choice remains', async ({ chromium, server }) => {
  const { event_id } = await publish(server.api, 'wait')
  const { run_id } = await until(async () => (await runsOf(server.api, event_id))[0])
  const { page } = await openDashboard(chromium, server, { path: `/runs/${run_id}` })
  await isChosen(page, /: tick \d+$/)
  await sliderOf(page).fill('2')
  await isChosen(page, /^2 of \d+, .*: tick 1$/)
  const before = Number(await sliderOf(page).getAttribute('max'))
  await until(async () => Number(await sliderOf(page).getAttribute('max')) > before + 5)
  await isChosen(page, /^2 of \d+, .*: tick 1$/)
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
  await page.getByText('Cancelled', { exact: true }).first().waitFor()
})

story('it asks only for updates of its run', async ({ chromium, server }) => {
  const { event_id } = await publish(server.api, 'wait')
  const { run_id } = await until(async () => (await runsOf(server.api, event_id))[0])
  const { page } = await openDashboard(chromium, server, { path: `/runs/${run_id}` })
  await page.getByText('Live', { exact: true }).waitFor()
  let asked = 0
  page.on('request', (request) => (asked += request.url().endsWith(`/v1/runs/${run_id}`) ? 1 : 0))
  for (let n = 0; n < 20; n++) await publish(server.api, 'unhandled')
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
  await page.getByText('Cancelled', { exact: true }).first().waitFor()
  assert.is(asked, 1)
})

story('a run that emitted nothing has no marks and no slider', async ({ chromium, server }) => {
  const { run_id } = await call(server.api, 'chat/silent')
  const { page } = await openDashboard(chromium, server, { path: `/runs/${run_id}` })
  await lineOf(page, 'chat/silent').waitFor()
  assert.is(await page.locator('.marks').count(), 0)
  assert.is(await sliderOf(page).count(), 0)
})

story('an attempt that was retried names the attempt that can be cancelled', async ({ chromium, server }) => {
  const { event_id } = await publish(server.api, 'break')
  const [last, first] = (await handled(server.api, event_id, 2)) as [Run, Run]
  const { page } = await openDashboard(chromium, server, { path: `/runs/${first.run_id}` })
  await page.getByRole('button', { name: 'Cancel' }).press('Enter')
  await page.getByText('Cancel: This attempt has ended. Cancel the next attempt on its page').waitFor()
  await page.getByRole('link', { name: last.run_id }).first().click()
  await page.getByRole('button', { name: 'Cancel' }).press('Enter')
  await page.getByText('Cancel: The run has ended').waitFor()
})

story('a run leads to its project, although another one has its former name', async (context) => {
  const { chromium, server } = context
  const files = { 'renamed.js': 'export const own = () => 1' }
  const { project_id } = await deploy(server.api, 'before', files)
  const { run_id } = await call(server.api, 'renamed/own')
  await server.api.patch('/projects/before', { name: 'after' })
  await deploy(server.api, 'before', { 'other.js': 'export const foreign = () => 1' })
  for (const [field, found] of [
    ['Project', 'renamed/own'],
    ['Build', 'Deployed'],
  ] as const) {
    const { page } = await openDashboard(chromium, server, { path: `/runs/${run_id}` })
    await page.locator('dt', { hasText: field }).locator('+ dd').getByRole('link').click()
    await page.waitForURL((url) => url.searchParams.get('project') === project_id)
    await page.getByRole('table').getByText(found).waitFor()
    await until(async () => (await page.getByLabel('Project').inputValue()) === 'after')
  }
  const { page } = await openDashboard(chromium, server, { path: `/runs?project=${project_id}` })
  await page.getByRole('link', { name: 'renamed/own' }).waitFor()
  await until(async () => (await page.getByLabel('Project').inputValue()) === 'after')
})

story('times are those of the service, although the clock of the reader is wrong', async (context) => {
  const { chromium, server } = context
  const { page, go } = await openDashboard(chromium, server, { path: '/keys' })
  for (const minutes of [-5, 5]) {
    const { event_id } = await publish(server.api, 'wait')
    const { run_id } = await until(async () => (await runsOf(server.api, event_id))[0])
    await page.clock.install({ time: Date.now() + minutes * 60_000 })
    await go(`/runs/${run_id}`)
    const line = lineOf(page, 'chat/waiting')
    await line.getByText(/^\d+ ms$|^\d+\.\d s$/).waitFor()
    await page
      .locator('dl.facts div', { hasText: 'Started' })
      .getByText(/^now$|^\d+ seconds? ago$/)
      .waitFor()
    await server.api.post(`/runs/${run_id}/cancel`)
  }
})

story.run()
