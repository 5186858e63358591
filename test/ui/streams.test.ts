import type { Page } from 'playwright-core'
import * as assert from 'uvu/assert'
import { createClient } from '../../src/client/index.ts'
import { newId } from '../../src/ids.ts'
import { openBalancer } from '../support/balancer.ts'
import { deploy, publish } from '../support/build.ts'
import { openDashboard } from '../support/openDashboard.ts'
import { EMBEDDED } from '../support/installation.ts'
import { spawnServer, type TestServer } from '../support/server.ts'
import { stories } from '../support/stories.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const FILES = {
  'chat.ts': `
    import { emit, fn } from 'svc'
    export const talk = fn({ 'on-event': 'talk' }, async ({ data: { name, words, pauseMs } }: any) => {
      for (let n = 0; n < words; n++) {
        await emit('word', name + n + ' ')
        await new Promise((resolve) => setTimeout(resolve, pauseMs))
      }
      await emit('done', { words })
    })
    export const large = fn({ 'on-event': 'large' }, async ({ data: { count, size } }: any) => {
      for (let n = 0; n < count; n++) await emit('object', { n, text: 'x'.repeat(size) })
    })
  `,
}

const story = stories('streams in the dashboard', {
  prepare: async (context) => {
    await deploy(context.server.api, 'chat', FILES)
  },
})

/** The words of one speaker, as the function emits them. */
const wordsOf = (name: string, count: number): string =>
  Array.from({ length: count }, (_, n) => `${name}${n} `).join('')

const talk = (
  { api }: TestServer,
  data: { readonly name: string; readonly words: number; readonly pauseMs: number },
  stream_id?: string,
) => publish(api, 'talk', data, stream_id === undefined ? {} : { stream_id })

const textOf = (page: Page) => page.getByRole('region', { name: 'Text of word' })

story(
  'tokens are shown as running text, and as events with their positions',
  async ({ chromium, server }) => {
    const { stream_id } = await talk(server, { name: 'a', words: 30, pauseMs: 20 })
    const { page, errors } = await openDashboard(chromium, server, { path: '/streams' })
    await page.getByRole('link', { name: stream_id }).click()
    await page.getByText('Complete: nothing in it is running').waitFor()
    await until(async () => (await textOf(page).textContent()) === wordsOf('a', 30))

    await page.getByLabel('Show').selectOption('Events')
    const positions = await page.locator('td[data-name="Position"]').allInnerTexts()
    assert.is(positions.length, 33) // the start, the words, the data at the end, and the stop
    assert.equal(
      positions.map(Number),
      positions.map(Number).sort((a, b) => b - a),
    )
    await page.getByRole('row').filter({ hasText: 'word: "a20 "' }).getByRole('button').first().click()
    await page.waitForURL(/from=\d+/)
    await page.getByRole('row').filter({ hasText: 'word: "a20 "' }).waitFor({ state: 'detached' })
    await until(async () => (await page.locator('td[data-name="Position"]').count()) === 11)
    assert.equal(errors, [])
  },
)

story('a complete stream continues when a further event arrives in it', async ({ chromium, server }) => {
  const { stream_id } = await talk(server, { name: 'a', words: 3, pauseMs: 0 })
  const { page } = await openDashboard(chromium, server, { path: `/streams/${stream_id}` })
  await page.getByText('Complete: nothing in it is running').waitFor()
  await page.getByText('Live', { exact: true }).waitFor()
  await talk(server, { name: 'b', words: 3, pauseMs: 0 }, stream_id)
  await until(async () => (await textOf(page).textContent()) === wordsOf('a', 3) + wordsOf('b', 3))
})

story('a pause keeps the view, and nothing is missing afterwards', async ({ chromium, server }) => {
  const { stream_id } = await talk(server, { name: 'a', words: 3, pauseMs: 0 })
  const { page } = await openDashboard(chromium, server, { path: `/streams/${stream_id}` })
  await page.getByText('Complete: nothing in it is running').waitFor()
  await page.getByText('Live', { exact: true }).waitFor()
  await until(async () => (await textOf(page).textContent()) === wordsOf('a', 3))
  await page.getByRole('button', { name: 'Pause' }).click()
  const before = await textOf(page).textContent()
  await talk(server, { name: 'b', words: 60, pauseMs: 50 }, stream_id)
  await page.getByText(/^[1-9]\d* new events$/).waitFor()
  assert.is(await textOf(page).textContent(), before)
  await page.getByRole('button', { name: 'Continue' }).click()
  await until(async () => (await textOf(page).textContent()) === wordsOf('a', 3) + wordsOf('b', 60))
})

story('a wrong id is explained at its field, an unknown one on the page', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, { path: '/streams' })
  const field = page.getByLabel('Id of the stream')
  await field.fill('order-17')
  await page.getByRole('button', { name: 'Follow' }).click()
  await page.getByRole('alert').getByText('expected the id of a stream').waitFor()
  assert.is(await field.getAttribute('aria-invalid'), 'true')
  await field.fill(newId())
  await page.getByRole('button', { name: 'Follow' }).click()
  await page.getByText('There is no such stream').waitFor()
})

story('large data is kept up to a limit, and shown when it is opened', async ({ chromium, server }) => {
  const { stream_id } = await publish(server.api, 'large', { count: 12, size: 5 << 20 })
  const { page, errors } = await openDashboard(chromium, server, { path: `/streams/${stream_id}` })
  await page.getByText('Complete: nothing in it is running, 14 events').waitFor({ timeout: 60_000 })
  await page.getByText('The page keeps the newest 7 of 14 events.').waitFor() // six of 5 MiB, and the end
  const row = page.getByRole('row').filter({ hasText: 'object: {"n":11,' })
  const content = page.getByRole('region', { name: /^event-/ })
  assert.is(await content.count(), 0)
  await row.locator('summary').click()
  await content.filter({ hasText: '"n": 11' }).waitFor()
  await row.locator('summary').click()
  await content.waitFor({ state: 'detached' })
  assert.equal(errors, [])
})

story('a restart of the service neither loses nor repeats a token', async ({ chromium }) => {
  const dataDir = tempDir()
  const address = await openBalancer() // another program could take a port that the service has left
  let server = await spawnServer({ dataDir, env: EMBEDDED })
  address.to([server.url])
  await deploy(server.api, 'chat', FILES)
  const { stream_id } = await talk(server, { name: 'first', words: 1, pauseMs: 0 })
  const { page } = await openDashboard(
    chromium,
    { ...server, url: address.url },
    { path: `/streams/${stream_id}` },
  )
  await page.getByText('Complete: nothing in it is running').waitFor()
  await page.getByText('Live', { exact: true }).waitFor()
  await talk(server, { name: 'a', words: 400, pauseMs: 20 }, stream_id) // it runs until the kill
  await textOf(page).getByText('a20 ').waitFor()
  await server.end('SIGKILL')
  await page.getByText('Interrupted. It continues after its last event.').waitFor()
  server = await spawnServer({ dataDir, env: EMBEDDED })
  address.to([server.url])
  await talk(server, { name: 'b', words: 20, pauseMs: 20 }, stream_id)
  await textOf(page).getByText('b19 ').waitFor()
  await page.getByText('Complete: nothing in it is running').waitFor({ timeout: 120_000 })

  const stored: string[] = []
  for await (const { event, data } of createClient({ url: server.url, token: server.api.key }).follow(
    stream_id,
  ))
    if (event === 'stream:data' && data.data_type === 'word') stored.push(String(data.payload))
  assert.ok(stored.includes('a20 ') && stored.includes('b19 '))
  await until(async () => (await textOf(page).textContent()) === stored.join(''))
  await server.stop()
  await address.close()
})

story.run()
