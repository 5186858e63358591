import Type from 'typebox'
import * as assert from 'uvu/assert'
import { closed } from '../../src/api/http/closed.ts'
import { checkBody } from '../../src/api/http/validate.ts'
import { cpuOf } from '../support/cpuOf.ts'
import { suite } from '../support/suite.ts'

const Key = closed(
  Type.Object({
    name: Type.String(),
    permissions: Type.Optional(Type.Record(Type.String(), Type.Array(Type.String()))),
    names: Type.Optional(Type.Array(Type.String())),
    network: Type.Optional(
      Type.Union([Type.Array(Type.String(), { maxItems: 3 }), Type.Null()], { documented: {} }),
    ),
    nested: Type.Optional(Type.Object({ city: Type.String() })),
  }),
)
const check = checkBody(Key)

/** The message of the refusal of a body. */
const messageOf = (body: unknown): string => {
  try {
    check(body)
  } catch (error) {
    return (error as Error).message
  }
  throw new Error('Expected a refusal')
}

const body = suite('a refused body')

for (const [text, message] of [
  ['{"permissions":{"a":["x"],"b":["x",7],"c":8},"name":"a"}', 'permissions.b.1: must be string, got 7'],
  ['{"permissions":{"a":["x"],"__proto__":7},"name":"a"}', 'permissions.__proto__: must be array, got 7'],
  ['{"permissions":{"a/b~c":[1]},"name":"a"}', 'permissions.a/b~c.0: must be string, got 1'],
  ['{"permissions":[[1]],"name":"a"}', 'permissions: must be object, got [[1]]'],
  ['{"permissions":{"a":[1]}}', 'name: is required'],
  ['{"names":["a","b",{"c":1},2],"name":"a"}', 'names.2: must be string, got {"c":1}'],
  ['{"names":{"0":1},"name":"a"}', 'names: must be array, got {"0":1}'],
  ['{"network":["a",7],"name":"a"}', 'network.1: must be string, got 7'],
  ['{"network":{"a":7},"name":"a"}', 'network: expected array or null, got {"a":7}'],
  [
    '{"network":["a","b","c","d","e"],"name":"a"}',
    'network: must not have more than 3 items, got ["a","b","c","d","e"]',
  ],
  ['{"nested":{"zip":1},"nam":2}', 'nam: unknown field; expected name, permissions, names, network, nested'],
  ['{"nested":{"city":"a","zip":1}}', 'nested.zip: unknown field; expected city'],
  ['{"nested":{"city":[1]},"name":"a"}', 'nested.city: must be string, got [1]'],
  [`{"name":{"a":["${'x'.repeat(70)}"],"b":1}}`, `name: must be string, got {"a":["${'x'.repeat(53)}…`],
  [`{"name":[${'1,'.repeat(70)}1]}`, `name: must be string, got [${'1,'.repeat(29)}1…`],
  ['["a"]', 'body: must be object, got ["a"]'],
] as const)
  body(`is refused with the first invalid part: ${text.slice(0, 60)}`, () => {
    assert.is(messageOf(JSON.parse(text)), message)
  })

const MANY = 60_000
const members = (value: string) => Array.from({ length: MANY }, (_, n) => `"k${n}":${value}`).join()

for (const [says, text, message, times] of [
  ['unknown fields', `{"name":"a",${members('1')}}`, 'k0: unknown field', 2],
  ['unknown fields of an object', `{"name":"a","nested":{${members('1')}}}`, 'nested.k0: unknown field', 2],
  ['members of a record', `{"name":"a","permissions":{${members('[1]')}}}`, 'permissions.k0.0: must', 2],
  [
    'valid members before an invalid one',
    `{"name":"a","permissions":{${members('["a"]')},"b":1}}`,
    'permissions.b: must be array, got 1',
    5,
  ],
  [
    'valid elements before an invalid one',
    `{"name":"a","names":[${'"a",'.repeat(4 * MANY)}1]}`,
    `names.${4 * MANY}: must be string, got 1`,
    5,
  ],
  [
    'elements of a short list',
    `{"name":"a","network":[${'"a",'.repeat(4 * MANY)}1]}`,
    'network: must not',
    5,
  ],
  ['members of a text', `{"name":{${members('1')}}}`, 'name: must be string, got {"k0":1,', 2],
] as const)
  body(`with very many ${says} takes less than ${times} times as long as its parse`, () => {
    const parsed: unknown = JSON.parse(text)
    assert.ok(messageOf(parsed).startsWith(message), messageOf(parsed))
    const parse = cpuOf(() => JSON.parse(text))
    const took = cpuOf(() => messageOf(parsed))
    assert.ok(took < times * parse, `${took} ms; the parse takes ${parse} ms`)
  })

body.run()
