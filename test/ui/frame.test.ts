import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import { newSession } from '../api/issuing.ts'
import { openBalancer } from '../support/balancer.ts'
import { call, deploy, publish } from '../support/build.ts'
import { goByKey, openDashboard, operatorTokenOf, signIn } from '../support/openDashboard.ts'
import { spawnServer, type TestServer } from '../support/server.ts'
import { stories } from '../support/stories.ts'
import { until } from '../support/until.ts'

const story = stories('the frame of the dashboard', {
  prepare: async (context) => {
    await deploy(context.server.api, 'shop', FILES)
  },
})

const FILES = { 'hello.js': `export const world = (name) => 'Hello ' + name` }

story('it is used with the keyboard alone', async ({ chromium, server }) => {
  const first = await call(server.api, 'hello/world', 'a')
  await call(server.api, 'hello/world', 'b')
  const { page } = await chromium.open(`${server.url}/ui/files`)
  await page.getByRole('heading', { name: 'Sign in to svc' }).waitFor()
  await page.keyboard.type(server.api.key)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Files', level: 1 }).waitFor()

  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keyboard' }).getByText('Open the row').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'hidden' })

  await goByKey(page, 'r')
  await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor()
  await page.keyboard.press('/')
  await page.keyboard.type('world')
  await page.waitForURL(/text=world/)
  await page.keyboard.press('Escape')
  await until(async () => (await page.getByRole('row').count()) === 3)
  await page.keyboard.press('j')
  await page.keyboard.press('x')
  await page.getByText('1 selected').waitFor()
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Run hello/world' }).waitFor()
  assert.match(page.url(), first.run_id)

  const replay = page.getByRole('button', { name: 'Replay', exact: true })
  for (let left = 30; left > 0 && !(await replay.evaluate((own) => own.matches(':focus'))); left--)
    await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.getByRole('status').getByText('The replay was requested.').waitFor()
})

story('Escape closes a dialog at once, unless something was written in it', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, { path: '/events' })
  const publishing = page.getByRole('dialog', { name: 'Publish' })
  await page.getByRole('button', { name: 'Publish' }).click()
  await until(() => publishing.getByLabel('Event type').evaluate((own) => own.matches(':focus')))
  await page.keyboard.press('Escape')
  await publishing.waitFor({ state: 'detached' })

  await page.getByRole('button', { name: 'Publish' }).click()
  await page.keyboard.type('order:paid')
  await page.keyboard.press('Escape')
  assert.is(await publishing.getByLabel('Event type').inputValue(), 'order:paid')
  await page.keyboard.press('Escape')
  await publishing.waitFor({ state: 'detached' })
})

story(
  'a wrong key is refused at the form, and the address is kept for the right one',
  async ({ chromium, server }) => {
    const { page } = await chromium.open(`${server.url}/ui/runs?status=failed`)
    await page.getByLabel('API key or operator token').fill(`svc_${newId()}_${'a1B2c3D4'.repeat(6)}`)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').waitFor()
    await signIn(page, server.api.key)
    await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor()
    assert.match(page.url(), /status=failed$/)
  },
)

const ticket = async ({ api }: TestServer): Promise<string> =>
  (await api.post<{ ticket: string }>('/sign-in/tickets')).ticket

story(
  'a key that may not read the environment sees its id instead of its name',
  async ({ chromium, server }) => {
    const { env_id } = await server.api.get<{ env_id: string }>('/env')
    const { token } = await newSession(server.api, { 'run:*': ['read'] })
    const { page, errors } = await openDashboard(chromium, server, { token })
    await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor()
    await page.getByRole('banner').getByText(env_id, { exact: true }).waitFor()
    assert.equal(errors, [])
  },
)

story('the link of svc open signs in once', async ({ chromium, server }) => {
  const link = `${server.url}/ui/runs#ticket=${await ticket(server)}`
  const { page } = await chromium.open(link)
  await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor()
  assert.is(page.url(), `${server.url}/ui/runs`)
  const again = await chromium.open(link)
  await again.page
    .getByRole('alert')
    .getByText(/^ticket: expected/)
    .waitFor()
})

story('a link does not replace a session without a question', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server)
  const cookie = async () => (await page.context().cookies(`${server.url}/v1/runs`))[0]?.value
  const own = await cookie()
  await page.goto('about:blank')
  await page.goto(`${server.url}/ui/runs#ticket=${await ticket(server)}`)
  const question = page.getByRole('dialog', { name: 'Sign in with the link?' })
  await question.getByRole('button', { name: 'Keep my session' }).click()
  await question.waitFor({ state: 'hidden' })
  assert.is(await cookie(), own)
  await page.goto('about:blank')
  await page.goto(`${server.url}/ui/runs#ticket=${await ticket(server)}`)
  await question.getByRole('button', { name: 'Use the link' }).click()
  await page.getByText('Signed in to the environment dev.').waitFor()
  assert.is.not(await cookie(), own)
})

story(
  'a link asks also when the service could not name the session at first',
  async ({ chromium, server }) => {
    const { page } = await openDashboard(chromium, server)
    await page.goto('about:blank')
    let refused = 0
    await page.route('**/v1/sign-in', (route) => {
      if (route.request().method() !== 'GET' || refused === 3) return route.continue()
      refused++ // as often as the client tries
      const json = { error: { code: 'unavailable', message: 'The server is starting', request_id: newId() } }
      return route.fulfill({ status: 503, json })
    })
    await page.goto(`${server.url}/ui/runs#ticket=${await ticket(server)}`)
    await page.getByRole('dialog', { name: 'Sign in with the link?' }).waitFor()
  },
)

story('every tab shows the environment of the session that they share', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server)
  const ask = async <T>(path: string, token: string, body: unknown): Promise<T> => {
    const headers = { authorization: `Bearer ${token}` }
    const reply = await fetch(server.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    return ((await reply.json()) as { data: T }).data
  }
  const operator = operatorTokenOf(server)
  const { env_id } = await ask<{ env_id: string }>('/operator/orgs/local/envs', operator, { name: 'another' })
  const keys = `/operator/envs/${env_id}/api-keys`
  const { token } = await ask<{ token: string }>(keys, operator, { name: 'key' })
  const given = await ask<{ ticket: string }>('/v1/sign-in/tickets', token, {})
  const second = await page.context().newPage()
  await second.goto(`${server.url}/ui/runs#ticket=${given.ticket}`)
  await second.getByRole('button', { name: 'Use the link' }).click()
  await second.getByRole('banner').getByText('another', { exact: true }).waitFor()
  await page.getByRole('banner').getByText('another', { exact: true }).waitFor()
  await second.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in to svc' }).waitFor()
})

story('a list appears also where replies take longer than the updates', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, { path: '/events' })
  await page.getByText('Live', { exact: true }).waitFor()
  const devtools = await page.context().newCDPSession(page)
  const slow = { offline: false, latency: 2500, downloadThroughput: -1, uploadThroughput: -1 }
  await devtools.send('Network.emulateNetworkConditions', slow)
  const seen = page.getByRole('link', { name: 'slow:news' }).first().waitFor()
  let isSeen = false
  const publishing = (async () => {
    while (!isSeen) await publish(server.api, 'slow:news')
  })()
  try {
    await seen
  } finally {
    isSeen = true
    await publishing
  }
})

story('the link to skip the navigation moves the focus to the page', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, { path: '/files' })
  await page.getByRole('heading', { name: 'Files', level: 1 }).waitFor()
  await page.getByRole('link', { name: 'Skip to the page' }).focus()
  await page.keyboard.press('Enter')
  await until(() => page.getByRole('main').evaluate((own) => own.matches(':focus')))
  await page.getByRole('heading', { name: 'Files', level: 1 }).waitFor()
})

story('a page whose script is not served says what helps', async ({ chromium, server }) => {
  const { page } = await chromium.open('about:blank')
  await page.route('**/ui/assets/main-*', (route) => route.fulfill({ status: 404 }))
  await page.goto(`${server.url}/ui/files`)
  await page.getByText('reload the page').waitFor()
  await page.unroute('**/ui/assets/main-*')
  await page.reload()
  await page.getByRole('heading', { name: 'Sign in to svc' }).waitFor()
  assert.is(await page.getByText('reload the page').count(), 0)
})

story('a wrong address shows its page', async ({ chromium, server }) => {
  const { page, go } = await openDashboard(chromium, server)
  for (const address of [
    '/?range=constructor',
    '/runs?before=x',
    '/history?from=x',
    '/history?as_of=x',
    '/history?show=constructor',
  ]) {
    await go(address)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.getByRole('navigation', { name: 'Pages' }).waitFor()
    assert.is(await page.getByText('undefined').count(), 0, address)
  }
})

story('a page that cannot be rendered says so, and the others remain', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server)
  const pagination = { total: 1, limit: 50, offset: 0, has_more: false }
  await page.route('**/v1/files?*', (route) => route.fulfill({ json: { data: [null], pagination } }))
  await page.getByRole('link', { name: 'Files' }).click()
  await page.getByRole('alert').getByText('null').waitFor()
  await page.getByRole('link', { name: 'Runs', exact: true }).click()
  await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor()
})

story('an ended session asks to sign in again and returns to the same page', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, { path: '/domains' }) // without live updates, which would end first
  await server.api.remove('/sessions')
  await page.getByRole('link', { name: 'Files' }).dispatchEvent('click') // the page may have noticed, and cover it
  await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor()
  await signIn(page, server.api.key)
  await page.getByRole('heading', { name: 'Files', level: 1 }).waitFor()
})

story('signing out ends the session for everyone who has its cookie', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server)
  const cookies = await page.context().cookies(`${server.url}/v1/runs`)
  assert.is(cookies.length, 1)
  assert.is(await page.evaluate('document.cookie'), '')
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in to svc' }).waitFor()
  const headers = { 'svc-dashboard': '1', cookie: `${cookies[0]?.name}=${cookies[0]?.value}` }
  assert.is((await fetch(`${server.url}/v1/runs`, { headers })).status, 401)
})

story('a sign-out that fails is reported, and can be repeated', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server)
  const refused = { error: { code: 'conflict', message: 'Not now', request_id: newId() } }
  await page.route('**/v1/sign-in', (route) => route.fulfill({ status: 409, json: refused }))
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('status').getByText('You are still signed in: Not now').waitFor()
  await page.unroute('**/v1/sign-in')
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in to svc' }).waitFor()
})

story(
  'an open dialog is no part of its row, and returns the focus to its button',
  async ({ chromium, server }) => {
    await server.api.send('PUT', '/files/upload/report.csv', { body: Buffer.from('a') })
    const { page, errors } = await openDashboard(chromium, server, { path: '/files' })
    const row = page.getByRole('row', { name: /report\.csv/ })
    const button = row.getByRole('button', { name: 'Delete' })
    const dialog = page.getByRole('dialog', { name: 'Delete' })
    for (const leave of [
      () => dialog.getByRole('button', { name: 'Back' }).click(),
      () => dialog.getByRole('button', { name: 'Close' }).click(),
      () => page.keyboard.press('Escape'),
    ]) {
      await button.focus()
      await page.keyboard.press('Enter')
      await dialog.getByText('Functions that read it fail from then on.').waitFor()
      assert.not.match(await row.innerText(), 'Functions that read it')
      await leave()
      await dialog.waitFor({ state: 'detached' })
      assert.ok(await button.evaluate((own) => own.matches(':focus')))
    }
    assert.equal(errors, [])
  },
)

story('the link of the page is in view on a phone', async ({ chromium, server }) => {
  const { page, go } = await openDashboard(chromium, server, { path: '/runs' })
  await page.setViewportSize({ width: 360, height: 740 })
  await go('/history')
  const link = page.getByRole('link', { name: 'Audit' })
  await until(async () => {
    const { x = -1, width = 0 } = (await link.boundingBox()) ?? {}
    return x >= 0 && x + width <= 360
  })
})

story('a lost service is reported, and live updates continue after its restart', async ({ chromium }) => {
  const address = await openBalancer() // another program could take a port that the service has left
  const before = await spawnServer()
  address.to([before.url])
  await deploy(before.api, 'shop', FILES)
  const { page } = await openDashboard(chromium, { ...before, url: address.url }, { path: '/runs' })
  await page.getByText('Live', { exact: true }).waitFor()
  await before.end('SIGKILL')
  await page.getByText('Connection lost. Trying again…').waitFor()
  const after = await spawnServer({ dataDir: before.dataDir })
  address.to([after.url])
  try {
    await page.getByText('Live', { exact: true }).waitFor({ timeout: 60_000 })
    await call(after.api, 'hello/world', 'again')
    await page.getByRole('link', { name: 'hello/world' }).waitFor()
  } finally {
    await after.stop()
    await address.close()
  }
})

story.run()
