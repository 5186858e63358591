import * as assert from 'uvu/assert'
import { RawJson } from '../../src/events/rawJson.ts'
import { sortedKeys } from '../../src/events/sortedKeys.ts'
import { suite } from '../support/suite.ts'

const sorting = suite('the keys of JSON in one order')

for (const [text, other] of [
  ['{"a":1,"b":2}', '{"b":2,"a":1}'],
  ['[{"a":{"x":[{"c":1,"d":2}],"y":0}}]', '[{"a":{"y":0,"x":[{"d":2,"c":1}]}}]'],
  ['{"2":1,"10":2,"a":3}', '{"a":3,"10":2,"2":1}'],
  ['{"__proto__":{"a":1,"b":2},"b":1}', '{"b":1,"__proto__":{"b":2,"a":1}}'],
] as const)
  sorting(`is the same for ${other}`, () => {
    for (const each of [text, other]) assert.is(JSON.stringify(sortedKeys(JSON.parse(each))), text)
  })

sorting('returns a value whose keys are in order', () => {
  for (const value of [null, 1, 'b', [3, 1, 2], { a: { b: [{ c: 1, d: 2 }] } }, {}, []])
    assert.is(sortedKeys(value), value)
})

sorting('changes no value that it is given', () => {
  const value = { b: [{ d: 1, c: 2 }], a: 1 }
  const text = JSON.stringify(value)
  sortedKeys(value)
  assert.is(JSON.stringify(value), text)
})

sorting('leaves the text of a large value', () => {
  const raw = new RawJson(Buffer.from('{"b":1,"a":2}'))
  assert.is((sortedKeys({ b: 1, a: raw }) as { a: unknown }).a, raw)
})

sorting.run()
