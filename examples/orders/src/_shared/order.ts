import { type Static, Type } from 'typebox'
import { Errors } from 'typebox/value'

const Order = Type.Object({
  id: Type.String({ pattern: '^[\\w-]+$' }),
  lines: Type.Array(
    Type.Object({
      sku: Type.String(),
      price: Type.Integer({ minimum: 0 }),
      count: Type.Integer({ minimum: 1 }),
    }),
    { minItems: 1 },
  ),
})

/** An order. Prices are in cents. */
export type Order = Static<typeof Order>

export interface Payment {
  readonly payment_id: string
  readonly amount: number
}

export interface PaidOrder extends Payment {
  readonly order: Order
}

/** The order in the data of an event, which anybody with a key can publish. */
export const parseOrder = (data: unknown): Order => {
  const [error] = Errors(Order, data)
  if (error) throw new TypeError(`order${error.instancePath}: ${error.message}`)
  return data as Order
}

export const totalOf = ({ lines }: Order): number =>
  lines.reduce((sum, { price, count }) => sum + price * count, 0)

export const euros = (cents: number): string => `${(cents / 100).toFixed(2)} EUR`
