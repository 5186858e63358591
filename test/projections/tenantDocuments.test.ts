import * as assert from 'uvu/assert'
import type { DomainEvent } from '../../src/events/index.ts'
import { domains } from '../../src/projections/customDomains.ts'
import { provedDomains } from '../../src/projections/provedDomains.ts'
import { serviceKeys, sessions } from '../../src/projections/issued.ts'
import { apiKeys, envs, orgs } from '../../src/projections/tenants.ts'
import { suite } from '../support/suite.ts'
import { at, docsAfter, order } from './recorded.ts'

/** The fields that a document takes from the fact that created it. */
const fieldsOf = <Created extends DomainEvent>({ type: _, ...fields }: Created): Omit<Created, 'type'> =>
  fields
const created = { created_at: at(0), order: order(0) }

const tenant = suite('the documents of tenants')
const orgCreated: DomainEvent = {
  type: 'OrgCreated',
  org_id: 'o',
  slug: 'acme',
  name: 'Acme',
  plan: 'pro',
}
const orgDoc = { ...fieldsOf(orgCreated), ...created, team_members: 1 }
tenant('an organization', () =>
  assert.equal(docsAfter(orgs, [orgCreated]), {
    o: orgDoc,
  }),
)
tenant('an organization that changed', () =>
  assert.equal(
    docsAfter(orgs, [
      orgCreated,
      { type: 'OrgChanged', org_id: 'o', plan: 'scale' },
      { type: 'OrgChanged', org_id: 'o', name: 'New', team_members: 5 },
    ]),
    { o: { ...orgDoc, plan: 'scale', name: 'New', team_members: 5 } },
  ),
)
const envDoc = {
  env_id: 'n',
  org_id: 'o',
  name: 'dev',
  active: true,
  deleting: null,
  created_at: at(0),
  order: order(0),
}
tenant('an environment', () =>
  assert.equal(docsAfter(envs, [{ type: 'EnvCreated', env_id: 'n', org_id: 'o', name: 'dev' }]), {
    n: envDoc,
  }),
)
const envCreated: DomainEvent = { type: 'EnvCreated', env_id: 'n', org_id: 'o', name: 'dev' }
const purged = (final: boolean): DomainEvent => ({ type: 'EnvPurged', env_id: 'n', final })
tenant('a deleted environment is not active, and is known as deleting until its content is gone', () => {
  const deleted = [envCreated, { type: 'EnvDeleted', env_id: 'n' }] as const
  const deleting = { ...envDoc, active: false, deleting: order(1) }
  assert.equal(docsAfter(envs, deleted), { n: deleting })
  assert.equal(docsAfter(envs, [...deleted, purged(false)]), { n: deleting })
  assert.equal(docsAfter(envs, [...deleted, purged(true)]), { n: { ...deleting, deleting: null } })
})
tenant('an environment is importing until an import into it has ended', () => {
  const begun: DomainEvent = { type: 'ImportBegun', env_id: 'n', empty: false }
  const imported: DomainEvent = { type: 'EnvImported', env_id: 'n', keys: 1, blobs: 2, facts: 3 }
  const abandoned: DomainEvent = { type: 'ImportAbandoned', env_id: 'n' }
  const importing = { ...envDoc, importing: true }
  assert.equal(docsAfter(envs, [envCreated, begun]), { n: importing })
  for (const end of [imported, abandoned])
    assert.equal(docsAfter(envs, [envCreated, begun, end]), { n: { ...envDoc, imported_at: at(2) } })
  assert.equal(docsAfter(envs, [envCreated, imported, begun]), { n: { ...importing, imported_at: at(1) } })
  const deleted = docsAfter(envs, [envCreated, begun, { type: 'EnvDeleted', env_id: 'n' }])
  assert.equal(deleted, { n: { ...envDoc, active: false, deleting: order(2) } })
})
tenant('a deleted organization takes its environments with it, once their content is gone', () => {
  const deleted: DomainEvent[] = [envCreated, { type: 'EnvDeleted', env_id: 'n' }]
  const orgGone: DomainEvent = { type: 'OrgDeleted', org_id: 'o', env_ids: ['n'] }
  assert.equal(docsAfter(envs, [...deleted, purged(true), orgGone]), {})
  assert.is(docsAfter(envs, [...deleted, orgGone])['n']?.deleting, order(1))
  assert.equal(docsAfter(envs, [...deleted, orgGone, purged(true)]), {})
  const org: DomainEvent = { type: 'OrgCreated', org_id: 'o', slug: 'acme', name: 'Acme', plan: 'pro' }
  assert.equal(docsAfter(orgs, [org, orgGone]), {})
})
const keyCreated: DomainEvent = {
  type: 'ApiKeyCreated',
  api_key_id: 'k',
  env_id: 'n',
  name: 'first',
  mac: 'mm',
  permissions: { '*:*': ['*'] },
}
const keyDoc = { ...fieldsOf(keyCreated), ...created, enabled: true, updated_at: at(0) }
tenant('an API key, without its secret (I6)', () =>
  assert.equal(docsAfter(apiKeys, [keyCreated]), { k: keyDoc }),
)
tenant('an API key that changed', () =>
  assert.equal(
    docsAfter(apiKeys, [
      keyCreated,
      { type: 'ApiKeyChanged', api_key_id: 'k', enabled: false },
      { type: 'ApiKeyChanged', api_key_id: 'k', name: 'ci', permissions: { 'run:*': ['read'] } },
    ]),
    { k: { ...keyDoc, enabled: false, name: 'ci', permissions: { 'run:*': ['read'] }, updated_at: at(2) } },
  ),
)
tenant('an API key that is gone', () =>
  assert.equal(docsAfter(apiKeys, [keyCreated, { type: 'ApiKeyDeleted', api_key_id: 'k' }]), {}),
)
tenant.run()

const credential = suite('the documents of what an API key issued')
const sessionCreated: DomainEvent = {
  type: 'SessionCreated',
  session_id: 's',
  api_key_id: 'k',
  mac: 'mm',
  permissions: { 'run:*': ['read'] },
  metadata: { user: 7 },
  expires_at: at(9),
}
const sessionDoc = { ...fieldsOf(sessionCreated), ...created, env_id: 'env' }
credential('a session', () => assert.equal(docsAfter(sessions, [sessionCreated]), { s: sessionDoc }))
for (const reason of ['revoked', 'expired'] as const)
  credential(`a session that was ${reason} is gone`, () =>
    assert.equal(
      docsAfter(sessions, [
        sessionCreated,
        { ...sessionCreated, session_id: 't' },
        { type: 'SessionsEnded', api_key_id: 'k', session_ids: ['t', 'u'], reason },
      ]),
      { s: sessionDoc },
    ),
  )
const serviceKeyCreated: DomainEvent = {
  type: 'ServiceKeyCreated',
  service_key_id: 's',
  api_key_id: 'k',
  mac: 'mm',
  name: 'n',
  description: 'd',
  permissions: { 'run:*': ['read'] },
  metadata: 'sealed',
  expires_at: null,
}
const serviceKeyDoc = {
  ...fieldsOf(serviceKeyCreated),
  ...created,
  env_id: 'env',
  revoked_at: null,
  last_used_at: null,
}
credential('a service key', () =>
  assert.equal(docsAfter(serviceKeys, [serviceKeyCreated]), { s: serviceKeyDoc }),
)
credential('a service key that was used, and revoked, is still there', () =>
  assert.equal(
    docsAfter(serviceKeys, [
      serviceKeyCreated,
      { type: 'ServiceKeyUsed', service_key_id: 's', api_key_id: 'k', at: at(5) },
      { type: 'ServiceKeysRevoked', service_key_ids: ['s', 'x'], api_key_id: 'k', at: at(6) },
    ]),
    { s: { ...serviceKeyDoc, last_used_at: at(5), revoked_at: at(6) } },
  ),
)
credential.run()

const domain = suite('the document of a custom domain')
const registered: DomainEvent = {
  type: 'DomainRegistered',
  domain_id: 'd',
  org_id: 'o',
  domain: 'a.example.com',
  validation_cname_name: '_acme-challenge.a.example.com',
  validation_cname_value: 'd.acme.svc.test',
}
const path: readonly DomainEvent[] = [
  registered,
  { type: 'DomainValidated', domain_id: 'd', routing_domain: 'd.edge.svc.test' },
  { type: 'DomainRouted', domain_id: 'd' },
  { type: 'DomainActivated', domain_id: 'd', domain: 'a.example.com' },
  { type: 'DomainDeleted', domain_id: 'd', domain: 'a.example.com' },
]
/** The document after the facts. */
const after = (...facts: readonly DomainEvent[]) => docsAfter(domains, facts)['d']
const doc = {
  domain_id: 'd',
  env_id: 'env',
  org_id: 'o',
  domain: 'a.example.com',
  validation_cname_name: '_acme-challenge.a.example.com',
  validation_cname_value: 'd.acme.svc.test',
  created_at: at(0),
  certificate: null,
  challenge: [],
  failure: null,
  diverted: null,
  order: order(0),
}
for (const [n, status] of (
  ['pending_validation', 'validated', 'provisioning', 'active', 'deleting'] as const
).entries()) {
  domain(`is ${status}, and has its routing domain once it is validated`, () =>
    assert.equal(after(...path.slice(0, n + 1)), {
      ...doc,
      status,
      is_proved: n > 0,
      routing_domain: n === 0 ? null : 'd.edge.svc.test',
      since: at(n),
    }),
  )
}
const failed: DomainEvent = { type: 'CertificateFailed', domain_id: 'd', message: 'no', retry_at: at(9) }
const issued: DomainEvent = {
  type: 'CertificateIssued',
  domain_id: 'd',
  certificate_id: 'c',
  chain: 'PEM',
  sealed: 's',
  not_before: at(0),
  not_after: at(9),
}
const published: DomainEvent = { type: 'ChallengePublished', domain_id: 'd', values: ['v'] }
domain('has the challenge of an order until it ends', () => {
  assert.equal(after(registered, published)?.challenge, ['v'])
  assert.equal(after(registered, published, failed)?.challenge, [])
  assert.equal(after(registered, published, issued)?.challenge, [])
})
domain('counts failed orders until one succeeds', () => {
  assert.equal(after(registered, failed, failed)?.failure, { count: 2, message: 'no', retry_at: at(9) })
  const { failure, certificate } = after(registered, failed, issued) ?? {}
  const { type: _, domain_id: __, ...stored } = issued
  assert.equal([failure, certificate], [null, stored])
})
domain('keeps its certificate, but not its proof, when it is suspended', () => {
  const diverted: DomainEvent = { type: 'DomainDiverted', domain_id: 'd', message: 'gone' }
  const live = [...path.slice(0, 4), issued, diverted] as const
  assert.equal(after(...live)?.diverted, { since: at(5), message: 'gone' })
  assert.is(after(...live, { type: 'DomainReturned', domain_id: 'd' })?.diverted, null)
  const suspended = (status: 'provisioning' | 'pending_validation') =>
    after(...live, { type: 'DomainSuspended', domain_id: 'd', domain: 'a.example.com', status })
  const common = { diverted: null, since: at(6), certificate: after(...live)?.certificate }
  assert.equal(suspended('provisioning'), {
    ...doc,
    ...common,
    status: 'provisioning',
    is_proved: true,
    routing_domain: 'd.edge.svc.test',
  })
  assert.equal(suspended('pending_validation'), {
    ...doc,
    ...common,
    status: 'pending_validation',
    is_proved: false,
    routing_domain: null,
  })
})
domain('is gone', () =>
  assert.equal(docsAfter(domains, [...path, { type: 'DomainRemoved', domain_id: 'd' }]), {}),
)
domain('leaves its name when it is gone, if it was proved', () => {
  const gone: readonly DomainEvent[] = [
    { type: 'DomainDeleted', domain_id: 'd', domain: 'a.example.com' },
    { type: 'DomainRemoved', domain_id: 'd' },
  ]
  assert.equal(docsAfter(provedDomains, [...path, ...gone]), {
    d: { domain_id: 'd', org_id: 'o', domain: 'a.example.com', was_proved: true },
  })
  assert.equal(docsAfter(provedDomains, [registered, ...gone]), {})
})
domain.run()
