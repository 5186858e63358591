import * as assert from 'uvu/assert'
import { clientAddress, NO_PROXIES, parseTrustedProxies } from '../../src/ports/trustedProxies.ts'
import { suite } from '../support/suite.ts'

const PEER = '10.0.0.5'

const clientOf = (
  setting: string | null,
  forwarded: string,
  { peer = PEER, real = '' }: { peer?: string; real?: string } = {},
): string => {
  const proxies = setting === null ? NO_PROXIES : parseTrustedProxies(setting)
  if (!proxies) throw new Error(`Expected ${setting} to be valid`)
  return clientAddress(proxies, { peer, forwarded, real })
}

const client = suite('the address of a client')

client('is that of its connection if no proxy is trusted', () => {
  for (const forwarded of ['', '203.0.113.7', '203.0.113.7, 198.51.100.1', '<script>'])
    assert.is(clientOf(null, forwarded, { real: '192.0.2.1' }), PEER)
  assert.is(clientOf('0', '203.0.113.7'), PEER)
})

client('is that of its connection if the peer is not among the trusted proxies', () => {
  assert.is(clientOf('10.1.0.0/16', '203.0.113.7', { real: '192.0.2.1' }), PEER)
})

client('is the last address that no trusted proxy has', () => {
  assert.is(clientOf('10.0.0.0/8', '1.1.1.1, 203.0.113.7'), '203.0.113.7')
  assert.is(clientOf('10.0.0.0/8', '1.1.1.1, 203.0.113.7, 10.9.9.9'), '203.0.113.7')
  assert.is(clientOf('10.0.0.5', '1.1.1.1, 203.0.113.7, 10.9.9.9'), '10.9.9.9')
  assert.is(clientOf('10.0.0.0/8', '10.3.3.3, 10.9.9.9'), '10.3.3.3')
})

client('is counted from the right by the number of proxies', () => {
  assert.is(clientOf('1', '1.1.1.1, 203.0.113.7'), '203.0.113.7')
  assert.is(clientOf('2', '1.1.1.1, 203.0.113.7, 10.9.9.9'), '203.0.113.7')
  assert.is(clientOf('3', '203.0.113.7'), '203.0.113.7')
})

client('is the last known one if a proxy forwarded text that is no address', () => {
  assert.is(clientOf('1', '203.0.113.7, <script>'), PEER)
  assert.is(clientOf('10.0.0.0/8', 'unknown, 10.9.9.9'), '10.9.9.9')
})

client('may come from X-Real-IP of a trusted proxy', () => {
  assert.is(clientOf('1', '', { real: '192.0.2.1' }), '192.0.2.1')
  assert.is(clientOf('1', '203.0.113.7', { real: '192.0.2.1' }), '203.0.113.7')
  assert.is(clientOf('1', '', { real: 'nonsense' }), PEER)
})

client('has one form: IPv4 in IPv6 is IPv4, ports are dropped', () => {
  assert.is(clientOf(null, '', { peer: '::ffff:10.0.0.5' }), PEER)
  assert.is(clientOf('10.0.0.0/8', '203.0.113.7:4711', { peer: '::ffff:10.0.0.5' }), '203.0.113.7')
  assert.is(clientOf('fd00::/8', '[2001:DB8::1]:443', { peer: 'fd00::1' }), '2001:db8::1')
})

client.run()

const setting = suite('SVC_TRUSTED_PROXIES')
for (const text of [
  '11',
  '-1',
  '1.2.3',
  '10.0.0.0/33',
  '10.0.0.0/8/8',
  '10.0.0.0/',
  'proxy.local',
  '::1/129',
  '10.0.0.1,',
])
  setting(`cannot be ${text}`, () => assert.is(parseTrustedProxies(text), undefined))
setting.run()
