import * as assert from 'uvu/assert'
import { DOMAIN_PATTERN, domainNameOf, isIn } from '../../src/ports/domainName.ts'
import { suite } from '../support/suite.ts'

const names = suite('a domain name')

for (const [text, name] of [
  ['hooks.example.com', 'hooks.example.com'],
  ['HOOKS.Example.COM', 'hooks.example.com'],
  ['example.com.', 'example.com'],
  ['bücher.example', 'xn--bcher-kva.example'],
  ['a-b.c--d.example', 'a-b.c--d.example'],
  ['1.example', '1.example'],
  [`${'a'.repeat(63)}.example`, `${'a'.repeat(63)}.example`],
  [`${`${'a'.repeat(49)}.`.repeat(5)}com`, `${`${'a'.repeat(49)}.`.repeat(5)}com`], // 253
] as const) {
  names(`is ${text.slice(0, 30)}`, () => assert.is(domainNameOf(text), name))
}

for (const text of [
  '',
  '.',
  'localhost',
  'com.',
  '127.0.0.1',
  '0x7f.1',
  '1.2.3',
  '[::1]',
  '::1',
  'example.com:443',
  'https://example.com',
  'example.com/path',
  'user@example.com',
  '*.example.com',
  '_acme.example.com',
  '-a.example.com',
  'a-.example.com',
  'a..example.com',
  '.example.com',
  'example.com..',
  'a b.example.com',
  'example.com\n',
  'exa\u0000mple.com',
  'example.123',
  `${'a'.repeat(64)}.example`,
  `${`${'a'.repeat(49)}.`.repeat(5)}comm`, // 254
]) {
  names(`is not ${JSON.stringify(text).slice(0, 30)}`, () => {
    assert.is(domainNameOf(text), null)
    assert.not.ok(text.length <= 253 && new RegExp(DOMAIN_PATTERN).test(text), 'the pattern takes it')
  })
}

names('in ASCII, with a last label of letters, match the pattern', () => {
  for (const text of ['hooks.example.com', 'HOOKS.Example.COM', 'a-b.c--d.example', '1.example'])
    assert.ok(new RegExp(DOMAIN_PATTERN).test(text), text)
})

names('is recognized as part of a zone', () => {
  assert.ok(isIn('example.com', 'example.com') && isIn('example.com', 'a.b.example.com'))
  assert.not.ok(isIn('example.com', 'notexample.com'))
  assert.not.ok(isIn('example.com', 'com'))
})

names.run()
