import * as assert from 'uvu/assert'
import { mistakeInInput } from '../../src/events/toolInput.ts'
import { mistakeInSchema, type ToolSchema } from '../../src/events/toolSchema.ts'
import { suite } from '../support/suite.ts'

const schemas = suite('the schema of the arguments of a tool')

const objectWith = (field: object) => ({ type: 'object', properties: { a: field } })

for (const [name, field, path, expectation] of [
  ['a pattern, which can take any time', { pattern: '(a+)+$' }, '', 'to have no regular expression'],
  ['a reference', { $ref: '#' }, '', 'without $ref'],
  ['an unknown keyword', { minLenght: 1 }, '', 'to use only the keywords type,'],
  ['a name of every object as a keyword', { constructor: 1 }, '', 'to use only the keywords'],
  ['a negative length', { minLength: -1 }, '.minLength', 'to be a whole number from 0'],
  ['an empty enum', { enum: [] }, '.enum', 'to be a list of values'],
  ['a limit that is a text', { minimum: '1' }, '.minimum', 'to be a number'],
  ['a multiple of nothing', { multipleOf: 0 }, '.multipleOf', 'to be a number over 0'],
  ['names that are no list', { required: 'a' }, '.required', 'to be a list of names'],
  ['no list of schemas', { anyOf: {} }, '.anyOf', 'to be a list of schemas'],
  ['a mistake in a list', { oneOf: [true, { type: 'x' }] }, '.oneOf.1.type', 'to be one of string'],
  ['a mistake in its items', { items: { items: 5 } }, '.items.items', 'to be a schema'],
] as const)
  schemas(`is refused with ${name}`, () => {
    const mistake = mistakeInSchema(objectWith(field), 'input')
    assert.is(mistake?.path, `input.properties.a${path}`)
    assert.match(mistake?.expectation ?? '', expectation)
  })

schemas('is refused if it nests too deeply', () => {
  let nested: object = {}
  for (let n = 0; n < 30; n++) nested = { not: nested }
  assert.match(mistakeInSchema(objectWith(nested), 'input')?.expectation ?? '', 'nest at most 20')
})

schemas('may have notes for the model', () => {
  const notes = { title: 't', description: 'd', default: 1, examples: [1], format: 'email', $comment: 'c' }
  assert.is(mistakeInSchema(objectWith(notes), 'input'), undefined)
})

schemas.run()

const input = suite('the check of the arguments of a tool')

/** What is wrong with the field `a`; null if nothing is. */
const wrong = (field: ToolSchema, a: unknown): string | null => {
  const schema = objectWith(field as object)
  assert.is(mistakeInSchema(schema, 'input'), undefined)
  return mistakeInInput(schema, { a }, 'arguments') ?? null
}

for (const [field, good, bad, told] of [
  [{ type: 'string' }, 'x', 5, 'a: expected a string, got 5'],
  [{ type: 'integer' }, 5, 5.5, 'a: expected an integer, got 5.5'],
  [{ type: 'number' }, 5.5, '5', 'a: expected a number, got "5"'],
  [{ type: ['string', 'null'] }, null, 5, 'a: expected a string or null, got 5'],
  [{ type: 'object' }, {}, [], 'a: expected an object, got []'],
  [{ type: 'array' }, [], {}, 'a: expected an array, got {}'],
  [{ enum: ['x', { y: 1 }] }, { y: 1 }, { y: 2 }, 'a: expected one of "x", {"y":1}, got {"y":2}'],
  [{ const: null }, null, 0, 'a: expected null, got 0'],
  [{ minimum: 1 }, 1, 0, 'a: expected at least 1, got 0'],
  [{ maximum: 1 }, 1, 2, 'a: expected at most 1, got 2'],
  [{ exclusiveMinimum: 1 }, 2, 1, 'a: expected more than 1, got 1'],
  [{ exclusiveMaximum: 1 }, 0, 1, 'a: expected less than 1, got 1'],
  [{ multipleOf: 0.1 }, 0.3, 0.35, 'a: expected a multiple of 0.1, got 0.35'],
  [{ minLength: 2 }, 'ab', '😀', 'a: expected at least 2 characters, got "😀"'],
  [{ maxLength: 1 }, '😀', 'ab', 'a: expected at most 1 character, got "ab"'],
  [{ minItems: 1 }, [1], [], 'a: expected at least 1 item, got []'],
  [{ maxItems: 1 }, [1], [1, 2], 'a: expected at most 1 item, got [1,2]'],
  [{ items: { type: 'integer' } }, [1, 2], [1, 'x'], 'a.1: expected an integer, got "x"'],
  [{ prefixItems: [{ type: 'string' }], items: false }, ['x'], ['x', 1], 'a.1: expected no value, got 1'],
  [{ required: ['b'] }, { b: 1 }, {}, 'a.b: is required'],
  [{ required: ['constructor'] }, { constructor: 1 }, {}, 'a.constructor: is required'],
  [
    { properties: { b: true }, additionalProperties: false },
    { b: 1 },
    { c: 1 },
    'a.c: unknown field; expected b',
  ],
  [{ additionalProperties: { type: 'integer' } }, { b: 1 }, { b: 'x' }, 'a.b: expected an integer, got "x"'],
  [{ minProperties: 1 }, { b: 1 }, {}, 'a: expected at least 1 fields, got {}'],
  [{ maxProperties: 0 }, {}, { b: 1 }, 'a: expected at most 0 fields, got {"b":1}'],
  [{ propertyNames: { maxLength: 1 } }, { b: 1 }, { bb: 1 }, 'a.bb: expected at most 1 character, got "bb"'],
  [{ allOf: [{ minimum: 1 }, { maximum: 2 }] }, 1, 3, 'a: expected at most 2, got 3'],
  [{ anyOf: [{ type: 'string' }] }, 'x', 1, 'a: expected a string, got 1'],
  [{ not: { type: 'null' } }, 1, null, 'a: expected a value that does not match not, got null'],
] as const)
  input(`accepts and refuses by ${JSON.stringify(field)}`, () => {
    assert.is(wrong(field, good), null)
    assert.is(wrong(field, bad), told)
  })

input('requires exactly one schema of oneOf, and one of anyOf', () => {
  const choices = [{ type: 'integer' }, { minimum: 5 }]
  assert.is(wrong({ oneOf: choices }, 1), null)
  assert.match(wrong({ oneOf: choices }, 6) ?? '', 'matches 1 of the 2 schemas of oneOf, not 2')
  assert.is(wrong({ anyOf: choices }, 6), null)
  assert.match(wrong({ anyOf: choices }, 1.5) ?? '', 'a value of anyOf')
})

input('names the whole arguments if no field is wrong', () => {
  assert.is(mistakeInInput({ type: 'object' }, [], 'arguments'), 'arguments: expected an object, got []')
})

input('ends after a bounded number of steps', () => {
  const field = { items: { anyOf: Array.from({ length: 400 }, () => ({ type: 'string' })) } }
  assert.is(
    wrong(
      field,
      Array.from({ length: 100_000 }, () => 1),
    ),
    'a.0: expected a value of anyOf (' +
      'a.0: expected a string, got 1; '.repeat(20).slice(0, 300) +
      '), got 1',
  )
  const passing = { items: { anyOf: [...field.items.anyOf, { type: 'integer' }] } }
  assert.match(
    wrong(
      passing,
      Array.from({ length: 100_000 }, () => 1),
    ) ?? '',
    'their check takes too long',
  )
})

input('ends also if each step looks at a large value', () => {
  const many = Array.from({ length: 50_000 }, () => 1)
  const fields = Object.fromEntries(many.map((one, n) => [`f${n}`, one]))
  for (const large of [many, fields, 'x'.repeat(1 << 20)])
    assert.match(
      wrong({ allOf: Array.from({ length: 1000 }, () => ({})) }, large) ?? '',
      'their check takes too long',
    )
})

input('counts each value that is compared with a constant', () => {
  const long = (last: number) => [[...Array.from({ length: 1000 }, () => 1), last]]
  const constants = Array.from({ length: 9 }, () => ({ const: long(3) }))
  const values = Array.from({ length: 200 }, () => long(2))
  assert.match(wrong({ items: { anyOf: [...constants, true] } }, values) ?? '', 'their check takes too long')
})

input('looks at a value as often for a hundred alternatives that it does not match as for one', () => {
  const fields = Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`k${n}`, 0]))
  const looksFor = (alternatives: number): number => {
    let looks = 0
    const watched = new Proxy(fields, { ownKeys: (target) => (looks++, Reflect.ownKeys(target)) })
    const others = Array.from({ length: alternatives }, () => ({ type: 'null' }) as const)
    assert.is(wrong({ anyOf: [...others, true] }, [watched]), null)
    return looks
  }
  assert.is(looksFor(100), looksFor(1))
})

input('shows the start of a large value', () => {
  const deep: ToolSchema = { type: 'null' }
  assert.is(wrong(deep, 'x'.repeat(1000)), `a: expected null, got "${'x'.repeat(59)}…`)
  assert.is(
    wrong(
      deep,
      Array.from({ length: 1000 }, () => [1]),
    ),
    'a: expected null, got an array of 1000 items',
  )
  assert.is(wrong(deep, { b: { ['k'.repeat(1000)]: 1 } }), 'a: expected null, got a large object')
  assert.is(wrong(deep, { b: ['x'.repeat(1000)] }), 'a: expected null, got a large object')
})

input.run()
