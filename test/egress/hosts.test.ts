import * as assert from 'uvu/assert'
import { hostOf, hostPatternOf, matches, textOfPattern } from '../../src/egress/hosts.ts'
import { suite } from '../support/suite.ts'

const hosts = suite('hosts')

hosts('a name has one form: lower case, Punycode, no trailing dot', () => {
  for (const [text, name] of [
    ['Example.COM', 'example.com'],
    ['example.com.', 'example.com'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['_dmarc.example.com', '_dmarc.example.com'],
    ['localhost.', 'localhost'],
  ] as const)
    assert.equal(hostOf(text), { kind: 'name', name })
})

hosts('an address has one form; a mapped one is IPv4', () => {
  const addressOf = (text: string) => {
    const host = hostOf(text)
    return host?.kind === 'address' ? host.address : host
  }
  assert.is(addressOf('127.0.0.1'), '127.0.0.1')
  assert.is(addressOf('[::1]'), '::1')
  assert.is(addressOf('0:0:0:0:0:0:0:1'), '::1')
  assert.is(addressOf('::ffff:10.0.0.1'), '10.0.0.1')
  assert.is(addressOf('::FFFF:0a00:0001'), '10.0.0.1')
})

hosts('other spellings of addresses are no hosts', () => {
  for (const text of [
    '0177.0.0.1',
    '0x7f.0.0.1',
    '0x7f000001',
    '2130706433',
    '127.1',
    '127.0.0.1.',
    '1.2.3.4.5',
    '１２７.0.0.1',
    '127。0。0。1',
    'fe80::1%eth0',
    '[127.0.0.1',
    '::1%lo',
    '[fe80::1%25eth0]',
    'example.com.0x7f',
    'a@127.0.0.1',
    '127.0.0.1:80',
    '127.0.0.1/x',
    'a b',
    'a\0.example.com',
    '.example.com',
    'a..b',
    '-a.example.com',
    '',
    '.',
    `${'a'.repeat(64)}.example.com`,
    `${'a.'.repeat(140)}com`,
  ])
    assert.is(hostOf(text), undefined, text)
})

hosts('a pattern is a name, the names below a zone or an address, with one port or all', () => {
  const text = (pattern: string) => {
    const parsed = hostPatternOf(pattern)
    return parsed && textOfPattern(parsed)
  }
  for (const same of [
    'api.stripe.com',
    '*.example.com',
    'a.example:8443',
    '*.example.com:443',
    '192.0.2.1:5',
    '[2001:db8::1]:443',
  ])
    assert.is(text(same), same)
  assert.is(text('API.Stripe.com.'), 'api.stripe.com')
  assert.is(text('2001:DB8:0::1'), '2001:db8::1')
  for (const wrong of [
    '',
    '*',
    '*.',
    'https://a.example',
    'a.example/x',
    'a.*.example',
    '*a.example',
    '10.0.0.0/8',
    '*.10.0.0.1',
    'a:0',
    'a:65536',
    'a:',
    '0x7f.1',
  ])
    assert.is(hostPatternOf(wrong), undefined, wrong)
})

hosts('a wildcard contains the names below its zone, at any depth, but not the zone', () => {
  const isIn = (pattern: string, host: string, port: number | null = 443) => {
    const parsed = hostPatternOf(pattern)
    return parsed !== undefined && matches(parsed, host, port)
  }
  assert.is(isIn('*.example.com', 'a.example.com'), true)
  assert.is(isIn('*.example.com', 'a.b.example.com'), true)
  assert.is(isIn('*.example.com', 'example.com'), false)
  assert.is(isIn('*.example.com', 'notexample.com'), false)
  assert.is(isIn('example.com', 'a.example.com'), false)
  assert.is(isIn('example.com:443', 'example.com', 80), false)
  assert.is(isIn('example.com:443', 'example.com', null), true)
})

hosts.run()
