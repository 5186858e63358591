import * as assert from 'uvu/assert'
import { publish } from '../support/build.ts'
import { openDashboard, operatorTokenOf, signInAsOperator } from '../support/openDashboard.ts'
import { openApi } from '../support/http.ts'
import { stories } from '../support/stories.ts'
import { until } from '../support/until.ts'

/** Enough events that a rebuild takes longer than a look at it. */
const MANY = 600

const story = stories('the operator in the dashboard')

story('a read model is rebuilt and compared while the operator watches', async ({ chromium, server }) => {
  for (let sent = 0; sent < MANY; sent += 50)
    await Promise.all(Array.from({ length: 50 }, () => publish(server.api, 'order:paid')))
  const token = operatorTokenOf(server)
  const { page, errors } = await openDashboard(chromium, server, {
    token,
    path: '/operator?section=read-models',
  })
  const row = page.getByRole('row').filter({ hasText: /^events, version/ })
  await row.getByText('serving', { exact: true }).waitFor()
  await row.getByRole('button', { name: 'Rebuild' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('Requests never see a gap.').waitFor()
  await dialog.getByLabel(/Compare all documents/).check()
  const progress = page.getByRole('progressbar', { name: 'Rebuild of events' })
  let isHeld = true // a fast rebuild ends between two looks, so the page does not learn of its end yet
  await page.route('**/operator/projections', async (route) => {
    const response = await route.fetch()
    const body = (await response.json()) as { data: { rebuild: object | null }[] }
    for (const { rebuild } of body.data)
      if (rebuild && isHeld) Object.assign(rebuild, { state: 'building', ended_at: null, behind: MANY })
    await route.fulfill({ response, json: body })
  })
  await dialog.getByRole('button', { name: 'Rebuild' }).click()
  await progress.waitFor()
  isHeld = false
  await row.getByText('0 documents differed').waitFor()
  await row.getByText('serving', { exact: true }).waitFor()
  const { data } = await openApi(server.url, token).page<{ name: string; rebuild: { state: string } | null }>(
    `${server.url}/operator/projections`,
  )
  assert.equal(
    data.filter(({ rebuild }) => rebuild).map(({ name, rebuild }) => [name, rebuild?.state]),
    [['events', 'done']],
  )
  assert.equal(errors, [])
})

story('a customer is created with an environment and a key, and their plan is changed', async (context) => {
  const { chromium, server } = context
  const { page, go } = await openDashboard(chromium, server, {
    token: operatorTokenOf(server),
    path: '/operator',
  })
  const dialog = page.getByRole('dialog')
  await page.getByRole('button', { name: 'Create organization' }).click()
  await dialog.getByLabel('Slug').fill('Acme Inc')
  await dialog.getByRole('button', { name: 'Create organization' }).click()
  await dialog.getByText(/^slug/).waitFor()
  await dialog.getByLabel('Slug').fill('acme')
  await dialog.getByLabel('Plan').selectOption('Pro')
  await dialog.getByRole('button', { name: 'Create organization' }).click()
  const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'acme' }) })
  await row.getByRole('button', { name: 'Change' }).click()
  await dialog.getByLabel('Plan').selectOption('Scale')
  await dialog.getByRole('button', { name: 'Change' }).click()
  await row.getByText('scale', { exact: true }).waitFor()

  await row.getByRole('link', { name: 'acme' }).click()
  const quota = page.getByRole('region', { name: 'Quota' })
  await quota.getByText('0 of 10,000,000').waitFor()
  await quota.getByText('0 bytes of 1.0 TiB').first().waitFor()
  assert.is(await quota.getByText('in this environment').count(), 0)
  await page.getByRole('button', { name: 'Create environment' }).click()
  await dialog.getByLabel('Name').fill('production')
  await dialog.getByRole('button', { name: 'Create environment' }).click()
  await page.getByRole('link', { name: 'Show API keys' }).click()
  await page.getByRole('button', { name: 'Create API key' }).click()
  await dialog.getByLabel('Name').fill('first')
  await dialog.getByLabel(/Full access/).check()
  await dialog.getByRole('button', { name: 'Create API key' }).click()
  const token = await page.getByRole('dialog', { name: 'API key first' }).locator('code').innerText()
  assert.is((await openApi(server.url, token).get<{ name: string }>('/env')).name, 'production')
  await page.getByRole('dialog', { name: 'API key first' }).getByRole('button', { name: 'Done' }).click()

  await row.getByRole('button', { name: 'Delete' }).click()
  await dialog.getByRole('button', { name: 'Delete' }).click()
  await dialog.getByRole('alert').waitFor() // it has an environment

  await go('/operator?section=audit&type=OrgChanged')
  await page
    .getByRole('region', { name: /^Changes/ })
    .getByText('operator')
    .first()
    .waitFor()
  assert.is(await page.getByRole('row').count(), 2)
})

story('a change of an organization keeps what another operator has changed meanwhile', async (context) => {
  const { chromium, server } = context
  const token = operatorTokenOf(server)
  const operator = openApi(`${server.url}/operator`, token)
  await operator.post(`${server.url}/operator/orgs`, { slug: 'kept', name: 'Kept', plan: 'free' })
  const { page } = await openDashboard(chromium, server, { token, path: '/operator' })
  const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'kept' }) })
  await row.getByRole('button', { name: 'Change' }).click()
  const dialog = page.getByRole('dialog')
  await operator.patch(`${server.url}/operator/orgs/kept`, { plan: 'scale' })
  await dialog.getByLabel('Name').fill('Renamed')
  await dialog.getByRole('button', { name: 'Change' }).click()
  await dialog.waitFor({ state: 'detached' })
  const { name, plan } = await operator.get<{ name: string; plan: string }>(
    `${server.url}/operator/orgs/kept`,
  )
  assert.equal([name, plan], ['Renamed', 'scale'])
})

story('an API key, its environment and its organization are deleted', async ({ chromium, server }) => {
  const operatorToken = operatorTokenOf(server)
  const own = openApi(server.url, operatorToken)
  const to = (path: string) => `${server.url}/operator${path}`
  await own.post(to('/orgs'), { slug: 'leaving', plan: 'free' })
  const { env_id } = await own.post<{ env_id: string }>(to('/orgs/leaving/envs'), { name: 'production' })
  const key = (name: string) => own.post<{ token: string }>(to(`/envs/${env_id}/api-keys`), { name })
  const [first, second] = [await key('first'), await key('second')]
  const { page, errors } = await openDashboard(chromium, server, {
    token: operatorToken,
    path: `/operator?section=organizations&org=leaving&env=${env_id}`,
  })
  const dialog = page.getByRole('dialog', { name: 'Delete' })
  const submit = dialog.getByRole('button', { name: 'Delete' })
  const statusOf = async ({ token }: { readonly token: string }) =>
    (await openApi(server.url, token).send('GET', '/env')).status
  const rowOf = (list: string, name: string) =>
    page
      .getByRole('region', { name: list, exact: true })
      .getByRole('row')
      .filter({ has: page.getByText(name, { exact: true }) })

  const keyRow = rowOf('API keys, the newest first', 'first')
  await keyRow.getByRole('button', { name: 'Delete' }).click()
  await dialog.getByText('Deletes the API key first').waitFor()
  assert.is(await statusOf(first), 200)
  await submit.click()
  await keyRow.waitFor({ state: 'detached' })
  assert.equal([await statusOf(first), await statusOf(second)], [401, 200])

  const envRow = page
    .getByRole('table', { name: 'Environments of leaving' })
    .getByRole('row')
    .filter({ hasText: 'production' })
  await envRow.getByRole('button', { name: 'Delete' }).click()
  const typed = dialog.getByLabel('Name of the environment, to confirm')
  await typed.fill('staging')
  await submit.click()
  await dialog.getByRole('alert').getByText('Name: expected production, got "staging"').waitFor()
  assert.is(await statusOf(second), 200)
  await typed.fill('production')
  await submit.click()
  await envRow.waitFor({ state: 'detached' })
  assert.is(await statusOf(second), 401)
  await page.getByText('The organization has no environment.').waitFor()
  assert.is(await page.getByRole('heading', { name: 'API keys of the environment' }).count(), 0)

  const orgRow = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'leaving' }) })
  await orgRow.getByRole('button', { name: 'Delete' }).click()
  await submit.click()
  await orgRow.waitFor({ state: 'detached' })
  assert.is(await page.getByRole('heading', { name: 'Environments of leaving' }).count(), 0)
  assert.equal(errors, [])
})

story(
  'the node is listed with its roles, and shows its engines, sandbox and checks',
  async ({ chromium, server }) => {
    const { page, go, errors } = await openDashboard(chromium, server)
    await go('/operator?section=node')
    await page.getByRole('heading', { name: 'Operator' }).waitFor()
    await signInAsOperator({ page, server })
    const nodes = page.getByRole('region', { name: 'Nodes' }).first()
    await nodes.getByRole('row', { name: /this one answers .* api, worker, projector, saga/ }).waitFor()
    await page
      .getByRole('row', { name: /event store/ })
      .getByText('Answers')
      .waitFor()
    await page.getByRole('region', { name: 'Checks', exact: true }).getByRole('row').nth(1).waitFor()
    await go('/operator?section=defects')
    await page.getByText('No event was abandoned.').waitFor()
    await page.getByText('No fact was skipped.').waitFor()
    assert.is(errors.filter((text) => !text.includes('401')).length, 0)
  },
)

story(
  'a slider shows an organization and a key as they were after each of their changes',
  async (context) => {
    const { chromium, server } = context
    const api = openApi(server.url, operatorTokenOf(server))
    const { org_id } = await api.post<{ org_id: string }>(`${server.url}/operator/orgs`, {
      slug: 'grows',
      name: 'Grows',
      plan: 'free',
    })
    for (const plan of ['pro', 'scale']) await api.patch(`${server.url}/operator/orgs/grows`, { plan })
    const { page, go, errors } = await openDashboard(chromium, server, {
      token: operatorTokenOf(server),
      path: '/operator?section=audit',
    })
    await page.getByText('Enter the id of an organization').waitFor()
    await page.getByLabel('Id, path, key or domain').fill(org_id)
    const state = (number: number) => page.getByRole('region', { name: `state after fact ${number}` })
    await state(3).getByText('"plan": "scale"').waitFor()
    const slider = page.getByRole('slider', { name: 'Fact 3 of 3' })
    await slider.focus()
    await page.keyboard.press('ArrowLeft')
    await state(2).getByText('"plan": "pro"').waitFor()
    await page.getByRole('region', { name: 'changes of fact 2' }).getByText('"before": "free"').waitFor()
    await page.keyboard.press('Home')
    await state(1).getByText('"plan": "free"').waitFor()
    await page.reload()
    await state(1).getByText('"plan": "free"').waitFor()

    await go('/operator?section=audit')
    await page
      .getByRole('row', { name: /ApiKeyCreated/ })
      .first()
      .getByRole('link', { name: 'Over time' })
      .click()
    await page.getByText(/Fact \d+ of \d+/).waitFor()
    await page.getByLabel('Id, path, key or domain').fill('nothing-has-this-id')
    await page
      .getByRole('alert')
      .filter({ hasText: 'nothing in the log has the id, path, key or domain' })
      .waitFor()
    assert.equal(
      errors.filter((text) => !text.includes('404')),
      [],
    )
  },
)

// The last story, because its facts fill the first pages of the audit.
story('the environments of an organization have pages of their own', async ({ chromium, server }) => {
  const token = operatorTokenOf(server)
  const own = openApi(server.url, token)
  const to = (path: string) => `${server.url}/operator${path}`
  await own.post(to('/orgs'), { slug: 'large', plan: 'free' })
  for (let n = 1; n <= 101; n++) await own.post(to('/orgs/large/envs'), { name: `customer-${n}` })
  const { page } = await openDashboard(chromium, server, {
    token,
    path: '/operator?section=organizations&org=large',
  })
  const envs = page.getByRole('region', { name: 'Environments of large' }).first()
  await envs.getByRole('cell', { name: 'customer-101', exact: true }).waitFor()
  const last = envs.getByRole('row', { name: /^customer-1 / })
  while (await envs.getByRole('button', { name: 'Next' }).isEnabled()) {
    const range = await envs.getByText(/ of 101$/).innerText()
    await envs.getByRole('button', { name: 'Next' }).click()
    await until(async () => (await envs.getByText(/ of 101$/).innerText()) !== range)
  }
  await last.waitFor()
  await last.getByRole('link', { name: 'Show API keys' }).click()
  await page.getByRole('heading', { name: 'API keys of the environment' }).waitFor()
  await last.waitFor()
  const orgs = page.getByRole('region', { name: 'Organizations, the newest first' })
  await orgs.getByRole('link', { name: 'large', exact: true }).waitFor()
})

story.run()
