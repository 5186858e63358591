import * as assert from 'uvu/assert'
import { isId } from '../../src/ids.ts'
import { type Build, deploy, type Webhook } from '../support/build.ts'
import { startWithOther } from '../support/server.ts'
import { suite } from '../support/suite.ts'

const server = await startWithOther()
const { api, other } = server

const FUNCTIONS = `
import { fn } from 'svc'
export const onA = fn({ 'on-event': 'a' }, () => {})
export const onB = fn({ onEvent: 'b', retry: 2 }, () => {})
export const nightly = fn({ schedule: '0 3 * * *' }, () => {})
export const berlin = fn({ schedule: { cron: '*/5 * * * *', timezone: 'Europe/Berlin' } }, () => {})
export const hook = fn({ webhook: { service: 'stripe', path: '/paid', description: 'told' } }, () => {})
export const plain = () => {}
`

const functions = suite('functions of the deployed build')

functions.before(async () => {
  await api.post('/projects', { name: 'listed' })
  await deploy(api, 'listed', { 'a/b.ts': FUNCTIONS, '_hidden/c.ts': FUNCTIONS, '.dot/c.ts': FUNCTIONS })
})

functions('are listed as event handlers', async () => {
  const { build_id } = await api.get<Build>('/projects/listed/builds/deployed')
  const { data, pagination } = await api.page<Record<string, string>>('/projects/listed/event-handlers')
  assert.is(pagination.total, 2)
  assert.equal(
    data.map(({ event_handler_id, ...rest }) => (assert.ok(isId(event_handler_id ?? '')), rest)),
    [
      { build_id, event_type: 'a', ns: 'a.b', var: 'onA' },
      { build_id, event_type: 'b', ns: 'a.b', var: 'onB' },
    ],
  )
})

functions('are listed as schedules', async () => {
  const { data } = await api.page<Record<string, string>>('/projects/listed/schedules')
  assert.equal(
    data.map(({ cron, timezone, ns, var: name }) => [cron, timezone, ns, name]),
    [
      ['*/5 * * * *', 'Europe/Berlin', 'a.b', 'berlin'],
      ['0 3 * * *', 'UTC', 'a.b', 'nightly'],
    ],
  )
})

functions('are listed as webhooks with their URL', async () => {
  const { data } = await api.page<Webhook>('/projects/listed/webhooks')
  const [{ webhook_id, build_id, url, ...rest }] = data as [Webhook]
  assert.is(data.length, 1)
  assert.ok(isId(webhook_id) && isId(build_id))
  assert.match(
    url,
    new RegExp(`^${server.url}/webhook/(local|t-[0-9a-f-]{36})/dev/stripe/paid/[A-Za-z0-9]{32,}$`),
  )
  const named = { name: 'a.b_hook', description: 'told', auth: 'none', ns: 'a.b', var: 'hook' }
  assert.equal(rest, { service: 'stripe', path: '/paid', method: 'POST', ...named })
})

functions('are listed in pages', async () => {
  const { data, pagination } = await api.page<{ var: string }>(
    '/projects/listed/event-handlers?limit=1&offset=1',
  )
  assert.equal(
    data.map((handler) => handler.var),
    ['onB'],
  )
  assert.equal(pagination, { total: 2, limit: 1, offset: 1, has_more: false })
})

functions('are not listed once their build is replaced', async () => {
  await deploy(api, 'listed', { 'other.js': 'export const a = () => 1' })
  for (const what of ['event-handlers', 'schedules', 'webhooks']) {
    assert.equal((await api.page(`/projects/listed/${what}`)).data, [])
    assert.is((await other.refused('GET', `/projects/listed/${what}`)).status, 404)
  }
})

functions.after(() => server.stop())
functions.run()
