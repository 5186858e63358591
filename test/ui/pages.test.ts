import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { violationsOf } from '../support/axe.ts'
import { call, deploy } from '../support/build.ts'
import {
  openDashboard,
  operatorTokenOf,
  signInAsOperator,
  type StartedDashboard,
} from '../support/openDashboard.ts'
import { openApi } from '../support/http.ts'
import { stories } from '../support/stories.ts'
import { until } from '../support/until.ts'

/** Every page by the beginning of its heading, with a comma and more if several share it: its path below `/ui`. */
const PAGES = {
  Overview: () => '',
  Runs: () => '/runs',
  Run: (run_id: string) => `/runs/${run_id}`,
  Stream: () => '/streams',
  'Stream, one': (_: string, stream_id: string) => `/streams/${stream_id}`,
  Events: () => '/events',
  Functions: () => '/functions',
  Builds: () => '/builds',
  Files: () => '/files',
  Secrets: () => '/secrets',
  'Keys and sessions': () => '/keys',
  Domains: () => '/domains',
  Audit: () => '/history?as_of=2020-01-01T00:00:00.000Z',
  Operator: () => '/operator',
  'Operator, organization': () => '/operator?section=organizations&org=hostile',
  'Operator, node': () => '/operator?section=node',
  'Operator, read models': () => '/operator?section=read-models',
  'Operator, audit': () => '/operator?section=audit',
} as const

/** A text of a tenant that breaks a page which does not escape it, or one whose cells do not wrap. */
const HOSTILE = `"><img src=x onerror="window.broken=1"><script>window.broken=1</script>${'x'.repeat(500)}`

const folder = join(import.meta.dirname, '../../docs/ui')

interface Context extends StartedDashboard {
  run_id: string
  stream_id: string
}

const test = stories<Context>('the pages of the dashboard', {
  prepare: async (context) => {
    const { api } = context.server
    await deploy(api, 'shop', {
      'orders.js': `
      import { emit, fn } from 'svc'
      export const emits = async (text) => { await emit('word', text); await emit(text.slice(0, 100), { [text]: text }) }
      export const fails = async (text) => { console.log(text); await emit('word', text); throw new Error(text) }
      export const works = (text) => ({ text })
      export const on = fn({ 'on-event': ${JSON.stringify(HOSTILE.slice(0, 200))} }, () => 1)
      export const hook = fn({ webhook: { service: 'pay', path: '/hook' } }, () => 1)
      export const nightly = fn({ schedule: { cron: '0 3 1 1 *' } }, () => 1)
    `,
    })
    await api.post('/projects/shop/context', { key: 'K'.repeat(128), value: 'a', description: HOSTILE })
    await call(api, 'orders/works', HOSTILE)
    context.stream_id = (await call(api, 'orders/emits', HOSTILE)).stream_id
    context.run_id = (await call(api, 'orders/fails', HOSTILE)).run_id
    await api.post('/service-keys', {
      name: HOSTILE.slice(0, 200),
      permissions: { [`event:${HOSTILE}`]: ['create'] },
      metadata: { text: HOSTILE },
    })
    await api.post('/sessions', { permissions: { 'run:*': ['read'] }, metadata: { [HOSTILE]: HOSTILE } })
    const operator = openApi(context.server.url, operatorTokenOf(context.server))
    const post = (path: string, body: object) => operator.post(`${context.server.url}/operator${path}`, body)
    const { env_id } = await api.get<{ env_id: string }>('/env')
    await post('/orgs', { slug: 'hostile', name: HOSTILE.slice(0, 200), plan: 'pro' })
    await post('/orgs/hostile/envs', { name: 'x'.repeat(63) })
    await post(`/envs/${env_id}/api-keys`, {
      name: HOSTILE.slice(0, 200),
      permissions: { [`event:${HOSTILE}`]: ['create'] },
    })
    await api.post('/domains', { domain: `${'x'.repeat(60)}.${'y'.repeat(60)}.example.com` })
    await api.send('PUT', `/files/upload/${encodeURIComponent(HOSTILE.slice(0, 200))}`, {
      body: Buffer.from('a'),
      headers: { 'content-type': 'text/plain' },
    })
  },
})

const DESK = { width: 1280, height: 720 }
const PHONE = { width: 360, height: 740 }

for (const [name, pathOf] of Object.entries(PAGES))
  test(`${name} is accessible in both themes and on a phone, and shows hostile texts as texts`, async ({
    chromium,
    server,
    run_id,
    stream_id,
  }) => {
    const { page, errors } = await openDashboard(chromium, server, { path: pathOf(run_id, stream_id) })
    await page.getByRole('heading', { level: 1, name: new RegExp(`^${name.split(',')[0]}`) }).waitFor()
    if (await page.getByLabel('Operator token').isVisible()) await signInAsOperator({ page, server })
    await until(async () => (await page.getByText('Loading…').count()) === 0)
    await mkdir(folder, { recursive: true })
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize(DESK)
      assert.equal(await violationsOf(page), [])
      const file = `${name.toLowerCase().replaceAll(/\W+/g, '-')}-${colorScheme}.png`
      await page.screenshot({ path: join(folder, file) })
      await page.setViewportSize(PHONE)
      assert.equal(await violationsOf(page), [])
      const overflow = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'))
      assert.ok(overflow <= 0, `Expected no horizontal scrolling, got ${overflow} px`)
    }
    assert.is(await page.evaluate(() => 'broken' in globalThis), false)
    assert.equal(errors, [])
  })

test.run()
