import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testRun } from 'svc/test'
import { nightly, onPaid } from '../src/invoices.ts'
import { onCreated } from '../src/orders.ts'
import { PaymentError } from '../src/payments.ts'
import { stripe } from '../src/shop.ts'

const order = { id: 'o1', lines: [{ sku: 'cup', price: 1200, count: 2 }] }
const payment = { payment_id: 'p1', amount: 2400 }

test('a new order is charged', async () => {
  const t = testRun({ calls: { 'payments/charge': () => payment } })
  assert.deepEqual(await t.run(onCreated, { data: order }), payment)
  assert.deepEqual(t.emitted, [{ dataType: 'progress', payload: { step: 'charging', amount: 2400 } }])
  assert.deepEqual(t.sent, [{ type: 'order:paid', data: { order, ...payment } }])
})

test('a charge that fails is tried again after a second', async () => {
  let attempts = 0
  const charge = () => {
    if (++attempts === 1) throw new PaymentError('order o1 was not charged', 503)
    return payment
  }
  const t = testRun({ calls: { 'payments/charge': charge } })
  await assert.rejects(t.run(onCreated, { data: order }), { name: 'PaymentError' })
  assert.deepEqual(t.nextRetry, { attempt: 2, delay: 1000 })
  assert.deepEqual(t.sent, [])
  assert.deepEqual(await t.retry(), payment)
})

test('an order without lines is refused', async () => {
  const t = testRun()
  await assert.rejects(t.run(onCreated, { data: { id: 'o2', lines: [] } }), /^TypeError: order\/lines: /)
})

test('a paid order has an invoice, which the report of the night contains', async () => {
  const t = testRun()
  await t.run(onPaid, { data: { order, ...payment } })
  assert.match(String(t.files['invoices/o1.txt']), /^2 x cup: 24\.00 EUR\nTotal: 24\.00 EUR/m)
  const tick = { data: { cron: '0 3 * * *', scheduled_time: '2026-03-01T02:00:00.000Z' } }
  assert.deepEqual(await t.run(nightly, tick), { day: '2026-03-01', invoices: 1 })
  assert.equal(t.files['reports/2026-03-01.csv'], 'invoice\ninvoices/o1.txt\n')
})

test('a paid checkout becomes an order', async () => {
  const t = testRun()
  const object = { client_reference_id: 'o1', metadata: { lines: JSON.stringify(order.lines) } }
  const body = { type: 'checkout.session.completed', data: { object } }
  assert.deepEqual(await t.run(stripe, { body }), { status: 202, body: { order: 'o1' } })
  assert.deepEqual(t.sent, [{ type: 'order:created', data: order }])
})
