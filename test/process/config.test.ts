import { randomBytes } from 'node:crypto'
import * as assert from 'uvu/assert'
import { readConfig } from '../../src/process/config.ts'
import { messageOf } from '../../src/errors.ts'
import { suite } from '../support/suite.ts'

const config = suite('the configuration of custom domains')

config('has its own zone, or that of the public URL if it has a name', () => {
  assert.is(readConfig({ SVC_DOMAINS_ZONE: 'Edge.Example.ORG' }).domainsZone, 'edge.example.org')
  assert.is(readConfig({ SVC_PUBLIC_URL: 'https://svc.example.org:8443/x' }).domainsZone, 'svc.example.org')
  assert.is(readConfig({ SVC_PUBLIC_URL: 'http://127.0.0.1:8080' }).domainsZone, 'svc.localhost')
  assert.is(readConfig({}).domainsZone, 'svc.localhost')
})

config('names resolvers by address, with or without a port', () => {
  assert.equal(readConfig({}).dnsServers, [])
  const servers = ['192.0.2.1', '192.0.2.2:5353', '2001:db8::1', '[2001:db8::1]:53']
  assert.equal(readConfig({ SVC_DNS_SERVERS: servers.join(', ') }).dnsServers, servers)
})

config('asks the resolvers of functions about custom domains, unless others are named', () => {
  const SVC_DNS_SERVERS = '192.0.2.1'
  assert.equal(readConfig({ SVC_DNS_SERVERS }).dnsResolvers, ['192.0.2.1'])
  const { dnsResolvers, dnsServers } = readConfig({
    SVC_DNS_SERVERS,
    SVC_DNS_RESOLVERS: '192.0.2.2,192.0.2.3',
  })
  assert.equal([dnsResolvers, dnsServers], [['192.0.2.2', '192.0.2.3'], ['192.0.2.1']])
})

config('orders certificates only from a named authority whose terms are accepted', () => {
  const problem = (env: Record<string, string>): string => {
    try {
      readConfig(env)
      return ''
    } catch (error) {
      return messageOf(error)
    }
  }
  const SVC_ACME_URL = 'https://ca.example/directory'
  assert.is(readConfig({}).acme, null)
  assert.match(problem({ SVC_ACME_URL }), /SVC_ACME_ACCEPT_TERMS: expected 1/)
  assert.match(problem({ SVC_TLS_PORT: '8443' }), /SVC_ACME_URL: required/)
  assert.match(problem({ SVC_ACME_DNS_PORT: '5353' }), /SVC_ACME_URL: required/)
  const accepted = readConfig({ SVC_ACME_URL, SVC_ACME_ACCEPT_TERMS: '1', SVC_TLS_PORT: '0' })
  assert.equal(accepted.acme, { directoryUrl: SVC_ACME_URL, email: null, caFile: null })
  assert.equal([accepted.tlsPort, accepted.acmeDnsPort], [0, null])
})

config('believes no proxy, unless some are named', () => {
  assert.equal(readConfig({}).trustedProxies, { kind: 'hops', hops: 0 })
  assert.equal(readConfig({ SVC_TRUSTED_PROXIES: '2' }).trustedProxies, { kind: 'hops', hops: 2 })
  assert.is(readConfig({ SVC_TRUSTED_PROXIES: '10.0.0.0/8, ::1' }).trustedProxies.kind, 'addresses')
})

config('limits the operator to a host, in lower case', () => {
  assert.is(readConfig({}).operatorHost, null)
  assert.is(readConfig({ SVC_OPERATOR_HOST: 'Ops.Example' }).operatorHost, 'ops.example')
})

config('opens the API to the pages of the named origins only', () => {
  assert.is(readConfig({}).corsOrigins, null)
  assert.equal(readConfig({ SVC_CORS_ORIGINS: 'https://app.example, http://localhost:*' }).corsOrigins, {
    exact: new Set(['https://app.example']),
    anyPort: new Set(['http://localhost']),
  })
})

config('has no traces without a collector', () => {
  assert.is(readConfig({ OTEL_SERVICE_NAME: 'orders' }).traces, null)
  const OTEL_EXPORTER_OTLP_ENDPOINT = 'https://collector.example:4318/'
  const OTEL_EXPORTER_OTLP_HEADERS = 'api-key = a%20b ,x=1'
  assert.equal(
    readConfig({ OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS, OTEL_TRACES_SAMPLER_ARG: '0.25' })
      .traces,
    {
      endpoint: 'https://collector.example:4318',
      headers: { 'api-key': 'a b', x: '1' },
      serviceName: 'svc',
      ratio: 0.25,
    },
  )
})

const KEY_ID = '01a20000-0000-7000-8000-000000000000'

config('accepts secrets that are hard to guess', () => {
  const token = 'f3a1c07e55d94b2286e0b1d7c4a9f812'
  assert.is(readConfig({ SVC_OPERATOR_TOKEN: token }).operatorToken, token)
  assert.is(readConfig({ SVC_API_KEY: `svc_${KEY_ID}_${token}` }).apiKey, `svc_${KEY_ID}_${token}`)
})

const refused = (env: Record<string, string>): string => {
  try {
    return `Expected a refusal, got ${readConfig(env).domainsZone}`
  } catch (error) {
    return messageOf(error)
  }
}
for (const [name, text] of [
  ['SVC_DOMAINS_ZONE', 'localhost'],
  ['SVC_DOMAINS_ZONE', '127.0.0.1'],
  ['SVC_DNS_SERVERS', 'dns.example.com'],
  ['SVC_DNS_SERVERS', '192.0.2.1,'],
  ['SVC_DNS_SERVERS', '192.0.2.1:99999'],
  ['SVC_DOMAIN_CHECK_MS', '9'],
  ['SVC_LOG_LEVEL', 'verbose'],
  ['SVC_LOG_FORMAT', 'xml'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'localhost:4318'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'no value'],
  ['OTEL_TRACES_SAMPLER_ARG', '2'],
  ['SVC_DOMAIN_RECHECK_MS', '99'],
  ['SVC_DNS_RESOLVERS', 'dns.example.com'],
  ['SVC_ACME_URL', 'http://ca.example/directory'],
  ['SVC_ACME_EMAIL', 'ops'],
  ['SVC_ACME_EMAIL', 'a@example.com,b@example.com'],
  ['SVC_TLS_PORT', '65536'],
  ['SVC_ACME_DNS_PORT', 'dns'],
  ['SVC_TRUSTED_PROXIES', 'proxy.local'],
  ['SVC_CORS_ORIGINS', '*'],
  ['SVC_CORS_ORIGINS', 'https://app.example/'],
  ['SVC_OPERATOR_HOST', 'https://ops.example'],
  ['SVC_OPERATOR_TOKEN', 'a'.repeat(16)],
  ['SVC_OPERATOR_TOKEN', 'a'.repeat(64)],
  ['SVC_OPERATOR_TOKEN', 'f3a1c07e55d94b2286e0b1d7c4a9f81'],
  ['SVC_OPERATOR_TOKEN', 'f3a1c07e55d94b22 86e0b1d7c4a9f8122'],
  ['SVC_API_KEY', `svc_${KEY_ID}_${'a'.repeat(32)}`],
  ['SVC_API_KEY', `svc_${KEY_ID}_f3a1c07e55d94b2`],
] as const) {
  config(`refuses ${name}=${text}`, () => assert.match(refused({ [name]: text }), `${name}: expected`))
}

config('refuses an address that lacks a part, because the resolver would refuse it at the start', () => {
  for (const text of ['1.1.1', '1.1.1:53', '[192.0.2.1]:53', '192.0.2.1:', '::1]:53'])
    assert.match(refused({ SVC_DNS_RESOLVERS: text }), 'SVC_DNS_RESOLVERS: expected', text)
})

config('refuses a host with a scheme, a port or spaces', () => {
  for (const text of ['http://0.0.0.0', '0.0.0.0:8080', 'a b', '[::1]'])
    assert.match(refused({ HOST: text }), `HOST: expected`, text)
  for (const text of ['localhost', '0.0.0.0', '::', 'fe80::1%eth0', 'my_host.internal'])
    assert.is(readConfig({ HOST: text }).host, text)
})

const received = suite('a value that is not valid')

received('is reported with its name, what is expected, an example and the value', () => {
  assert.match(
    refused({ SVC_RUN_TIMEOUT_MS: '5m' }),
    'SVC_RUN_TIMEOUT_MS: expected a whole number from 1 to 86400000, such as 300000; got 5m',
  )
  assert.match(
    refused({ SVC_ROLES: 'api,wrker' }),
    'SVC_ROLES: expected some of api,worker,projector,saga; got api,wrker',
  )
  assert.match(
    refused({ SVC_PUBLIC_URL: 'svc.example.com' }),
    'SVC_PUBLIC_URL: expected an http or https URL, such as https://svc.example.com; got svc.example.com',
  )
  assert.match(refused({ SVC_LOG_LEVEL: 'trace' }), 'expected debug, info, warn or error; got trace')
})

received('is on one line and has an end', () => {
  const [, line = ''] = refused({ SVC_SANDBOX: `none\n\u001b[31m${'x'.repeat(10_000)}` }).split('\n')
  assert.match(line, 'got none\\u000a\\u001b[31mxxx')
  assert.ok(line.length < 300, line)
})

received('is shown without user, password and query if it is a URL', () => {
  for (const [name, text, shown] of [
    [
      'SVC_EVENT_STORE',
      'http://admin:hidden@store:2113?tls=false&password=hidden',
      'http://***@store:2113?***',
    ],
    ['SVC_READ_MODELS', 'postgres://u:hid/d@en@h/db', 'postgres://***@h/db'],
    ['SVC_READ_MODELS', 'mongo:hidden@h/db', '***@h/db'],
    ['SVC_BLOBS', 'https://key:hidden@minio:9000/svc', 'https://***@minio:9000/svc'],
    ['SVC_REDIS', 'redi://:hid?den@cache:6379', 'redi://***@cache:6379'],
    ['SVC_REDIS', 'redi://hidden@cache:6379', 'redi://***@cache:6379'],
    ['SVC_PUBLIC_URL', 'ftp://u:hidden@h/?key=hidden#hidden', 'ftp://***@h/?***'],
    ['SVC_ACME_URL', 'http://u:hidden@ca.example/directory', 'http://***@ca.example/directory'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'grpc://u:hidden@h:4317', 'grpc://***@h:4317'],
    ['SVC_EGRESS_ALLOW', 'http://u:hidden@h', 'http://***@h'],
  ] as const) {
    const message = refused({ [name]: text, SVC_MASTER_KEY: randomBytes(32).toString('base64') })
    assert.ok(message.endsWith(`; got ${shown}`), message)
    assert.not.match(message, 'hid')
  }
})

received('is counted and not shown if it is a secret', () => {
  const token = `svc_${KEY_ID}_${'hidden'.repeat(2)}`
  for (const [env, got] of [
    [{ SVC_MASTER_KEY: 'aGlkZGVu' }, '6 bytes'],
    [{ SVC_MASTER_KEY: 'f3a1c07e55d94b22'.repeat(4) }, '48 bytes'],
    [{ SVC_MASTER_KEY_PREVIOUS: 'aGlkZGVu' }, '6 bytes'],
    [{ SVC_API_KEY: token }, `${token.length} characters`],
    [{ SVC_OPERATOR_TOKEN: 'aGlkZGVu' }, '8 characters'],
    [{ OTEL_EXPORTER_OTLP_HEADERS: 'aGlkZGVu' }, '8 characters'],
  ] as const) {
    const text = refused(env)
    assert.match(text, `; got ${got}, not shown`)
    assert.not.match(text, /hidden|aGlkZGVu|f3a1c07e/)
  }
})

received.run()

const names = suite('unknown variables')

names('that are nearly a name are refused with that name', () => {
  assert.match(
    refused({ SVC_READ_MODEL: 'mongodb://h/d' }),
    /SVC_READ_MODEL: unknown, did you mean SVC_READ_MODELS\?/,
  )
  assert.match(refused({ SVC_EVENTSTORE: 'esdb://h' }), /did you mean SVC_EVENT_STORE\?/)
  assert.match(refused({ SVC_PORT: '9000' }), /SVC_PORT: unknown, did you mean PORT\?/)
  assert.match(refused({ SVC_HOST: '0.0.0.0' }), /SVC_HOST: unknown, did you mean HOST\?/)
})

names('in lower case are refused with the name in capitals', () => {
  assert.match(refused({ svc_port: '9000' }), /svc_port: unknown, did you mean PORT\?/)
  assert.match(refused({ svc_data_dir: '/srv' }), /svc_data_dir: unknown, did you mean SVC_DATA_DIR\?/)
})

names('are listed for a warning otherwise', () => {
  assert.equal(readConfig({ SVC_COLOUR: 'blue', OTHER: '1', SVC_EMPTY: '' }).unknown, ['SVC_COLOUR'])
})

names('do not include those of the command line, of tests and of services in Kubernetes', () => {
  const env = {
    SVC_URL: 'http://127.0.0.1:8080',
    SVC_KEY: 'x',
    SVC_PROFILE: 'x',
    SVC_TEST_REDIS: 'redis://h',
    SVC_PORT: 'tcp://10.0.0.1:8080',
    SVC_SERVICE_HOST: '10.0.0.1',
    SVC_PORT_8080_TCP_ADDR: '10.0.0.1',
    SVC_REDIS_SERVICE_PORT: '6379',
    SVC_REDIS_PORT: 'tcp://10.0.0.2:6379',
  }
  assert.equal(readConfig(env).unknown, [])
})

names.run()
config.run()
