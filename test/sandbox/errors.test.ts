import * as assert from 'uvu/assert'
import { AppError } from '../../src/errors.ts'
import { FailedRun } from '../../src/events/failedRun.ts'
import type { Thrown } from '../../src/events/run.ts'
import { mapOfLines } from '../support/sourceMaps.ts'
import { suite } from '../support/suite.ts'
import { openWorkbench, resultOf, type Workbench } from './harness.ts'

/** What the author wrote, and what the bundler made of it: six lines later, under another name. */
const SOURCE = `import { chargeCard } from '../pay/card.ts'

export const charge = (order: Order) => {
  throw new Error(\`no money for \${order.id}\`)
}
`
const BUNDLED = `${'\n'.repeat(6)}export const charge = (order) => {
  throw new Error(\`no money for \${order.id}\`)
};
`
const MAP = mapOfLines('../../src/orders/charge.ts', SOURCE, [
  ...Array.from({ length: 6 }, () => undefined),
  2,
  3,
  4,
])
const inline = Buffer.from(MAP).toString('base64')

const FILES = {
  'mapped/linked.js': `${BUNDLED}//# sourceMappingURL=linked.js.map\n`,
  'mapped/linked.js.map': MAP,
  'mapped/inline.js': `${BUNDLED}//# sourceMappingURL=data:application/json;base64,${inline}\n`,
  'mapped/outside.js': `${BUNDLED}//# sourceMappingURL=../../../../../../../../etc/passwd\n`,
  'mapped/broken.js': `${BUNDLED}//# sourceMappingURL=data:application/json;base64,e30=\n`,
  'orders.ts': `import { context, emit, files, run, send } from 'svc'
interface Order { readonly id: string }
class PaymentError extends Error {
  override name = 'PaymentError'
  readonly code = 'card_declined'
  readonly status: number = 402
}
export const pay = (order: Order): never => {
  throw new PaymentError(\`declined \${order?.id}\`, { cause: new Error('the bank said no') } as ErrorOptions)
}
export const sends = async () => { await send('a', 1) }
export const runs = async () => {
  await Promise.resolve()
  await run('orders/pay', { id: 1 })
}
export const reads = async () => { await context('KEY') }
export const emits = () => emit('token', 'x')
export const files_ = async () => { await files.get('a.txt') }
export const puts = async () => { await files.put('a.txt', 'content') }
export const caught = async () => {
  try {
    await run('orders/pay', { id: 1 })
  } catch (error) {
    const { name, message, code, status, run_id, cause } = error as any
    return { name, message, code, status, run_id, cause: [cause instanceof Error, cause.name, cause.message, cause.code] }
  }
}
export const fetches = async () => { await fetch('http://127.0.0.1:1/') }
export const prints = () => {
  console.error(new Error('printed'))
  console.log(import.meta.url, import.meta.dirname)
}
export const misses = () => import('./order.ts')
export const asks = async () => { await (send as any)(7) }
export const inspects = async () => { new (await import('node:inspector/promises')).Session() }
`,
  'rejects.js': `
export const never = () => 1
Promise.reject(new Error('boom at load'))
`,
  'host.js': `
export const readsHost = async () => (await import('node:fs')).readFileSync('/etc/passwd')
export const writesHost = async () => (await import('node:fs')).writeFileSync('/etc/svc.txt', '')
`,
}

const errors = suite<Workbench>('an error of a function')

errors.before(async (context) => void Object.assign(context, await openWorkbench(FILES)))
errors.after(({ runtime }) => runtime.close())

for (const name of ['linked', 'inline']) {
  errors(`in bundled code names the place in the source: map ${name}`, async ({ failure, cacheDir }) => {
    const error = await failure(`mapped.${name}/charge`, { args: [{ id: 7 }] })
    assert.is(error.message, 'no money for 7')
    assert.is(error.stack, 'Error: no money for 7\n    at charge (src/orders/charge.ts:4:1)')
    assert.equal(error.location, {
      file: 'src/orders/charge.ts',
      line: 4,
      column: 1,
      snippet: '  throw new Error(`no money for ${order.id}`)',
    })
    assert.not.match(JSON.stringify(error), cacheDir)
  })
}

for (const name of ['outside', 'broken']) {
  errors(`names the place in the bundle without a usable map: ${name}`, async ({ failure }) => {
    const { location } = await failure(`mapped.${name}/charge`, { args: [{ id: 7 }] })
    assert.equal([location?.file, location?.line], [`mapped/${name}.js`, 8])
  })
}

errors('shows the line as it was written, with its types', async ({ failure }) => {
  const { name, location, fields, cause } = await failure('orders/pay', { args: [{ id: 7 }] })
  assert.is(name, 'PaymentError')
  assert.equal([location?.file, location?.line, location?.column], ['orders.ts', 9, 9])
  assert.match(location?.snippet ?? '', /^ {2}throw new PaymentError\(.* as ErrorOptions\)$/)
  assert.equal(fields, { code: 'card_declined', status: 402 })
  assert.equal([cause?.name, cause?.message], ['Error', 'the bank said no'])
  assert.match(cause?.stack ?? '', /orders\.ts:9:\d+/)
})

const noSuch = () => Promise.reject(new AppError('not_found', 'No such thing'))
const calls: readonly [name: string, line: number][] = [
  ['sends', 11],
  ['runs', 14],
  ['reads', 16],
  ['files_', 18],
  ['puts', 19],
  ['asks', 34],
]
for (const [name, line] of calls) {
  errors(`of an SDK call begins at that call: ${name}`, async ({ failure }) => {
    const { message, stack, location, fields } = await failure(`orders/${name}`, { onHostCall: noSuch })
    assert.equal([location?.file, location?.line], ['orders.ts', line])
    assert.match((stack ?? '').split('\n')[1] ?? '', `orders.ts:${line}:`)
    assert.not.match(stack ?? '', 'svc:runtime')
    if (name !== 'asks') assert.equal([message, fields], ['No such thing', { code: 'not_found' }])
  })
}

errors('of a fetch begins at its call, and has its cause', async ({ failure }) => {
  const { name, location, cause } = await failure('orders/fetches')
  assert.is(name, 'TypeError')
  assert.equal([location?.file, location?.line], ['orders.ts', 28])
  assert.ok(cause?.name)
})

const declined = new FailedRun('child-1', {
  code: 'function_failed',
  name: 'PaymentError',
  message: 'declined 1',
  stack: 'PaymentError: declined 1\n    at pay (orders.ts:9:9)',
  fields: { code: 'card_declined', status: 402, message: 'mine', ['__proto__']: { polluted: true } },
  cause: { name: 'BankError', message: 'no', code: 7, cause: { name: 'RangeError', message: 'amount' } },
})

errors('of a child run has its name, fields and causes in the parent', async ({ invoke }) => {
  const caught = await resultOf(invoke('orders/caught', { onHostCall: () => Promise.reject(declined) }))
  assert.equal(caught, {
    name: 'PaymentError',
    message: 'declined 1',
    code: 'card_declined',
    status: 402,
    run_id: 'child-1',
    cause: [true, 'BankError', 'no', 7],
  })
})

errors('of a child run that is not caught is that of the parent, at its own line', async ({ failure }) => {
  const error = await failure('orders/runs', { onHostCall: () => Promise.reject(declined) })
  assert.equal([error.code, error.name, error.message], ['function_failed', 'PaymentError', 'declined 1'])
  assert.equal([error.location?.file, error.location?.line], ['orders.ts', 14])
  assert.equal([error.fields?.['code'], error.fields?.['run_id']], ['card_declined', 'child-1'])
  assert.equal([error.cause?.name, error.cause?.code], ['BankError', 7])
  assert.is((error.cause?.cause as Thrown | undefined)?.name, 'RangeError')
})

errors('of a child run that timed out has its reason as its code', async ({ failure }) => {
  const timeout = new FailedRun('child-1', { code: 'timeout', message: 'The run did not end' })
  const { code, fields } = await failure('orders/runs', { onHostCall: () => Promise.reject(timeout) })
  assert.equal([code, fields?.['code']], ['function_failed', 'timeout'])
})

errors('of a child run that an outage ended is no outage of the parent', async ({ failure }) => {
  const away = new FailedRun('child-1', { code: 'unavailable', message: 'The event store is away' })
  assert.is(
    (await failure('orders/runs', { onHostCall: () => Promise.reject(away) })).code,
    'function_failed',
  )
})

errors('that is printed names no path of the node', async ({ invoke, cacheDir }) => {
  const lines: string[] = []
  await resultOf(invoke('orders/prints', { onLog: ({ text }) => void lines.push(text) }))
  assert.equal(lines, ['Error: printed', '    at prints (orders.ts:30:17)', 'orders.ts .'])
  assert.not.match(lines.join('\n'), cacheDir)
})

errors('of a missing import names the likely file', async ({ failure }) => {
  const { message, location } = await failure('orders/misses')
  assert.is(message, "Cannot find module './order.ts': did you mean './orders.ts'?")
  assert.equal([location?.file, location?.line], ['orders.ts', 33])
})

errors(
  'of a promise that a module rejects while it loads fails the run that loads it',
  async ({ failure }) => {
    const { message, location } = await failure('rejects/never')
    assert.equal([message, location?.file, location?.line], ['boom at load', 'rejects.js', 3])
  },
)

errors('about a function that is not there names the likely one', async ({ failure }) => {
  assert.equal(await failure('orders/pya'), {
    code: 'function_not_found',
    message: 'Expected orders.ts to export a function pya, got none; did you mean pay?',
  })
})

errors('of a refused file says what a function may do, without options of Node', async ({ failure }) => {
  const read = await failure('host/readsHost')
  const advice =
    'A function cannot read /etc/passwd: it reads the files of its build, and `svc.assets` in package.json adds files'
  assert.is(read.message, advice)
  assert.equal([read.stack?.split('\n')[0], read.fields?.['code']], [`Error: ${advice}`, 'ERR_ACCESS_DENIED'])
  const write = await failure('host/writesHost')
  assert.is(
    write.message,
    'A function cannot write /etc/svc.txt: store content with files.put(path, content)',
  )
})

errors('of a part of Node that is not there for functions names it', async ({ failure }) => {
  const { message, location } = await failure('orders/inspects')
  assert.equal([message, location?.file], ['A function cannot use Session', 'orders.ts'])
})

errors.run()
