import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import * as assert from 'uvu/assert'
import type { Domain } from '../../src/client/index.ts'
import { startDns } from '../support/dnsServer.ts'
import { openApi } from '../support/http.ts'
import { openDashboard, operatorTokenOf } from '../support/openDashboard.ts'
import { stories } from '../support/stories.ts'

const dns = await startDns()

const story = stories('custom domains in the dashboard', {
  env: { SVC_DNS_SERVERS: dns.address, SVC_DOMAINS_ZONE: 'svc.test', SVC_DOMAIN_CHECK_MS: '60000' },
  end: () => dns.stop(),
})

story('a domain is set up until it is active, and deleted', async ({ chromium, server }) => {
  const { page, errors } = await openDashboard(chromium, server, { path: '/domains' })
  await page.getByText('No domain is registered.').waitFor()
  await page.getByRole('button', { name: 'Register a domain' }).click()
  const dialog = page.getByRole('dialog')
  const register = dialog.getByRole('button', { name: 'Register a domain' })
  await dialog.getByLabel('Domain', { exact: true }).fill('https://hooks.example.com')
  await register.click()
  await dialog.getByText(/^domain: expected/).waitFor()
  await dialog.getByLabel('Domain', { exact: true }).fill('hooks.example.com')
  await register.click()

  const card = page.getByRole('article', { name: 'hooks.example.com' })
  const present = card.locator('[aria-current=step]')
  await present.getByText('pending_validation').waitFor()
  await card.getByRole('button', { name: 'Verify now' }).click()
  await card.getByText('found no such record').waitFor()

  const records = card.getByRole('list', { name: 'DNS records of hooks.example.com' }).getByRole('listitem')
  const [name = '', target = ''] = await records.first().locator('code').allInnerTexts()
  dns.records.set(name, target)
  await card.getByRole('button', { name: 'Verify now' }).click()
  await present.getByText('provisioning').waitFor()
  const [own = '', routing = ''] = await records.nth(1).locator('code').allInnerTexts()
  assert.is(own, 'hooks.example.com')
  dns.records.set(own, routing)
  await card.getByRole('button', { name: 'Verify now' }).click()
  await present.getByText('active', { exact: true }).waitFor()
  await card.getByText('The domain is active').waitFor()
  const [stored] = (await server.api.page<Domain>('/domains')).data
  assert.is(stored?.status, 'active')

  await card.getByRole('button', { name: 'Delete' }).click()
  await dialog.getByText('Its webhooks stop at once').waitFor()
  await dialog.getByRole('button', { name: 'Delete' }).click()
  await page.getByText('No domain is registered.').waitFor()
  assert.is((await server.api.page('/domains')).pagination.total, 0)
  assert.is(errors.filter((text) => !text.includes('400')).length, 0)
})

story('a page without domains shows the command that registers one', async ({ chromium, server }) => {
  const { page } = await openDashboard(chromium, server, { path: '/domains' })
  const command = await page.locator('.empty code').innerText()
  const env = { ...process.env, SVC_KEY: server.api.key }
  const { stdout } = await promisify(execFile)('sh', ['-c', command], { env })
  assert.match(stdout, 'pending_validation')
  await page.reload()
  await page.getByRole('article', { name: 'hooks.example.com' }).waitFor()
})

story('the limit of a plan is explained', async ({ chromium, server }) => {
  const operator = openApi(server.url, operatorTokenOf(server))
  const post = <T>(path: string, body: object) => operator.post<T>(`${server.url}/operator${path}`, body)
  await post('/orgs', { slug: 'small', plan: 'free' })
  const { env_id } = await post<{ env_id: string }>('/orgs/small/envs', { name: 'dev' })
  const { token } = await post<{ token: string }>(`/envs/${env_id}/api-keys`, { name: 'all' })
  const { page } = await openDashboard(chromium, server, { token, path: '/domains' })
  await page.getByRole('button', { name: 'Register a domain' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Domain', { exact: true }).fill('small.example.com')
  await dialog.getByRole('button', { name: 'Register a domain' }).click()
  await dialog.getByRole('alert').filter({ hasText: /plan/ }).waitFor()
})

story.run()
