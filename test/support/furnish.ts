import * as assert from 'uvu/assert'
import { put } from './backedUp.ts'
import { call, deploy, handle, publish, handled, type Run, upload } from './build.ts'
import type { Api } from './http.ts'
import { until } from './until.ts'

/** The value of a context variable. Results mask it, so a function returns its length. */
const SECRET = 'the secret value'
export const SECRET_LENGTH = SECRET.length

const CODE = `
import { context, fn, emit } from 'svc'
export const onAsked = fn({ 'on-event': 'asked' }, async ({ data }) => { console.log('asked'); await emit('word', 'hi'); return data })
export const onBroken = fn({ 'on-event': 'broken' }, async () => { throw new Error('no') })
export const nightly = fn({ schedule: '0 3 1 1 *' }, () => null)
export const hook = fn({ webhook: { service: 'shop', path: '/paid' }, 'secret-headers': ['x-key'] }, (request) => request.body)
export const readKey = async () => (await context('KEY')).length
export const add = (a, b) => a + b
`

/**
 * Fills an environment with something of everything: builds, files, variables, credentials, a domain, runs of every kind,
 * and payloads that are too large for the log. Resolves with the id of an upload; nothing else is in progress.
 */
export const furnish = async (api: Api): Promise<{ readonly upload_id: string }> => {
  await deploy(api, 'shop', { 'f.js': CODE })
  const [nightly] = (await api.page<{ schedule_id: string }>('/projects/shop/schedules')).data
  await api.post(`/projects/shop/schedules/${nightly?.schedule_id}/pause`)
  await deploy(api, 'other', { 'g.js': 'export const one = () => 1' })
  const live = await upload(api, 'shop', { 'f.js': CODE }, { live: 'true' })
  assert.is(live.status, 201, live.text)
  await api.post('/projects/shop/context', { key: 'KEY', value: SECRET, description: 'A key' })
  await put({ api }, 'a.txt', 'content')
  await put({ api }, 'large/b.bin', 'b'.repeat(300_000))
  await put({ api }, 'a.txt', 'newer content')
  await api.post('/sessions', { permissions: { 'run:*': ['read'] }, metadata: { a: 1 } })
  await api.post('/service-keys', {
    name: 'partner',
    permissions: { 'webhook:*': ['execute'] },
    metadata: { b: 2 },
  })
  await api.post('/domains', { domain: 'shop.example.com' })
  await handle(api, 'asked', { name: 'Ada' })
  await handle(api, 'asked', 'x'.repeat(200_000))
  await handle(api, 'broken')
  await call(api, 'f/add', 1, 2)
  const { event_id } = await publish(api, 'nobody:listens', [1, { a: null }])
  await handled(api, event_id, 0)
  const [webhook] = (await api.page<{ url: string }>('/projects/shop/webhooks')).data
  const path = new URL(webhook?.url ?? '').pathname
  const { status, text } = await api.send('POST', `${api.url}${path}`, {
    body: { paid: true },
    headers: { 'X-Key': 'hidden', 'Content-Type': 'application/json' },
  })
  assert.is(status, 200, text)
  const { run_id } = await api.post<Run>('/projects/shop/eval', { code: '1 + 1' })
  await until(async () => (await api.get<Run>(`/runs/${run_id}`)).status === 'succeeded')
  await until(async () => (await api.page<Run>('/runs?status=running')).pagination.total === 0)
  const { upload_id } = await api.post<{ upload_id: string }>('/files/uploads', { path: 'slow.bin' })
  const part = await api.send('PUT', `/files/uploads/${upload_id}/1`, { body: 'a part' })
  assert.is(part.status, 200, part.text)
  return { upload_id }
}
