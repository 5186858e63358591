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
] as const) {
  config(`refuses ${name}=${text}`, () => assert.match(refused({ [name]: text }), `${name}: expected`))
}

config.run()
