import assert from 'node:assert/strict'
import { MAX_JSON_DEPTH } from '../../src/events/jsonDepth.ts'
import { jsonBytes, parseLoosely, RawJson, RAW_BYTES } from '../../src/events/rawJson.ts'
import { suite } from '../support/suite.ts'

const test = suite('JSON that is kept as text')

const loosely = (json: string, within: string[] = []) => parseLoosely(Buffer.from(json), within)
const padding = ' '.repeat(RAW_BYTES)
/** A list of this JSON that is large enough to be kept as text. */
const large = (json: string) => `[${json},"${'x'.repeat(RAW_BYTES)}"]`

test('an object is parsed member by member, and a large member remains text', () => {
  const list = large('{"a":[1,2.5e-3,true,null,"\\u00e9\\n"]}')
  const parsed = loosely(`{"type":"result","id":7,"value":${list}}`) as Record<string, unknown>
  assert.equal(parsed['type'], 'result')
  assert.equal(parsed['id'], 7)
  assert.ok(parsed['value'] instanceof RawJson)
  assert.equal(parsed['value'].bytes.toString(), list)
})

test('large objects along a path are read member by member, others are not', () => {
  const json = `{"request":{"op":"send","data":${large('1')}},"other":{"data":${large('1')}}}`
  const parsed = loosely(json, ['request']) as { request: { op: string; data: unknown }; other: unknown }
  assert.equal(parsed.request.op, 'send')
  assert.ok(parsed.request.data instanceof RawJson)
  assert.ok(parsed.other instanceof RawJson)
})

test('text inside a value is converted in its place, wherever it is', () => {
  const one = new RawJson(Buffer.from('[1,2]'))
  const two = new RawJson(Buffer.from('{"é":"ü"}'))
  const json = jsonBytes({ fn: 'a/b', args: [one, 'é', { deep: two }], last: one }).toString()
  assert.deepEqual(JSON.parse(json), { fn: 'a/b', args: [[1, 2], 'é', { deep: { é: 'ü' } }], last: [1, 2] })
  assert.deepEqual(jsonBytes(one).toString(), '[1,2]')
  assert.equal(jsonBytes({ plain: 'é' }).toString(), '{"plain":"é"}')
})

test('JSON.stringify refuses text, because it would be converted to a string', () => {
  assert.throws(() => JSON.stringify({ value: new RawJson(Buffer.from('1')) }), TypeError)
})

test('line breaks between tokens become spaces, so that the text is one line', () => {
  const parsed = loosely(`{"value":${large('\n1,\r\n2')}}`) as { value: RawJson }
  assert.ok(!parsed.value.bytes.includes(10) && !parsed.value.bytes.includes(13))
  assert.deepEqual((parsed.value.parse() as unknown[]).slice(0, 2), [1, 2])
})

const invalid = [
  '',
  '{',
  '{"a":1',
  '{"a":1,}',
  '{"a" 1}',
  '{a:1}',
  '{"a":1} x',
  '{"a":01}',
  '{"a":1.}',
  '{"a":+1}',
  '{"a":"\n"}',
  '{"a":"\\x"}',
  '{"a":"\\u12"}',
  '{"a":tru}',
  '{"a":[1,]}',
  '{"a":[1}',
  '{"a":{"b":1]}',
  '{"a":{"b"}}',
  '{"a":{1:2}}',
  '[1 2]',
  'nul',
  '"a',
]

for (const json of invalid)
  test(`${JSON.stringify(json)} is refused like JSON.parse does, also as part of a large value`, () => {
    assert.throws(() => JSON.parse(json), SyntaxError)
    assert.throws(() => loosely(json), SyntaxError)
    assert.throws(() => loosely(`{"value":[${json},${padding}1]}`), SyntaxError)
  })

test('text that is not UTF-8 is refused', () => {
  assert.throws(() => parseLoosely(Buffer.from([0x22, 0xff, 0x22])), SyntaxError)
})

test('any depth is scanned without recursion; more than the limit is refused', () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
  assert.ok(loosely(`{"a":${nested(MAX_JSON_DEPTH)}}`))
  assert.throws(() => loosely(`{"a":${nested(MAX_JSON_DEPTH + 1)}}`), /levels of nesting/)
  assert.throws(() => loosely(`{"a":${'['.repeat(5_000_000)}`), /levels of nesting/)
  assert.throws(() => loosely(`{"a":${'{"a":'.repeat(1_000_000)}`), /levels of nesting/)
})

test('an object with more members than any frame has is refused', () => {
  const members = Array.from({ length: 65 }, (_, index) => `"k${index}":1`)
  assert.throws(() => loosely(`{${members.join(',')}}`), /at most 64 members/)
})

test('a member named __proto__ is an ordinary member', () => {
  const parsed = loosely('{"__proto__":{"isAdmin":true}}') as Record<string, unknown>
  assert.equal(parsed['isAdmin'], undefined)
})

test.run()
