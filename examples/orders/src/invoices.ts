import { files, fn } from 'svc'
import { euros, type PaidOrder } from './_shared/order.ts'

/** Writes the invoice of each paid order. */
export const onPaid = fn({ 'on-event': 'order:paid', context: [] }, async (event) => {
  const { order, amount, payment_id }: PaidOrder = event.data
  const lines = order.lines.map(({ sku, price, count }) => `${count} x ${sku}: ${euros(price * count)}`)
  const text = [`Invoice ${order.id}`, ...lines, `Total: ${euros(amount)}, paid with ${payment_id}`, ''].join(
    '\n',
  )
  const { path } = await files.put(`invoices/${order.id}.txt`, text, { contentType: 'text/plain' })
  return { path }
})

/** Lists the invoices of all orders in a file, every night. */
export const nightly = fn(
  { schedule: { cron: '0 3 * * *', timezone: 'Europe/Berlin' }, context: [] },
  async (tick) => {
    const paths = await invoicePaths()
    const day = tick.data.scheduled_time.slice(0, 10)
    await files.put(`reports/${day}.csv`, ['invoice', ...paths, ''].join('\n'), { contentType: 'text/csv' })
    return { day, invoices: paths.length }
  },
)

const PAGE = 100

const invoicePaths = async (): Promise<string[]> => {
  const paths: string[] = []
  for (;;) {
    const page = await files.list({ prefix: 'invoices/', limit: PAGE, offset: paths.length })
    paths.push(...page.map(({ path }) => path))
    if (page.length < PAGE) return paths
  }
}
