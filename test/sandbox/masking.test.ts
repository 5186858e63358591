import * as assert from 'uvu/assert'
import { jsonBytes, RawJson } from '../../src/events/rawJson.ts'
import { Masking, type Unfinished } from '../../src/sandbox/masking.ts'
import { alongside, collidingValues } from '../support/collidingValues.ts'
import { suite } from '../support/suite.ts'

const SECRET = 'sk_live_"ü+/é~4711'
const maskingOf = (...values: string[]): Masking => {
  const masking = new Masking()
  for (const value of values) assert.ok(masking.add(value))
  return masking
}

const masking = suite('a secret in what a child sends')

const base64 = (text: string) => Buffer.from(text).toString('base64')
const forms: Readonly<Record<string, [text: string, masked: string]>> = {
  'as it is': [`key ${SECRET}, again ${SECRET}.`, 'key ***, again ***.'],
  'in JSON in a text': [JSON.stringify({ key: SECRET }), '{"key":"***"}'],
  'in a URL': [`?key=${encodeURIComponent(SECRET)}&a=1`, '?key=***&a=1'],
  'in a form': [new URLSearchParams({ key: 'a b&c d e f' }).toString(), 'key=***'],
  'as hexadecimal digits': [Buffer.from(SECRET).toString('hex'), '***'],
  'as large hexadecimal digits': [Buffer.from(SECRET).toString('hex').toUpperCase(), '***'],
  'in base64 up to its last character': [base64(SECRET), '***='],
  'in base64 up to its last character, before other bytes': [
    base64(`${SECRET}ü`),
    `***${base64(`${SECRET}ü`).slice(26)}`,
  ],
}
for (const [what, [text, masked]] of Object.entries(forms))
  masking(`is replaced ${what}`, () => assert.is(maskingOf(SECRET, 'a b&c d e f').text(text), masked))

for (const before of ['', 'u', 'us', 'user:'])
  masking(`is replaced in base64 after "${before}"`, () => {
    const text = maskingOf(SECRET).text(`Basic ${base64(before + SECRET)}`)
    assert.ok(text.includes('***'))
    assert.not.ok(Buffer.from(text.replace('***', ''), 'base64').toString().includes('live'))
  })

masking('is replaced in values and keys of JSON of any depth, and as a number', () => {
  assert.equal(maskingOf(SECRET, '471147').json([{ a: { [SECRET]: 471147 } }, `x${SECRET}`, 1, null, true]), [
    { a: { '***': '***' } },
    'x***',
    1,
    null,
    true,
  ])
})

masking('is replaced in large JSON without parsing it, also if it is written with other escapes', () => {
  const json = `{"a":"\\u0073k_live_\\"ü+\\/é~4711","${'k'.repeat(100)}":["\\nfoo",471147,-1.5e3,true]}`
  const masked = maskingOf(SECRET, '471147', 'nfoo').json(new RawJson(Buffer.from(json)))
  assert.ok(masked instanceof RawJson)
  assert.equal(JSON.parse(jsonBytes(masked).toString()), {
    a: '***',
    ['k'.repeat(100)]: ['\nfoo', '***', -1500, true],
  })
})

masking('is replaced in a long text of large JSON, wherever it is, also beside escapes', () => {
  const masked = maskingOf(SECRET)
  const [plain, escaped] = [JSON.stringify(SECRET).slice(1, -1), '\\u0073k_live_\\"\\u00FC+\\/é~4711']
  for (const at of [0, 1, (64 << 10) - 30, (64 << 10) - 5, 64 << 10, (128 << 10) - 11, 190_000])
    for (const [before, form] of [
      ['x', plain],
      ['x', escaped],
      ['\\n', escaped],
      ['\\ud83d\\ude00', plain],
    ] as const) {
      const [begin, end] = [before.repeat(at / before.length), 'y'.repeat(200_000 - at)]
      const json = masked.json(new RawJson(Buffer.from(`["${begin}${form}${end}"]`))) as RawJson
      assert.ok(jsonBytes(json).equals(Buffer.from(`["${begin}***${end}"]`)), `${before} ${at}`)
    }
})

masking('leaves a value without secrets as it is', () => {
  const raw = new RawJson(Buffer.from('["nothing"]'))
  assert.is(maskingOf(SECRET).json(raw), raw)
  assert.is(maskingOf('abc').text('abc is too short to be masked'), 'abc is too short to be masked')
})

masking('is replaced without the spaces and newlines around it, also if it is short', () => {
  for (const value of ['1234\n', ' ab12 ', 'pin-77\r\n'])
    for (const shown of [value.trim(), encodeURIComponent(value.trim())])
      assert.is(maskingOf(value).text(`<${shown}>`), '<***>')
  assert.is(maskingOf('123\n').text('a 123 b'), 'a 123 b')
})

masking('is replaced line by line if it has several', () => {
  const key = '-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----'
  assert.is(maskingOf(key).text('hkiG9w0BAQEFAASC'), '***')
  assert.is(maskingOf(key).text(`a ${key} b`), 'a *** b')
})

masking('is replaced line by line, however many lines it has', () => {
  const lines = Array.from({ length: 100 }, (_, n) => `line ${n} ${n * 7919} ${'x'.repeat(40)}`)
  const masked = maskingOf(lines.join('\n'))
  for (const line of lines) assert.is(masked.text(`a ${line} b`), 'a *** b')
})

masking('is replaced in each piece of a text that was cut anywhere', () => {
  const long = Array.from({ length: 300 }, (_, n) => `part ${n};`).join('')
  const masked = maskingOf(long)
  for (const size of [4, 7, 31, 32, 33, 100, 1000]) {
    const text = `before ${long} after`
    let shown = ''
    let before: Unfinished | undefined
    for (let at = 0; at < text.length; at += size) {
      const piece = masked.piece(text.slice(at, at + size), { before, isCut: at + size < text.length })
      before = piece.unfinished
      shown += piece.text
    }
    assert.match(shown, /^before (?:\*|p|pa|par)+(?:rt 0)? after$/, `pieces of ${size}`)
  }
})

masking('is replaced where a text was cut in it', () => {
  assert.is(maskingOf(SECRET).cutText(`refused ${SECRET.slice(0, 7)}…`), 'refused ***…')
  assert.is(maskingOf(SECRET).cutText('refused sk…'), 'refused sk…')
})

masking('is replaced in JSON inside of JSON in a text', () => {
  const twice = JSON.stringify({ body: JSON.stringify({ key: SECRET }) })
  assert.not.match(maskingOf(SECRET).text(twice), 'live')
})

masking('is found beside another one that begins in it', () => {
  assert.is(maskingOf('abcdefgh', 'cdef', 'efghijkl').text('abcdefgh abcdef efghijkl'), '*** ab*** ***')
})

masking('is replaced as a whole, however long it is and whatever it shares with another one', () => {
  const [one, other] = [`${'p'.repeat(100)}-one`, `${'p'.repeat(100)}-other`]
  assert.is(maskingOf(one, other).text(`${one} ${other}`), '*** ***')
})

masking('is replaced as a whole, however many others begin like it', () => {
  const begin = 'eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.'
  const tokens = Array.from(
    { length: 100 },
    (_, n) => `${begin}${(n * 7919) % 997}.claims of ${'x'.repeat(n)}.end`,
  )
  const masked = maskingOf(...tokens)
  for (const token of tokens) {
    assert.is(masked.text(`a ${token} b`), 'a *** b')
    assert.is(masked.text(base64(token)).replace(/[^*]*$/, ''), '***')
    const { text, unfinished } = masked.piece(`a ${token.slice(0, -7)}`, { isCut: true })
    assert.is(
      text + masked.piece(`${token.slice(-7)} b`, { before: unfinished, isCut: false }).text,
      'a ****** b',
    )
  }
})

masking('is searched in the same time, however many values begin alike', () => {
  const begin = 'p'.repeat(32)
  const values = Array.from({ length: 500 }, (_, n) => `${begin}${String(n).padStart(3, '0').repeat(200)}`)
  const masked = maskingOf(...values)
  const text = `${begin}${values[7]?.slice(32, -1)} ${begin}x`.repeat(1000)
  masked.text(text) // the code is optimized
  const before = process.cpuUsage()
  assert.is(masked.text(text), '*** ***x'.repeat(1000))
  const { user } = process.cpuUsage(before)
  assert.ok(user < 0.5e6, `${text.length} bytes took ${user} µs of the processor`)
})

masking('leaves no part of a character of a text that differs in its middle', () => {
  for (const length of [31, 40]) {
    const begin = 'a'.repeat(length)
    const masked = maskingOf(`${begin}éXYZ`)
    const text = `${begin}è other`
    assert.is(masked.text(text), '*** other')
    const raw = masked.json(new RawJson(Buffer.from(JSON.stringify([text, `"${text}`])))) as RawJson
    assert.is(jsonBytes(raw).toString(), '["*** other","\\"*** other"]')
    const { unfinished } = masked.piece(begin.slice(0, -2), { isCut: true })
    const next = masked.piece(text.slice(length - 2), { before: unfinished, isCut: false })
    assert.is(next.text, '*** other')
  }
})

masking('is searched in the same time, whoever chose the values', () => {
  const values = collidingValues(200)
  const masked = maskingOf(...values)
  const text = alongside(values, 1 << 20)
  masked.text(text) // the code is optimized
  const before = process.cpuUsage()
  assert.is(masked.text(text), text)
  const { user } = process.cpuUsage(before)
  assert.ok(user < 0.5e6, `a mebibyte took ${user} µs of the processor`)
})

masking('limits the number of values of one process', () => {
  const of = new Masking()
  let given = 0
  while (of.add(`value number ${given}`)) given++
  assert.is(given, 512)
  assert.ok(of.isHalfFull)
  assert.ok(of.add('value number 7'))
})

masking.run()
