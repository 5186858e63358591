import { emit, fn, run, send } from 'svc'
import { parseOrder, type PaidOrder, type Payment, totalOf } from './_shared/order.ts'

/**
 * Charges each new order. If the payment API fails, the function starts again a second later. The id of the order is the
 * idempotency key of the charge, so an order is charged once.
 */
export const onCreated = fn(
  { 'on-event': 'order:created', retry: { attempts: 3, delay: 1000 } },
  async (event) => {
    const order = parseOrder(event.data)
    await emit('progress', { step: 'charging', amount: totalOf(order) })
    const payment = await run<Payment>('payments/charge', order)
    const paid: PaidOrder = { order, ...payment }
    await send('order:paid', paid)
    return payment
  },
)
