import * as assert from 'uvu/assert'
import type { Address } from '../../src/egress/frames.ts'
import { type HostPattern, hostPatternOf } from '../../src/egress/hosts.ts'
import { NOTHING_ALLOWED, parseOperatorAllow } from '../../src/egress/operatorAllow.ts'
import { openPolicy } from '../../src/egress/policy.ts'
import { EgressError } from '../../src/egress/refusal.ts'
import { suite } from '../support/suite.ts'

const policy = suite('the policy of the egress')

interface Given {
  readonly answers?: Readonly<Record<string, readonly string[]>>
  readonly allow?: string
  readonly network?: readonly string[] | null
  readonly own?: readonly string[]
  readonly ports?: readonly number[]
  readonly namesOf?: (address: string) => readonly string[]
}

const patterns = (texts: readonly string[]): HostPattern[] =>
  texts.flatMap((text) => hostPatternOf(text) ?? [])

/** The addresses for a target, or the message of the refusal. */
const admitted = async (
  host: string,
  { answers = {}, allow, network = null, own = [], ports = [], namesOf = () => [] }: Given = {},
  port: number | null = 443,
): Promise<string> => {
  const admit = openPolicy({
    resolve: async (name) =>
      (answers[name] ?? []).map((address): Address => ({ address, family: address.includes(':') ? 6 : 4 })),
    allow: allow === undefined ? NOTHING_ALLOWED : (parseOperatorAllow(allow) ?? NOTHING_ALLOWED),
    ownPorts: () => new Set(ports),
    ownAddresses: () => new Set(own),
  })
  try {
    const found = await admit({ host, port, family: 0, network: network && patterns(network), namesOf })
    return found.map(({ address }) => address).join(' ')
  } catch (error) {
    if (!(error instanceof EgressError)) throw error
    assert.is(error.fields.code, 'ERR_EGRESS_REFUSED')
    return error.message
  }
}

policy('public addresses are reached', async () => {
  for (const address of [
    '1.1.1.1',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '172.15.255.255',
    '172.32.0.0',
    '198.17.255.255',
    '223.255.255.255',
    '2606:4700::1111',
    '2400:cb00::1',
  ])
    assert.is(await admitted(address), address)
})

policy('no other address is reached', async () => {
  for (const address of [
    '0.0.0.0',
    '0.1.2.3',
    '10.0.0.1',
    '10.255.255.255',
    '100.64.0.1',
    '100.100.100.200',
    '127.0.0.1',
    '127.255.255.254',
    '168.63.129.16',
    '169.254.169.254',
    '169.254.0.1',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.192',
    '192.0.2.1',
    '192.88.99.1',
    '192.168.0.1',
    '198.18.0.1',
    '198.19.255.255',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '239.255.255.250',
    '240.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::127.0.0.1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '[::ffff:169.254.169.254]',
    '::ffff:0:127.0.0.1',
    '64:ff9b::7f00:1',
    '64:ff9b:1::a00:1',
    '100::1',
    '2001::1',
    '2001:0:4136:e378:8000:63bf:3fff:fdd2',
    '2001:2::1',
    '2001:db8::1',
    '2002:7f00:1::',
    '2002:c0a8:1::1',
    '3fff::1',
    '4000::1',
    '5f00::1',
    'fc00::1',
    'fd00:ec2::254',
    'fe80::1',
    'febf::1',
    'fec0::1',
    'ff02::1',
    'ff0e::1',
  ])
    assert.match(await admitted(address), /was refused: it is /, address)
})

policy('one address that is not public refuses the whole name', async () => {
  const answers = {
    'mixed.example': ['1.1.1.1', '10.0.0.1'],
    'mixed6.example': ['1.1.1.1', '::1'],
    'mapped.example': ['::ffff:127.0.0.1'],
    'public.example': ['1.1.1.1', '2606:4700::1111'],
  }
  assert.match(
    await admitted('mixed.example', { answers }),
    /mixed\.example:443 was refused: it is a private address/,
  )
  assert.match(await admitted('mixed6.example', { answers }), /loopback/)
  assert.match(await admitted('mapped.example', { answers }), /loopback/)
  assert.is(await admitted('public.example', { answers }), '1.1.1.1 2606:4700::1111')
})

policy('a name with very many addresses is refused', async () => {
  const addresses = (count: number) => Array.from({ length: count }, (_, index) => `1.1.1.${index}`)
  const answers = { 'some.example': addresses(32), 'many.example': addresses(33) }
  assert.is((await admitted('some.example', { answers })).split(' ').length, 32)
  assert.match(await admitted('many.example', { answers }), /more than 32 addresses/)
})

policy('a lookup obeys the same rules', async () => {
  assert.match(
    await admitted('a.example', { answers: { 'a.example': ['10.0.0.1'] } }, null),
    /lookup of a\.example was refused/,
  )
  assert.match(await admitted('a.example', { network: [] }, null), /not in `network`/)
})

policy('addresses of this machine are refused even if they are public', async () => {
  assert.match(await admitted('1.1.1.1', { own: ['1.1.1.1'] }), /an address of this machine/)
})

policy('only hosts in `network` of the project are reached; the refusal names the remedy', async () => {
  const answers = { 'api.example': ['1.1.1.1'], 'a.zone.example': ['1.1.1.1'] }
  const network = ['api.example:443', '*.zone.example', '9.9.9.9']
  assert.is(await admitted('API.example.', { answers, network }), '1.1.1.1')
  assert.is(await admitted('a.zone.example', { answers, network }), '1.1.1.1')
  assert.is(await admitted('9.9.9.9', { network }), '9.9.9.9')
  assert.match(await admitted('api.example', { answers, network }, 80), /add "api\.example" to `network`/)
  assert.match(await admitted('1.1.1.1', { network }), /not in `network`/)
  assert.match(await admitted('api.example', { answers, network: [] }), /not in `network`/)
})

policy('an address that was looked up counts as its names', async () => {
  const namesOf = (address: string) => (address === '1.1.1.1' ? ['cdn.example', 'api.example'] : [])
  for (const name of ['api.example', 'cdn.example', 'api.example:443'])
    assert.is(await admitted('1.1.1.1', { network: [name], namesOf }), '1.1.1.1', name)
  for (const name of ['other.example', 'api.example:80'])
    assert.match(await admitted('1.1.1.1', { network: [name], namesOf }), /not in `network`/, name)
  assert.match(await admitted('1.1.1.2', { network: ['api.example'], namesOf }), /not in `network`/)
})

policy('a name of an address is no use to it where `network` does not contain that name', async () => {
  const namesOf = () => ['a.internal', 'b.internal']
  const allow = 'a.internal'
  assert.is(await admitted('10.0.0.5', { allow, namesOf }), '10.0.0.5')
  assert.is(await admitted('10.0.0.5', { allow, namesOf, network: ['*.internal'] }), '10.0.0.5')
  for (const network of [['b.internal'], ['10.0.0.5'], ['b.internal', 'a.internal:80']])
    assert.match(await admitted('10.0.0.5', { allow, namesOf, network }), /private/, network.join())
})

policy('the operator allows networks, hosts and single ports that are not public', async () => {
  const answers = { 'db.internal': ['10.0.0.5'] }
  assert.is(await admitted('10.0.0.5', { allow: '10.0.0.0/8' }), '10.0.0.5')
  assert.is(await admitted('db.internal', { answers, allow: '10.0.0.0/8' }), '10.0.0.5')
  assert.is(await admitted('db.internal', { answers, allow: 'db.internal:443' }), '10.0.0.5')
  assert.match(await admitted('db.internal', { answers, allow: 'db.internal:5432' }), /private/)
  assert.match(
    await admitted('other.internal', { answers: { 'other.internal': ['10.0.0.5'] }, allow: 'db.internal' }),
    /private/,
  )
  assert.is(await admitted('::1', { allow: '::1/128' }), '::1')
  assert.match(
    await admitted('10.0.0.5', { allow: '10.0.0.0/8', network: ['a.example'] }),
    /not in `network`/,
  )
})

policy('the service itself is reached only where the operator names its port', async () => {
  const ports = [443]
  assert.match(await admitted('127.0.0.1', { ports, allow: '127.0.0.0/8' }), /the address of this service/)
  assert.match(await admitted('0.0.0.0', { ports, allow: '0.0.0.0/8' }), /the address of this service/)
  assert.match(
    await admitted('10.0.0.9', { ports, own: ['10.0.0.9'], allow: '10.0.0.0/8' }),
    /the address of this service/,
  )
  assert.is(await admitted('10.0.0.8', { ports, own: ['10.0.0.9'], allow: '10.0.0.0/8' }), '10.0.0.8')
  assert.is(await admitted('127.0.0.1', { ports, allow: '127.0.0.1:443' }), '127.0.0.1')
})

policy('SVC_EGRESS_ALLOW contains networks, hosts and ports', () => {
  for (const right of ['10.0.0.0/8', 'fd00::/8, 127.0.0.1:5432', 'db.internal', '[::1]:80'])
    assert.ok(parseOperatorAllow(right), right)
  for (const wrong of ['10.0.0.0/33', 'fd00::/129', '10.0.0/8', '*', 'http://a.example', 'a,,b', 'a/8'])
    assert.is(parseOperatorAllow(wrong), undefined, wrong)
})

policy.run()
