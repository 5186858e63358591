import * as assert from 'uvu/assert'
import { deploy, type Event, handled, publish, type Run, type Webhook } from '../support/build.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const server = await startServer()
const { api } = server
await deploy(api, 'shop', {
  'orders.js': `import { callWith, currentRun, fn, send } from 'svc'
export const onOrder = fn({ 'on-event': 'order', retry: { attempts: 2, delay: 1 } }, async ({ data }) => {
  const { event_id } = await send('paid', { order: data.id }, { idempotencyKey: 'paid-' + data.id })
  const { run_id } = await callWith('orders/mail', [data.id], { idempotencyKey: 'mail-' + data.id })
  if (currentRun().attempt < 3) throw new Error(event_id + ' ' + run_id)
  return event_id + ' ' + run_id
})
export const hook = fn({ webhook: { service: 'shop', path: '/paid' } }, async ({ body }) =>
  send('delivered', body, { idempotencyKey: body.id }))
export const large = fn({ 'on-event': 'large' }, ({ data }) =>
  send('stored', 'x'.repeat(data), { idempotencyKey: 'large' }))
export const mail = (id) => 'mailed ' + id`,
})

const eventsOf = async (type: string): Promise<readonly Event[]> =>
  (await api.page<Event>(`/events?event_type=${type}&limit=100`)).data

const keyed = suite('idempotency keys of functions')
keyed.after(() => server.stop())

keyed('a retry sends and calls nothing twice, and gets the same ids', async () => {
  const attempts = await handled(api, (await publish(api, 'order', { id: 'o1' })).event_id, 3)
  const ids = new Set(attempts.map(({ result, error }) => error?.message ?? result))
  assert.is(ids.size, 1)
  assert.is((await eventsOf('paid')).length, 1)
  const [, run_id] = String([...ids][0]).split(' ')
  const mails = await until(async () => {
    const { data } = await api.page<Run>(`/runs?fn=orders/mail&limit=10`)
    return data[0]?.status === 'succeeded' ? data : undefined
  })
  assert.equal(
    mails.map((run) => [run.run_id, run.result, run.stream_id]),
    [[run_id, 'mailed o1', attempts[0]?.stream_id]],
  )
})

keyed('deliveries of a webhook in streams of their own send once', async () => {
  const [{ url }] = (await api.page<Webhook>('/projects/shop/webhooks')).data as [Webhook]
  const replies = await Promise.all(
    Array.from({ length: 8 }, () => api.send('POST', url, { body: { id: 'evt-1' } })),
  )
  assert.equal(new Set(replies.map(({ status }) => status)), new Set([200]))
  const sent = await eventsOf('delivered')
  assert.is(sent.length, 1)
  const ids = replies.map(({ text }) => (JSON.parse(text) as { event_id: string }).event_id)
  assert.equal(new Set(ids), new Set([sent[0]?.event_id]))
})

keyed('large data is the same under its key, and other data is refused', async () => {
  const codes: unknown[] = []
  for (const size of [200_000, 200_000, 200_001]) {
    const [run] = await handled(api, (await publish(api, 'large', size)).event_id)
    codes.push(run?.error?.fields?.['code'] ?? null)
  }
  assert.equal(codes, [null, null, 'idempotency_key_reused'])
  assert.is((await eventsOf('stored')).length, 1)
})

keyed.run()
