import fc from 'fast-check'
import * as assert from 'uvu/assert'
import { JsonCheck, skipSpace } from '../../src/events/jsonCheck.ts'
import { parseLoosely, RawJson } from '../../src/events/rawJson.ts'
import { suite } from '../support/suite.ts'
import { threadClock } from '../support/threadClock.ts'

/** Whether a text is accepted, in steps of at most `most` bytes. */
const isAccepted = (text: string, most: number): boolean => {
  const bytes = Buffer.from(text)
  try {
    const check = new JsonCheck(bytes, skipSpace(bytes, 0))
    while (!check.next(most));
    return skipSpace(bytes, check.at) === bytes.length
  } catch (error) {
    if (error instanceof SyntaxError) return false
    throw error
  }
}

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const check = suite('a check of JSON')

for (const text of [
  [
    '0',
    '-0',
    '1e5',
    '-1.50E-3',
    '1E+7',
    '01',
    '-01',
    '1.',
    '.5',
    '-',
    '+1',
    '1e',
    '1e+',
    '1.e1',
    '0x1',
    '1_0',
  ],
  ['true', 'tru', 'truE', 'true1', 'nul', 'null', 'falsey', 'NaN', 'Infinity', 'undefined'],
  [
    '"\\u00e9"',
    '"\\u00E"',
    '"\\u00g0"',
    '"\\u',
    '"\\',
    '"\\x"',
    '"\\""',
    '"',
    '"\t"',
    '"\u0000"',
    '"\u007f"',
    "'a'",
  ],
  [
    '',
    ' ',
    '[',
    '[1,]',
    '[,1]',
    '[1 2]',
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '{a:1}',
    '{"a":1]',
    '[1}',
    '1 1',
    '[]]',
  ],
  ['\v1', '\u00a01', '\ufeff1', ' \t\r\n[ \t\r\n1 \t\r\n, {"a" : 1 , "b":2 } ] '],
].flat())
  check(`accepts ${JSON.stringify(text)} if JSON.parse does, wherever it continues`, () => {
    for (const most of [1, 2, 3, 1000]) assert.is(isAccepted(text, most), isJson(text), `${most}`)
  })

const PIECES = [
  [
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '\\',
    '\\u',
    '\\ud83d',
    '0',
    '1',
    '-',
    '.',
    'e',
    'E',
    '+',
    'true',
    'fals',
    'null',
  ],
  [' ', '\n', '\t', '\u0000', '\u007f', 'é', '😀', '""', '"a"', '01', '-0', '1.5e-3', 'x'],
].flat()

/** JSON, also with one change, and texts that look like it. */
const texts = fc.oneof(
  fc.json(),
  fc
    .tuple(fc.jsonValue(), fc.constantFrom('', ' ', '\n\t'))
    .map(([value, indent]) => JSON.stringify(value, null, indent)),
  fc.tuple(fc.json(), fc.nat(), fc.nat(2), fc.constantFrom(...PIECES)).map(([json, n, removed, piece]) => {
    const at = n % (json.length + 1)
    return json.slice(0, at) + piece + json.slice(at + removed)
  }),
  fc.tuple(fc.json(), fc.nat()).map(([json, n]) => json.slice(0, n % json.length)),
  fc.array(fc.constantFrom(...PIECES), { maxLength: 12 }).map((pieces) => pieces.join('')),
)

check('accepts what JSON.parse accepts, and nothing else, in steps of any size', () => {
  fc.assert(
    fc.property(texts, fc.integer({ min: 1, max: 20 }), (text, most) => {
      assert.is(isAccepted(text, most), isJson(text))
    }),
    { numRuns: 5000 },
  )
})

check('stops in values and in strings, so that no step is long', () => {
  for (const json of ['[1,1,1,1,1,1,1,1]', `"${'x'.repeat(16)}"`, `{"${'k'.repeat(14)}":1}`]) {
    const bytes = Buffer.from(json)
    const checked = new JsonCheck(bytes, 0)
    let steps = 1
    while (!checked.next(4)) steps++
    assert.ok(steps >= 4, `${json} in ${steps} steps`)
    assert.is(checked.at, bytes.length)
  }
})

check.run()

const SIZE = 4 << 20
const cpu = threadClock()

/** The processor time in which a frame of `SIZE` that contains this JSON is read, the shortest of three, milliseconds. */
const cpuOf = (begin: string, repeated: string, end: string): number => {
  const frame = Buffer.from(`{"value":${begin}${repeated.repeat(SIZE / repeated.length)}${end}}`)
  const times = [1, 2, 3].map(() => {
    const began = cpu()
    const { value } = parseLoosely(frame) as { value: unknown }
    assert.instance(value, RawJson)
    return cpu() - began
  })
  return Math.min(...times)
}

const cost = suite('the time of a check of JSON')

const byte = cpuOf('"', 'x', '"')
for (const [what, begin, repeated, end] of [
  ['numbers of one digit', '[', '1,', '1]'],
  ['numbers with all parts', '[', '-1.5e+3,', '1]'],
  ['words', '[', 'true,', '1]'],
  ['escapes', '"', '\\u0041', '"'],
  ['empty texts', '[', '"",', '1]'],
  ['empty lists', '[', '[],', '1]'],
  ['objects', '[', '{"a":1},', '1]'],
  ['line breaks', '[', '\n', '1]'],
] as const)
  cost(`for ${what} is less than six times that of one text of the same size`, () => {
    const took = cpuOf(begin, repeated, end)
    assert.ok(took < 6 * byte, `${took} of ${byte} ms`)
  })

cost.run()
