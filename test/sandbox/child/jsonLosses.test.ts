import * as assert from 'uvu/assert'
import { lossIn } from '../../../src/sandbox/child/jsonLosses.ts'
import { suite } from '../../support/suite.ts'

const limits = { root: 'result', maxDepth: 1000, maxValues: 1 << 20 }
const lossOf = (value: unknown): string | undefined => {
  const loss = lossIn(value, limits)
  return loss && `${loss.path} is ${loss.reason}`
}

class Order {
  readonly id = 1
}

const json = suite('JSON')

const losses: readonly [what: string, value: unknown, message: string][] = [
  ['a Map', { items: new Map([['a', 1]]) }, 'result.items is a Map; use Object.fromEntries(map)'],
  ['a Set', [1, new Set([2])], 'result[1] is a Set; use [...set]'],
  ['NaN', { a: [{ b: Number.NaN }] }, 'result.a[0].b is NaN; use null or a text'],
  ['an infinite number', -Infinity, 'result is -Infinity; use null or a text'],
  ['a BigInt', { n: 10n }, 'result.n is a BigInt; use String(value)'],
  [
    'an error',
    { 'not ok': new RangeError('x') },
    'result["not ok"] is an error (RangeError); use its message',
  ],
  [
    'an instance of a class',
    [new Order()],
    'result[0] is an instance of Order; use a plain object, or give the class a toJSON()',
  ],
  ['a promise', { later: Promise.resolve(1) }, 'result.later is a Promise; await it'],
  ['a function', { then: { go: () => 1 } }, 'result.then.go is a function, which JSON leaves out'],
  ['a symbol', { s: Symbol('s') }, 'result.s is a symbol; use its description'],
  [
    'bytes',
    { content: new Uint8Array(2) },
    "result.content is bytes (Uint8Array); use Buffer.from(bytes).toString('base64')",
  ],
  ['a buffer', [Buffer.from('a')], "result[0] is bytes (Buffer); use Buffer.from(bytes).toString('base64')"],
  [
    'a response',
    new Response('x'),
    'result is an instance of Response; use a plain object, or give the class a toJSON()',
  ],
]
for (const [what, value, message] of losses)
  json(`cannot represent ${what}, and the path to it is named`, () => assert.is(lossOf(value), message))

json('cannot represent a circular reference, whose path ends where it closes', () => {
  const order: { lines: unknown[] } = { lines: [] }
  order.lines.push({ order })
  assert.is(
    lossOf({ order }),
    'result.order.lines[0].order is a circular reference: the object contains itself',
  )
})

json('represents all else, also values that decide themselves', () => {
  const fine: unknown[] = [
    undefined,
    null,
    'text',
    1.5,
    [undefined, null],
    { absent: undefined, at: new Date(0), url: new URL('https://a.example') },
    Object.assign(Object.create(null), { a: 1 }),
    new Number(1),
    { order: { toJSON: () => 'order' } },
    () => 1,
  ]
  for (const value of fine) assert.is(lossOf(value), undefined)
})

json('of a shared object is no circular reference', () => {
  const shared = { a: 1 }
  assert.is(lossOf([shared, shared, { shared }]), undefined)
})

json('that is too large in any case is not searched to its end', () => {
  let wide: unknown[] = []
  for (let n = 0; n < 200; n++) wide = [wide, wide]
  assert.is(lossIn(wide, { ...limits, maxValues: 10_000 }), undefined)
  assert.is(lossIn(Object.assign([], { length: 2 ** 32 - 1 }), { ...limits, maxValues: 10_000 }), undefined)
})

json('names a long path with its beginning and its end', () => {
  let value: unknown = Number.NaN
  for (let n = 0; n < 500; n++) value = { next: value }
  const message = lossOf(value) ?? ''
  assert.match(message, /^result\.next\.next.*….*\.next is NaN/)
  assert.ok(message.length < 400)
})

json.run()
