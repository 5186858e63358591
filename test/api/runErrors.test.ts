import * as assert from 'uvu/assert'
import { call, deploy, ended, type Run } from '../support/build.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { publishAndFollow } from './sse.ts'

const ORDERS = `import { call, callWith, emit, fn, run, send } from 'svc'

class PaymentError extends Error {
  name = 'PaymentError'
  code = 'card_declined'
}

export const charge = (order: { id: number }) => {
  throw new PaymentError(\`declined \${order.id}\`, { cause: new Error('the bank said no') })
}
export const checkout = (order: { id: number }) => run('orders/charge', order)
export const patient = async (order: { id: number }) => {
  try {
    return await run('orders/charge', order)
  } catch (error: any) {
    return [error instanceof Error, error.name, error.message, error.code, error.cause.message, error.run_id]
  }
}
export const onFail = fn({ 'on-event': 'fail' }, () => charge({ id: 1 }))
export const lossy = () => ({ totals: [new Map()] })
export const given = async () => {
  const calls = [
    () => send('a', { tags: new Set() }),
    () => emit('a', [Number.NaN]),
    () => run('orders/lossy', { order: new Map() }),
    () => call('orders/lossy', 1n),
    () => callWith('orders/lossy', [[new Date(0), new Error()]]),
    () => emit('a', Buffer.from('a')),
  ]
  const settled = await Promise.allSettled(calls.map((each) => each()))
  return settled.map(({ reason }: any) => [reason?.name, reason?.message, /orders[.]ts:[0-9]+/.exec(reason?.stack)?.[0]])
}
`

const server = await startServer()
const { api } = server
await deploy(api, 'shop', { 'orders.ts': ORDERS })

const errors = suite('the error of a run')

errors('contains its class, its own fields, its cause and its place in the source', async () => {
  const { status, error, result } = await call(api, 'orders/charge', { id: 7 })
  assert.is(status, 'failed')
  assert.equal([error?.code, error?.name, error?.message], ['function_failed', 'PaymentError', 'declined 7'])
  assert.equal(error?.location, {
    file: 'orders.ts',
    line: 9,
    column: 9,
    snippet: "  throw new PaymentError(`declined ${order.id}`, { cause: new Error('the bank said no') })",
  })
  assert.equal(error?.fields, { code: 'card_declined' })
  assert.equal([error?.cause?.name, error?.cause?.message], ['Error', 'the bank said no'])
  assert.equal(result, { error })
})

errors('is that of the child run, at the line of the call in the parent', async () => {
  const { error } = await call(api, 'orders/checkout', { id: 7 })
  assert.equal([error?.code, error?.name, error?.message], ['function_failed', 'PaymentError', 'declined 7'])
  assert.equal([error?.location?.file, error?.location?.line], ['orders.ts', 11])
  assert.is(error?.cause?.message, 'the bank said no')
  const child = await ended(api, String(error?.fields?.['run_id']))
  assert.equal([child.fn, child.status, child.error?.location?.line], ['orders/charge', 'failed', 9])
})

errors('of a child run can be caught by the parent', async () => {
  const { result } = await call(api, 'orders/patient', { id: 7 })
  const [run_id] = (result as unknown[]).splice(-1)
  assert.equal(result, [true, 'PaymentError', 'declined 7', 'card_declined', 'the bank said no'])
  assert.is((await ended(api, String(run_id))).fn, 'orders/charge')
})

errors('is the same in lists and in the stream', async () => {
  const events = await (await publishAndFollow(api, 'fail')).rest()
  const failed = events.find(({ event }) => event === 'run:fail')?.data['run'] as Run
  const run = await api.get<Run>(`/runs/${failed.run_id}`)
  assert.equal(failed.error, run.error)
  const listed = await until(async () =>
    (await api.page<Run>('/runs?limit=100')).data.find(({ run_id }) => run_id === run.run_id),
  )
  assert.equal(listed.error, run.error)
})

errors('names the path to what JSON cannot represent', async () => {
  const { error } = await call(api, 'orders/lossy')
  assert.is(error?.code, 'result_not_serializable')
  assert.match(error?.message ?? '', 'result.totals[0] is a Map; use Object.fromEntries(map)')
})

errors(
  'names the path to what JSON cannot represent in data and arguments, at the line of the call',
  async () => {
    const { result } = await call(api, 'orders/given')
    const messages = [
      'Expected send() with JSON: data.tags is a Set; use [...set]',
      'Expected emit() with JSON: payload[0] is NaN; use null or a text',
      'Expected run() with JSON: args[0].order is a Map; use Object.fromEntries(map)',
      'Expected call() with JSON: args[0] is a BigInt; use String(value)',
      'Expected call() with JSON: args[0][1] is an error (Error); use its message',
      "Expected emit() with JSON: payload is bytes (Buffer); use Buffer.from(bytes).toString('base64')",
    ]
    const first = ORDERS.split('\n').findIndex((line) => line.includes("send('a'")) + 1
    assert.equal(
      result,
      messages.map((message, n) => ['TypeError', message, `orders.ts:${first + n}`]),
    )
  },
)

errors.after(() => server.stop())

errors.run()
