import { fn, send } from 'svc'
import { parseOrder } from './_shared/order.ts'

/** Receives the events of Stripe. The service checks their signature, and runs a repeated delivery once. */
export const stripe = fn(
  {
    webhook: { service: 'shop', path: '/stripe', verify: { stripe: 'STRIPE_WEBHOOK_SECRET' } },
    context: [],
  },
  async ({ body }) => {
    if (body.type !== 'checkout.session.completed') return { status: 204 }
    const { client_reference_id, metadata } = body.data.object
    const order = parseOrder({ id: client_reference_id, lines: JSON.parse(metadata.lines) })
    await send('order:created', order)
    return { status: 202, body: { order: order.id } }
  },
)
