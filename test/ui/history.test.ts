import * as assert from 'uvu/assert'
import type { AuditedFact, Project } from '../../src/client/index.ts'
import { deploy } from '../support/build.ts'
import { openDashboard } from '../support/openDashboard.ts'
import { stories } from '../support/stories.ts'
import { until } from '../support/until.ts'

const FILES = { 'f.js': 'export const add = (a, b) => a + b' }

/** More than the page compares in one step. */
const MANY = 1050

const story = stories('the audit in the dashboard')

story('a project is shown as it was before a change, beside the present', async ({ chromium, server }) => {
  const { api } = server
  await deploy(api, 'shop', FILES)
  const { project_id } = await api.get<Project>('/projects/shop')
  await api.patch('/projects/shop', { name: 'store', network: ['api.example.com'] })
  await api.post('/projects/store/context', { key: 'TOKEN', value: 'hidden value' })

  const { page, errors } = await openDashboard(chromium, server, { path: '/history' })
  const changes = page.getByRole('region', { name: /^Changes, the newest/ })
  await changes.getByRole('link', { name: 'ProjectRenamed' }).click()
  await page.waitForURL(/type=ProjectRenamed/)
  await until(async () => (await changes.getByRole('row').count()) === 2)
  await changes.getByRole('link', { name: 'The state before' }).click()

  const both = page.getByRole('region', { name: 'Projects, then and now' })
  const row = both.getByRole('row').filter({ hasText: project_id })
  await row.getByText('changed', { exact: true }).waitFor()
  assert.match(await row.getByRole('region', { name: `then ${project_id}` }).innerText(), '"name": "shop"')
  const now = await row.getByRole('region', { name: `now ${project_id}` }).innerText()
  assert.match(now, '"name": "store"')
  assert.not.match(now, 'created_at')

  await row.getByRole('link', { name: 'Names of secrets' }).click()
  const names = page.getByRole('region', { name: 'Names of secrets, then and now' })
  const secret = names.getByRole('row').filter({ hasText: 'TOKEN' })
  await secret.getByText('created since').waitFor()
  await secret.getByText('Did not exist').waitFor()
  assert.not.match(await page.content(), 'hidden value')
  assert.equal(errors, [])
})

story(
  'the slider and the field choose a time; the oldest one has no project',
  async ({ chromium, server }) => {
    const { api } = server
    await deploy(api, 'later', FILES)
    const { page } = await openDashboard(chromium, server, { path: '/history?show=builds' })
    const slider = page.getByRole('slider')
    await slider.focus()
    await page.keyboard.press('Home')
    await page.waitForURL(/as_of=/)
    const [oldest] = (await api.page<AuditedFact>('/audit?after=start&limit=1')).data
    assert.is(new URL(page.url()).searchParams.get('as_of'), oldest?.time)
    const builds = page.getByRole('region', { name: 'Builds, then and now' })
    await builds.getByText('created since').first().waitFor()
    await page.getByLabel('As of').fill('2999-01-01T00:00:00')
    await page.getByRole('alert').filter({ hasText: 'expected a time in the past' }).waitFor()
    await page.getByRole('button', { name: 'Show the present only' }).click()
    const now = page.getByRole('region', { name: 'Builds, now' })
    await now.getByRole('row').filter({ hasText: 'later' }).first().waitFor()
    assert.is(await page.getByText('created since').count(), 0)
  },
)

story('a list of more than 1,000 is compared in steps, and says how far', async (context) => {
  const { chromium, server } = context
  for (let sent = 0; sent < MANY; sent += 50)
    await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        server.api.post('/service-keys', {
          name: `key ${sent + n}`,
          permissions: { 'event:*': ['create'] },
        }),
      ),
    )
  const all = await server.api.page<{ service_key_id: string; created_at: string }>(
    `/service-keys?limit=1&offset=${MANY - 1}`,
  )
  const [oldest] = all.data
  const [then] = (await server.api.page<AuditedFact>('/audit?limit=1')).data
  await server.api.remove(`/service-keys/${oldest?.service_key_id}`)
  await server.api.post('/service-keys', { name: 'newest', permissions: { 'event:*': ['create'] } })

  const path = `/history?show=service_keys&as_of=${then?.time}`
  const { page, errors } = await openDashboard(chromium, server, { path })
  await page.getByText(/^1,0\d\d resources compared so far, the newest first: 1 differs\./).waitFor()
  await page.getByText('There were 1,050 then, and there are 1,051 now.').waitFor()
  const both = page.getByRole('region', { name: 'Service keys, then and now' })
  await both.getByRole('row').filter({ hasText: 'newest' }).getByText('created since').waitFor()
  assert.is(await both.getByText('deleted since').count(), 0, 'what was not read is not shown as deleted')
  await page.getByRole('button', { name: 'Compare more' }).click()
  await page.getByText('1,051 resources compared: 2 differ.').waitFor()
  await both
    .getByRole('row')
    .filter({ hasText: oldest?.service_key_id ?? '' })
    .getByText('changed', { exact: true })
    .waitFor()
  assert.is(await page.getByRole('button', { name: 'Compare more' }).count(), 0)
  await both.locator('..').getByRole('button', { name: 'Next' }).first().click()
  await page.waitForURL(/past_offset=50/)
  await page.getByText('1,051 resources compared: 2 differ.').waitFor()
  assert.equal(errors, [])
})

story('a deleted project is found by its id, and a missing permission is named', async (context) => {
  const { chromium, server } = context
  await deploy(server.api, 'doomed', FILES)
  const { project_id } = await server.api.get<Project>('/projects/doomed')
  const [newest] = (await server.api.page<AuditedFact>('/audit?limit=1')).data
  await server.api.remove(`/projects/${project_id}`)
  const path = `/history?show=project&id=${project_id}&as_of=${newest?.time}`
  const { page } = await openDashboard(chromium, server, { path })
  await page.getByText('deleted since').waitFor()

  const { token } = await server.api.post<{ token: string }>('/sessions', {
    permissions: { 'env:*': ['read'] },
  })
  const { page: theirs } = await openDashboard(chromium, server, { token, path: '/history' })
  await theirs.getByRole('alert').filter({ hasText: 'project:* read' }).waitFor()
  await theirs.getByRole('link', { name: 'ProjectDeleted' }).waitFor()
})

story.run()
