import { crc32 } from 'node:zlib'
import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import {
  newApiToken,
  newIssuedToken,
  newSecret,
  parseApiToken,
  parseToken,
  sameText,
} from '../../src/access/tokens.ts'
import { Keyring } from '../../src/secrets/keyring.ts'
import { suite } from '../support/suite.ts'

const id = '01900000-0000-7000-8000-000000000001'
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const numberOf = (base62: string): number =>
  Array.from(base62).reduce((sum, digit) => sum * 62 + DIGITS.indexOf(digit), 0)

const tokens = suite('an API token')
tokens('contains the id of its key, 43 characters of secret and 6 of checksum', () => {
  for (let i = 0; i < 200; i++) {
    const token = newApiToken(id)
    assert.match(token, /^svc_01900000-0000-7000-8000-000000000001_[0-9A-Za-z]{49}$/)
    assert.is(numberOf(token.slice(-6)), crc32(token.slice(0, -6)))
  }
})
tokens('is new each time, in every digit', () => {
  const secrets = Array.from({ length: 500 }, () => newSecret('x'))
  assert.is(new Set(secrets).size, 500)
  for (let at = 1; at < 43; at++)
    assert.ok(new Set(secrets.map((secret) => secret[at])).size > 40, `digit ${at}`)
})
tokens('is parsed into its parts', () => {
  const token = newApiToken(id)
  assert.equal(parseApiToken(token), { api_key_id: id, secret: token.slice(4 + 36 + 1) })
})
tokens('may have a secret that was created elsewhere', () => {
  assert.equal(parseApiToken(`svc_${id}_abcdefghijklmnop`), { api_key_id: id, secret: 'abcdefghijklmnop' })
})
for (const bad of [
  '',
  'svc_',
  `svc_${id}`,
  `svc_${id}_`,
  `svc_${id}_short`,
  `svc_${id}_${'a'.repeat(129)}`,
  `svc_${id.toUpperCase()}_${'A'.repeat(49)}`.replace('0', 'G'),
  `SVC_${id}_${'a'.repeat(49)}`,
  `${id}_${'a'.repeat(49)}`,
  `s_${id}_${'a'.repeat(49)}`,
  `svc_${id}_${'a'.repeat(48)}-`,
  ` svc_${id}_${'a'.repeat(49)}`,
  `svc_${id}_${'a'.repeat(49)}\n`,
]) {
  tokens(`${JSON.stringify(bad.slice(0, 60))} is none`, () => assert.is(parseApiToken(bad), null))
}
for (const [kind, prefix] of [
  ['session', 's_'],
  ['service-key', ''],
] as const)
  tokens(`of a ${kind} name it, and prove themselves by their checksum`, () => {
    for (let n = 0; n < 200; n++) {
      const { token, secret } = newIssuedToken(kind, id)
      assert.is(token, `${prefix}${id}_${secret}`)
      assert.match(secret, /^[0-9A-Za-z]{49}$/)
      assert.is(numberOf(secret.slice(43)), crc32(token.slice(0, -6)))
      assert.equal(parseToken(token), { kind, id, secret })
      const at = token.length - 1 - (n % 49)
      const other = token[at] === 'x' ? 'y' : 'x'
      assert.is(parseToken(token.slice(0, at) + other + token.slice(at + 1)), null)
    }
  })
tokens('of one kind are not accepted as another kind', () => {
  const { token, secret } = newIssuedToken('service-key', id)
  for (const bad of [
    `s_${token}`,
    `S_${token}`,
    `${id}_${secret.slice(1)}`,
    `${token}0`,
    ` ${token}`,
    secret,
  ])
    assert.is(parseToken(bad), null)
  assert.is(parseToken(newApiToken(id))?.kind, 'api-key')
})
tokens.run()

const keyring = new Keyring(Buffer.alloc(32, 7))
const macs = suite('what is stored of a secret')
macs('has one shape, whatever the secret', () => {
  for (const secret of ['', 'a', newSecret('x'), 'ü'.repeat(1000)])
    assert.match(keyring.macOf(secret), /^[0-9a-f]{64}$/)
})
macs('proves that secret and no other', () => {
  const mac = keyring.macOf('secret')
  assert.ok(keyring.proves('secret', mac))
  for (const other of ['', 'Secret', 'secret ', 'secre']) assert.not.ok(keyring.proves(other, mac))
})
macs('proves nothing when it is damaged, and does not throw', () => {
  for (const mac of ['', 'zz', 'ab', keyring.macOf('secret').slice(2), `${keyring.macOf('secret')}00`]) {
    assert.not.ok(keyring.proves('secret', mac))
  }
})
macs('is of no use under another master key', () => {
  const other = new Keyring(Buffer.alloc(32, 8))
  assert.not.ok(other.proves('secret', keyring.macOf('secret')))
  assert.is(new Keyring(Buffer.alloc(32, 7)).macOf('secret'), keyring.macOf('secret'))
})
macs('never changes, because a change would invalidate every key', () => {
  assert.is(keyring.macOf('secret'), 'b1d1602413e3dcafaf0ed42bc4b87e5005efd1fe2e42e3c1f6f5afce8f6e143d')
})
macs.run()

const hook = { method: 'POST', service: 'stripe', path: '/paid' }
const webhooks = suite('the token in a webhook URL')
webhooks('is 33 digits and the same over redeploys and restarts', () => {
  const token = keyring.webhookToken('env', hook)
  assert.match(token, /^[0-9A-Za-z]{33}$/)
  assert.is(new Keyring(Buffer.alloc(32, 7)).webhookToken('env', { ...hook }), token)
  assert.is(token, '1WgCGfeQRPzMjorebuWv5CF2s4M7FEvRH')
})
webhooks('differs for each endpoint, environment and master key', () => {
  const made = [
    keyring.webhookToken('env', hook),
    keyring.webhookToken('other', hook),
    keyring.webhookToken('env', { ...hook, method: 'PUT' }),
    keyring.webhookToken('env', { ...hook, service: 'github' }),
    keyring.webhookToken('env', { ...hook, path: '/paid/' }),
    new Keyring(Buffer.alloc(32, 8)).webhookToken('env', hook),
  ]
  assert.is(new Set(made).size, made.length)
})
webhooks.run()

const equal = suite('comparing texts')
equal('distinguishes equal from different texts of any length', () => {
  const text = newId()
  assert.ok(sameText(text, `${text}`))
  assert.ok(sameText('', ''))
  for (const other of ['', text.slice(1), `${text}x`, text.toUpperCase()])
    assert.not.ok(sameText(text, other))
  assert.not.ok(sameText('é', 'e'))
})
equal.run()
