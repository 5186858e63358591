import { createHmac } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Static } from 'typebox'
import * as assert from 'uvu/assert'
import type { Schedule as ScheduleSchema } from '../../src/api/schemas.ts'
import { call, publish, runsOf, type Webhook } from '../support/build.ts'
import { compile, installExample, outputIn, svcIn } from '../support/example.ts'
import { EMBEDDED } from '../support/installation.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

type Schedule = Static<typeof ScheduleSchema>

interface Charge {
  readonly key: string | undefined
  readonly authorization: string | undefined
}

interface Context {
  /** The installed example. */
  project: string
  payments: Server
  /** The requests that the payment API has received. */
  charges: Charge[]
  server: TestServer
}

const orders = suite<Context>('the example orders', { timeoutMs: 120_000 })

const order = (id: string) => ({ id, lines: [{ sku: 'cup', price: 1200, count: 2 }] })
const SECRETS = { PAYMENT_KEY: 'pk_test_4711', STRIPE_WEBHOOK_SECRET: 'whsec_orders' }

/** A payment API that fails for the first request of each order, with 503 or by closing the connection. */
const openPayments = (charges: Charge[]): Promise<Server> => {
  const seen = new Set<string>()
  const server = createServer((request, response) => {
    const key = String(request.headers['idempotency-key'])
    charges.push({ key, authorization: request.headers.authorization })
    const isFirst = !seen.has(key)
    seen.add(key)
    if (isFirst && key.startsWith('cut')) return void request.destroy()
    response.statusCode = isFirst ? 503 : 200
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ id: `p-${key}` }))
  })
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)))
}

orders.before(async (context) => {
  context.charges = []
  context.payments = await openPayments(context.charges)
  const address = `127.0.0.1:${(context.payments.address() as AddressInfo).port}`
  context.project = await installExample('orders')
  context.server = await startServer({ env: { ...EMBEDDED, SVC_EGRESS_ALLOW: address } })
  const { api } = context.server
  const env = { SVC_URL: api.url, SVC_KEY: api.key }
  const printed = await outputIn(context.project, process.execPath, [svcIn(context.project), 'deploy'], env)
  assert.match(printed, /^ {2}\+ orders\/onCreated$/m)
  for (const [key, value] of Object.entries({ ...SECRETS, PAYMENT_URL: `http://${address}` }))
    await api.post('/projects/orders/context', { key, value })
})
orders.after(async ({ server, payments }) => {
  await server.stop()
  payments.close()
})

orders('compiles with the installed package', ({ project }) => compile(project))

orders('passes its own tests', async ({ project }) => {
  const out = await outputIn(project, process.execPath, ['--test'])
  assert.match(out, /^# pass 5$|^ℹ pass 5$/m)
})

for (const id of ['down-1', 'cut-1'])
  orders(
    `charges the order ${id} once, although the payment API fails first`,
    async ({ server, charges }) => {
      const { event_id } = await publish(server.api, 'order:created', order(id))
      const [first] = await until(async () => {
        const runs = await runsOf(server.api, event_id)
        return runs.some(({ status }) => status === 'succeeded') ? runs.toReversed() : undefined
      })
      assert.is(first?.status, 'failed')
      assert.is(first?.error?.location?.file, 'src/orders.ts')
      assert.match(first?.error?.location?.snippet ?? '', "run<Payment>('payments/charge', order)")
      assert.equal(
        charges.filter(({ key }) => key === id),
        [0, 1].map(() => ({ key: id, authorization: `Bearer ${SECRETS.PAYMENT_KEY}` })),
      )
      const invoice = await until(async () => textOf(server, `invoices/${id}.txt`))
      assert.is(invoice, `Invoice ${id}\n2 x cup: 24.00 EUR\nTotal: 24.00 EUR, paid with p-${id}\n`)
    },
  )

/** The content of a file; undefined if there is none. */
const textOf = async ({ api }: TestServer, path: string): Promise<string | undefined> => {
  const { data } = await api.page<{ file_id: string }>(`/files?prefix=${path}`)
  return data[0] && (await api.send('GET', `/files/${data[0].file_id}/download`)).text
}

orders('makes an order of a checkout that Stripe has signed, once', async ({ server }) => {
  const { data } = await server.api.page<Webhook>('/projects/orders/webhooks')
  const body = JSON.stringify({
    id: 'evt_1',
    type: 'checkout.session.completed',
    data: { object: { client_reference_id: 's1', metadata: { lines: JSON.stringify(order('s1').lines) } } },
  })
  const deliver = async (secret: string) => {
    const time = Math.floor(Date.now() / 1000)
    const signature = createHmac('sha256', secret).update(`${time}.${body}`).digest('hex')
    const headers = { 'stripe-signature': `t=${time},v1=${signature}` }
    return server.api.send('POST', String(data[0]?.url), { body, headers })
  }
  assert.is((await deliver('whsec_of_another')).status, 401)
  for (const _ of [1, 2]) {
    const { status, json } = await deliver(SECRETS.STRIPE_WEBHOOK_SECRET)
    assert.equal([status, json], [202, { order: 's1' }])
  }
  await until(async () => textOf(server, 'invoices/s1.txt'))
  const events = await server.api.page<{ event_type: string }>('/events?limit=100')
  assert.is(events.data.filter(({ event_type }) => event_type === 'order:created').length, 3)
})

orders('reports the invoices at three in the morning in Berlin', async ({ server }) => {
  const { data } = await server.api.page<Schedule>('/projects/orders/schedules')
  const schedules = data.map(({ ns, var: name, cron, timezone }) => [`${ns}/${name}`, cron, timezone])
  assert.equal(schedules, [['invoices/nightly', '0 3 * * *', 'Europe/Berlin']])
  const tick = { data: { cron: '0 3 * * *', scheduled_time: '2026-03-01T02:00:00.000Z' } }
  const run = await call(server.api, 'invoices/nightly', tick)
  assert.equal(run.result, { day: '2026-03-01', invoices: 3 })
  assert.is(
    await textOf(server, 'reports/2026-03-01.csv'),
    'invoice\ninvoices/cut-1.txt\ninvoices/down-1.txt\ninvoices/s1.txt\n',
  )
})

orders('keeps its secrets out of runs', async ({ server }) => {
  const runs = await server.api.send('GET', '/runs?limit=100')
  assert.is(runs.status, 200)
  for (const secret of Object.values(SECRETS)) assert.not.match(runs.text, secret)
})

orders.run()
