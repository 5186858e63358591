import { context, fn } from 'svc'
import { type Order, type Payment, totalOf } from './_shared/order.ts'

export class PaymentError extends Error {
  override readonly name = 'PaymentError'
  readonly status: number

  constructor(message: string, status: number) {
    super(message)
    this.status = status
  }
}

/** Charges an order at the payment API. Of all context variables, it can read these two. */
export const charge = fn(
  { context: ['PAYMENT_URL', 'PAYMENT_KEY'] },
  async (order: Order): Promise<Payment> => {
    const response = await fetch(`${await context('PAYMENT_URL')}/charges`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${await context('PAYMENT_KEY')}`,
        'content-type': 'application/json',
        'idempotency-key': order.id,
      },
      body: JSON.stringify({ amount: totalOf(order), currency: 'eur' }),
    })
    if (!response.ok) throw new PaymentError(`order ${order.id} was not charged`, response.status)
    const { id } = (await response.json()) as { id: string }
    return { payment_id: id, amount: totalOf(order) }
  },
)
