import * as assert from 'uvu/assert'
import { AppError } from '../../src/errors.ts'
import { failedText, liveText, runText } from '../../src/cli/dev/texts.ts'
import type { BuildFunction } from '../../src/client/api.ts'
import type { Run } from '../../src/client/index.ts'
import { suite } from '../support/suite.ts'

const texts = suite('the lines of svc dev')

const failed = {
  run_id: '01a20d56-84e4-83ca-b7bf-7843a4c27f7f',
  fn: 'orders/charge',
  status: 'pending_retry',
  attempt: 1,
  start_time: '2026-01-01T00:00:00.000Z',
  stop_time: '2026-01-01T00:00:00.049Z',
  retry_at: '2026-01-01T00:00:00.549Z',
  error: {
    code: 'function_failed',
    name: 'TypeError',
    message: 'fetch failed',
    location: { file: 'src/orders.ts', line: 26, column: 24, snippet: '  await fetch(PRICES)' },
    cause: { name: 'Error', message: 'connect ECONNREFUSED 192.0.2.1:443', code: 'ECONNREFUSED' },
  },
} as unknown as Run

const charge: BuildFunction = {
  fn: 'orders/charge',
  ns: 'orders',
  var: 'charge',
  retry: { attempts: 2, delay: 500 },
}

texts('name the trigger of a run without an event', () => {
  const webhook = { service: 'shop', path: '/paid', method: 'POST', auth: 'none' } as const
  const mcp = { service: 'shop', description: 'Charges' }
  const causeOf = (fn: Partial<BuildFunction>) => {
    const { json } = runText({ run: failed, cause: 'call' }, { ...charge, ...fn })
    return (json as { cause: string }).cause
  }
  assert.equal(
    [causeOf({ webhook }), causeOf({ mcp }), causeOf({}), causeOf({ webhook, mcp })],
    ['webhook', 'tool', 'call', 'call'],
  )
})

texts('show the name of an error, its place, its line and its causes', () => {
  const { text } = runText({ run: failed, cause: 'order:created' }, charge)
  assert.equal(
    text.split('\n').map((line) => line.replace(/^\d\d:\d\d:\d\d/, 'TIME')),
    [
      'TIME order:created  orders/charge  failed in 49 ms  attempt 1 of 3, again in 500 ms  01a20d56-84e4-83ca-b7bf-7843a4c27f7f',
      '         src/orders.ts:26:24 TypeError: fetch failed',
      '           26 |   await fetch(PRICES)',
      '           caused by connect ECONNREFUSED 192.0.2.1:443',
      '',
    ],
  )
})

texts('name the source of a refused file, also if the name of another source ends like it', () => {
  const given = { folder: '.', live: null, data: null, againMs: null }
  const modules = ['src/main.ts', 'src/a/n.ts', 'src/n.ts']
  const { json } = failedText(new AppError('bad_request', 'n.js: Expected it to load'), { ...given, modules })
  const { messages } = json as { messages: { file: string; text: string }[] }
  assert.equal(
    messages.map(({ file, text }) => [file, text]),
    [['src/n.ts', 'Expected it to load']],
  )
})

texts('show the errors that an AggregateError collects', () => {
  const error = {
    code: 'function_failed',
    name: 'AggregateError',
    message: 'All promises were rejected',
    errors: [
      { name: 'Error', message: 'one', cause: { name: 'TypeError', message: 'inner' } },
      { name: 'RangeError', message: 'two' },
    ],
  }
  const { text } = runText({ run: { ...failed, error }, cause: 'call' }, undefined)
  assert.equal(text.split('\n').slice(1, -1), [
    '         AggregateError: All promises were rejected',
    '           error 1: one',
    '             caused by TypeError: inner',
    '           error 2: RangeError: two',
  ])
})

texts('name eight functions of each kind of change, and the number of the others', () => {
  const named = (count: number) => Array.from({ length: count }, (_, n) => `a/f${n}`)
  const changes = { added: named(10), removed: named(8), changed: [] }
  const live = { build_id: 'b', changes, warnings: [] } as unknown as Parameters<typeof liveText>[0]
  const { text, json } = liveText(live, { paths: [], ms: 1 })
  const signed = (sign: string) => named(8).map((fn) => `${sign} ${fn}`)
  assert.is(text.split('  ').at(-1), `${[...signed('+'), '+ 2 more', ...signed('-')].join(', ')}\n`)
  assert.is((json as { changes: unknown }).changes, changes)
})

texts.run()
