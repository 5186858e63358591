import * as assert from 'uvu/assert'
import { openEgress } from '../../src/egress/openEgress.ts'
import type { PolicyDeps } from '../../src/egress/policy.ts'
import { NOTHING_ALLOWED, parseOperatorAllow } from '../../src/egress/operatorAllow.ts'
import { openResolver } from '../../src/egress/resolver.ts'
import { BIG_BYTES, certificate, certificateKey, openLocalServers } from '../support/localServers.ts'
import { suite } from '../support/suite.ts'
import { openWorkbench, resultOf, type Workbench } from './harness.ts'

const openEgressOf = (deps: Partial<PolicyDeps> = {}) =>
  openEgress({
    resolve: openResolver(),
    allow: parseOperatorAllow('127.0.0.0/8,::1') ?? NOTHING_ALLOWED,
    ownPorts: () => new Set(),
    networkOf: () => null,
    ...deps,
  })

const network = suite<{ bench: Workbench; servers: Awaited<ReturnType<typeof openLocalServers>> }>(
  'the network of functions',
)

network.before(async (context) => {
  context.servers = await openLocalServers()
  context.bench = await openWorkbench('network', { egress: openEgressOf().serve, heartbeatMs: 20_000 })
})
network.after(async ({ bench, servers }) => {
  await bench.runtime.close()
  servers.close()
})

const call = ({ bench, servers }: { bench: Workbench; servers: { ports: object } }, name: string) =>
  resultOf(bench.invoke(`calls/${name}`, { args: [servers.ports, certificate, certificateKey] }))

const works: Readonly<Record<string, readonly [string, unknown]>> = {
  'fetch reaches a server': ['fetches', 'hello /a'],
  'more requests than connections wait for each other': ['fetchesMany', 300],
  'a large download arrives completely': ['downloads', BIG_BYTES],
  'a large upload arrives completely': ['uploads', String(3 << 20)],
  'an agent keeps its connection alive': ['keepsAlive', [false, true]],
  'https checks the certificate of the server': [
    'getsHttps',
    { text: 'hello /', authorized: true, remoteAddress: '127.0.0.1' },
  ],
  'HTTP/2 is negotiated': ['getsHttp2', { text: 'http 2.0', protocol: 'h2' }],
  'a socket that ended its side still receives': ['halfCloses', { text: 'abc', read: 3, written: 3 }],
  'a socket describes its connection': [
    'describesItself',
    {
      before: [true, true, 'opening'],
      after: [false, false, 'open'],
      remote: ['127.0.0.1', 'IPv4', true],
      localAddress: '127.0.0.1',
    },
  ],
  'TLS shows a certificate of the client': ['showsCertificate', 'authorized: true'],
  'a plain connection is upgraded to TLS': [
    'upgradesToTls',
    { text: 'secure x', remoteAddress: '127.0.0.1' },
  ],
  'a WebSocket receives': ['opensWebSocket', 'hi'],
  'a socket reports its timeout': ['timesOut', 'timeout'],
  'the second address of a lookup by user code is tried when the first one fails': [
    'looksUpItself',
    { text: 'q', remoteAddress: '127.0.0.1' },
  ],
  'a socket connects again after its end': ['connectsAgain', 'again'],
  'data that is read late is complete': ['readsLate', 2 << 20],
  'names are resolved by the service': [
    'resolves',
    [
      { address: '127.0.0.1', family: 4 },
      [
        { address: '127.0.0.1', family: 4 },
        { address: '::1', family: 6 },
      ],
      { address: '::1', family: 6 },
      ['127.0.0.1'],
      ['::1'],
    ],
  ],
}
for (const [rule, [name, expected]] of Object.entries(works))
  network(rule, async (context) => assert.equal(await call(context, name), expected))

network('a certificate that nothing signed is refused', async (context) => {
  const { cause } = (await call(context, 'refusesUntrusted')) as { cause: { code: string } }
  assert.is(cause.code, 'DEPTH_ZERO_SELF_SIGNED_CERT')
})

network('errors have the fields of Node', async (context) => {
  const { bench } = context
  const errorAt = (host: string, port: number) =>
    resultOf(bench.invoke('calls/connectsTo', { args: [host, port] }))
  assert.equal(await errorAt('127.0.0.1', 1), {
    code: 'ECONNREFUSED',
    syscall: 'connect',
    address: '127.0.0.1',
    port: 1,
    message: 'connect ECONNREFUSED 127.0.0.1:1',
  })
  const reset = (await call(context, 'isReset')) as { code: string; syscall: string }
  assert.is(`${reset.syscall} ${reset.code}`, 'read ECONNRESET')
  const aborted = (await call(context, 'isAborted')) as { code: string }
  assert.is(aborted.code, 'ABORT_ERR')
})

network('the callback of a write is called when the connection fails or is destroyed', async (context) => {
  const errors = (await call(context, 'failsToWrite')) as { code: string }[]
  assert.equal(
    errors.map(({ code }) => code),
    ['ECONNREFUSED', 'ERR_SOCKET_CLOSED'],
  )
})

network('callbacks of a socket belong to the run that connected it', async ({ bench, servers }) => {
  const printed = async (text: string) => {
    const lines: string[] = []
    await resultOf(
      bench.invoke('calls/prints', {
        args: [servers.ports, text],
        onLog: (line) => void lines.push(line.text),
      }),
    )
    return lines
  }
  const texts = ['one', 'two', 'three']
  assert.equal(
    await Promise.all(texts.map(printed)),
    texts.map((text) => [text]),
  )
})

network('what a function cannot use is refused with the reason', async ({ bench }) => {
  const refused = (await resultOf(bench.invoke('calls/misuses'))) as Record<string, { code: string }>
  for (const { code } of Object.values(refused)) assert.is(code, 'ERR_EGRESS_REFUSED')
  assert.equal(Object.keys(refused), ['unix', 'listen', 'datagrams', 'mail', 'tls'])
})

network('a private address is refused with the reason and the remedy', async () => {
  const bench = await openWorkbench('network', {
    egress: openEgressOf({ allow: NOTHING_ALLOWED }).serve,
    heartbeatMs: 20_000,
  })
  const { cause } = (await resultOf(
    bench.invoke('calls/fetchesUrl', { args: ['http://169.254.169.254/latest/meta-data'] }),
  )) as { cause: { code: string; message: string } }
  assert.is(cause.code, 'ERR_EGRESS_REFUSED')
  assert.match(
    cause.message,
    /169\.254\.169\.254:80 was refused: it is a link-local or metadata address.*SVC_EGRESS_ALLOW/,
  )
  await bench.runtime.close()
})

network('a build has no network while it is loaded at its upload', async ({ servers }) => {
  const bench = await openWorkbench(
    {
      'main.ts': `await fetch('http://127.0.0.1:${servers.ports.http}/')`,
    },
    { egress: openEgressOf().serve },
  )
  const accepted = servers.accepted
  const inspection = await bench.inspect()
  assert.is(inspection.ok, false)
  assert.match(
    JSON.stringify(inspection),
    /main\.ts:1: fetch failed: The connection was refused: there is no network while a build is loaded/,
  )
  assert.is(servers.accepted, accepted)
  await bench.runtime.close()
})

network.run()
