import { startDns } from '../support/dnsServer.ts'
import { until } from '../support/until.ts'
import { attackSuite } from './attack.ts'
import { allRefused, bearer, expected, head, hooksOf, raw } from './raw.ts'

interface Domain {
  readonly domain_id: string
  readonly domain: string
  readonly status: string
  readonly validation_cname_name: string
  readonly validation_cname_value: string
  readonly routing_domain: string | null
  readonly expires_at: string | null
}

const DNS_ENV = { SVC_DOMAINS_ZONE: 'zone.example', SVC_DOMAIN_CHECK_MS: '60000' }

attackSuite('custom domains', [
  {
    id: 'B/15-domains',
    attempt: 'names of the service, of private networks, addresses, wildcards, ports, URLs',
    severity: 'medium',
    run: async ({ fresh }) => {
      const { attacker, close } = await fresh(DNS_ENV)
      const outcomes: Record<string, number> = {}
      for (const domain of [
        'zone.example',
        'x.edge.zone.example',
        'localhost',
        '127.0.0.1',
        '0x7f.1',
        '2130706433',
        '[::1]',
        '*.example.com',
        'a.example:80',
        'http://a.example',
        'a.example/x',
        'a..example',
        'a_b.example',
        '-a.example',
        'single',
        'db.internal',
        'x.corp',
        'printer.local',
        'router.lan',
        '1.in-addr.arpa',
        'x.onion',
        `${'a'.repeat(64)}.example`,
        `${'a.'.repeat(130)}example`,
      ])
        outcomes[domain.slice(0, 40)] = (
          await attacker.api.send('POST', '/domains', { body: { domain } })
        ).status
      await close()
      return allRefused(outcomes, [400])
    },
  },
  {
    id: 'B/15-domains/proof',
    attempt: "old records, another tenant's record, loops and failures as proof",
    severity: 'high',
    run: async ({ fresh }) => {
      const dns = await startDns()
      const { attacker, victim, close } = await fresh({ ...DNS_ENV, SVC_DNS_SERVERS: dns.address })
      const register = ({ api }: typeof attacker, domain: string) => api.post<Domain>('/domains', { domain })
      const verify = async ({ api }: typeof attacker, { domain_id }: Domain) =>
        (await api.post<{ status: string }>(`/domains/${domain_id}/verify`)).status
      const theirs = await register(victim, 'a.example.com')
      dns.records.set(theirs.validation_cname_name, theirs.validation_cname_value)
      const outcomes: Record<string, string> = {}
      await victim.api.remove(`/domains/${theirs.domain_id}`)
      const taken = await until(() => register(attacker, 'a.example.com').catch(() => undefined))
      outcomes['the old record'] = await verify(attacker, taken)
      const other = await register(attacker, 'b.example.com')
      dns.records.set(other.validation_cname_name, theirs.validation_cname_value)
      outcomes["another tenant's record"] = await verify(attacker, other)
      dns.records.set(other.validation_cname_name, 'x.example.net')
      dns.records.set('x.example.net', 'y.example.net')
      dns.records.set('y.example.net', 'x.example.net')
      outcomes['a loop'] = await verify(attacker, other)
      dns.mood = 'fails'
      outcomes['a failure'] = await verify(attacker, other)
      await close()
      await dns.stop()
      return allRefused(outcomes, ['pending_validation'])
    },
  },
  {
    id: 'B/15-domains/internal',
    attempt: 'verify follows records into private zones, and reports where they lead',
    severity: 'low',
    run: async ({ fresh }) => {
      const dns = await startDns()
      const { attacker, close } = await fresh({ ...DNS_ENV, SVC_DNS_SERVERS: dns.address })
      const domain = await attacker.api.post<Domain>('/domains', { domain: 'x.attacker.example' })
      const { validation_cname_name: name } = domain
      const verify = async () =>
        (await attacker.api.post<{ message: string }>(`/domains/${domain.domain_id}/verify`)).message
      dns.records.set('db.internal', 'db-primary-7.secret.internal')
      dns.records.set('hop.attacker.example', 'db-primary-7.secret.example')
      for (const target of ['db.internal', 'hop.attacker.example', 'single', 'x.corp']) {
        dns.records.set(name, target)
        const message = await verify()
        expected(!message.includes('secret'), message)
      }
      const asked = dns.asked.filter((one) => /internal$|corp$|^single$/.test(one))
      await close()
      await dns.stop()
      expected(asked.length === 0, `asked: ${asked.join(', ')}`)
      return 'only the first target is reported, and no private name is looked up'
    },
  },
  {
    id: 'B/15-domains/squat',
    attempt: 'hold a name without proof, for ever, against its owner',
    severity: 'low',
    run: async ({ fresh }) => {
      const dns = await startDns()
      const { attacker, victim, close } = await fresh({ ...DNS_ENV, SVC_DNS_SERVERS: dns.address })
      const squat = await attacker.api.post<Domain>('/domains', { domain: 'owned.example.com' })
      const days = (Date.parse(squat.expires_at ?? '') - Date.now()) / 86_400_000
      expected(days > 6 && days <= 7, `expires in ${days} days`)
      const { code, message } = await victim.api.refused('POST', '/domains', { domain: 'owned.example.com' })
      const [, record = '', target = ''] = /(\S+) CNAME (\S+)/.exec(message) ?? []
      expected(code === 'domain_exists' && target.startsWith(victim.env_id), message)
      dns.records.set(record, target)
      const owned = await victim.api.post<Domain>('/domains', { domain: 'owned.example.com' })
      const back = await attacker.api.refused('POST', '/domains', { domain: 'owned.example.com' })
      await close()
      await dns.stop()
      expected(owned.status === 'pending_validation' && back.code === 'domain_exists', back.message)
      return 'a claim expires after 7 days, and the owner takes precedence with a DNS record at once'
    },
  },
  {
    id: 'B/15-domains/host',
    attempt:
      "an active domain: other tenants' endpoints, the API and the docs under it, headers of its origin elsewhere",
    severity: 'high',
    run: async ({ fresh }) => {
      const dns = await startDns()
      const { attacker, victim, server, operator, close } = await fresh({
        ...DNS_ENV,
        SVC_DNS_SERVERS: dns.address,
      })
      const domain = await attacker.api.post<Domain>('/domains', { domain: 'hooks.attacker.example' })
      const path = `/domains/${domain.domain_id}`
      dns.records.set(domain.validation_cname_name, domain.validation_cname_value)
      const status = async (wanted: string) =>
        until(async () => {
          await attacker.api.post(`${path}/verify`)
          const now = await attacker.api.get<Domain>(path)
          return now.status === wanted ? now : undefined
        })
      dns.records.set(domain.domain, (await status('provisioning')).routing_domain ?? '')
      await status('active')
      const own = new URL(
        (await hooksOf(attacker, { own: { code: `() => 'own'` } })).get('own') ?? '',
      ).pathname.split('/')
      const theirs = new URL(
        (await hooksOf(victim, { own: { code: `() => 'theirs'` } })).get('own') ?? '',
      ).pathname.split('/')
      const call = async (target: string, host: string = domain.domain) =>
        (await raw(server.url, head(target, `Host: ${host}`, bearer(victim)))).status
      const short = (parts: readonly string[]) => `POST /webhook/${parts.slice(4).join('/')}`
      expected((await call(short(own))) === 200, 'the own endpoint is not served')
      const outcomes: Record<string, number> = {
        'by the token of the victim': await call(short(theirs)),
        'by the path of the victim': await call(`POST ${theirs.join('/')}`),
        'own by its long path': await call(`POST ${own.join('/')}`),
        api: await call('GET /v1/env'),
        docs: await call('GET /docs'),
        document: await call('GET /openapi.json'),
        operator: (
          await raw(
            server.url,
            head('GET /operator/orgs', `Host: ${domain.domain}`, `Authorization: Bearer ${operator.key}`),
          )
        ).status,
        'another case': await call('GET /v1/env', domain.domain.toUpperCase()),
        dot: await call('GET /docs', `${domain.domain}.`),
        port: await call('GET /docs', `${domain.domain}:8443`),
      }
      outcomes['two hosts'] = (
        await raw(server.url, head(short(own), `Host: ${domain.domain}`, 'Host: svc'))
      ).status
      await close()
      await dns.stop()
      return allRefused(outcomes, [400, 404])
    },
  },
])
