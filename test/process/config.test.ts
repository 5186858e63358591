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

const names = suite('unknown variables')

const refusal = (env: Record<string, string>): string => {
  try {
    readConfig(env)
    return ''
  } catch (error) {
    return messageOf(error)
  }
}

names('that are nearly a name are refused with that name', () => {
  assert.match(
    refusal({ SVC_READ_MODEL: 'mongodb://h/d' }),
    /SVC_READ_MODEL: unknown, did you mean SVC_READ_MODELS\?/,
  )
  assert.match(refusal({ SVC_EVENTSTORE: 'esdb://h' }), /did you mean SVC_EVENT_STORE\?/)
  assert.match(refusal({ SVC_PORT: '9000' }), /SVC_PORT: unknown, did you mean PORT\?/)
  assert.match(refusal({ SVC_HOST: '0.0.0.0' }), /SVC_HOST: unknown, did you mean HOST\?/)
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
