import { issued } from '../../src/domain/issued.ts'
import type { DomainEvent, EventOf } from '../../src/events/index.ts'
import { given as givenOf } from '../support/given.ts'
import { suite } from '../support/suite.ts'

const given = givenOf(issued, { env_id: 'env', correlation_id: 'c' })
const api_key_id = 'k'
const at = (second: number): string => new Date(Date.UTC(2026, 4, 1, 10, 0, second)).toISOString()
const now = at(0)
const base = { api_key_id, now }

const session = (session_id: string, expires_at = at(60)) => ({
  session_id,
  mac: 'm',
  permissions: { 'run:*': ['read'] },
  expires_at,
})
const created = (session_id: string, expires_at?: string): EventOf<'SessionCreated'> => ({
  type: 'SessionCreated',
  api_key_id,
  ...session(session_id, expires_at),
})
const ended = (reason: 'revoked' | 'expired', ...session_ids: string[]): EventOf<'SessionsEnded'> => ({
  type: 'SessionsEnded',
  api_key_id,
  session_ids,
  reason,
})
const create = { type: 'CreateSession', ...base, session: session('new') } as const
const revoke = (session_id: string) => ({ type: 'RevokeSession', ...base, session_id }) as const
const many = (count: number, expires_at?: string): DomainEvent[] =>
  Array.from({ length: count }, (_, n) => created(`s${n}`, expires_at))

const sessions = suite('the sessions of an API key')
sessions('are created', () => given().when(create).then(created('new')))
sessions('are 1000 at most', () => {
  given(...many(999))
    .when(create)
    .then(created('new'))
  given(...many(1000))
    .when(create)
    .refuses('session_limit_exceeded')
})
sessions('that were revoked or have expired make room', () => {
  given(...many(1000), ended('revoked', 's3'))
    .when(create)
    .then(created('new'))
  given(...many(999), created('old', now))
    .when(create)
    .then(ended('expired', 'old'), created('new'))
})
sessions('that expired are recorded once', () =>
  given(created('old', now), ended('expired', 'old'), created('b')).when(create).then(created('new')),
)
sessions('are revoked one by one', () => {
  given(created('a'), created('b')).when(revoke('a')).then(ended('revoked', 'a'))
})
sessions('that are not valid cannot be revoked', () => {
  given().when(revoke('a')).refuses('not_found')
  given(created('a'), ended('revoked', 'a')).when(revoke('a')).refuses('not_found')
  given(created('a', now), ended('expired', 'a')).when(revoke('a')).refuses('not_found')
})
sessions('that have expired by the clock of one node can be revoked there', () =>
  given(created('a', now)).when(revoke('a')).then(ended('revoked', 'a')),
)
sessions('are all revoked together, also those that have expired by the clock of one node', () => {
  const all = { type: 'RevokeSessions', ...base } as const
  given(created('a'), created('old', now), created('b'))
    .when(all)
    .then(ended('revoked', 'a', 'old', 'b'))
  given(created('old', now), ended('expired', 'old')).when(all).then()
})
sessions.run()

const key = (service_key_id: string, expires_at: string | null = null) => ({
  service_key_id,
  mac: 'm',
  name: '',
  description: '',
  permissions: { 'run:*': ['read'] },
  expires_at,
})
const keyCreated = (service_key_id: string, expires_at?: string): EventOf<'ServiceKeyCreated'> => ({
  type: 'ServiceKeyCreated',
  api_key_id,
  ...key(service_key_id, expires_at),
})
const revoked = (...service_key_ids: string[]): EventOf<'ServiceKeysRevoked'> => ({
  type: 'ServiceKeysRevoked',
  api_key_id,
  service_key_ids,
  at: now,
})
const revokeKey = (service_key_id: string) => ({ type: 'RevokeServiceKey', ...base, service_key_id }) as const
const keys = suite('the service keys of an API key')
keys('are created', () =>
  given()
    .when({ type: 'CreateServiceKey', ...base, key: key('a') })
    .then(keyCreated('a')),
)
keys('are as many as the plan allows, of those that are valid', () => {
  const another = { type: 'CreateServiceKey', ...base, key: key('new'), most: 2 } as const
  given(keyCreated('a'), keyCreated('b')).when(another).refuses('quota_exceeded')
  given(keyCreated('a'), keyCreated('b'), revoked('a')).when(another).then(keyCreated('new'))
  given(keyCreated('a'), keyCreated('old', now)).when(another).then(keyCreated('new'))
})
keys('are revoked once, also when they have expired', () => {
  given(keyCreated('a')).when(revokeKey('a')).then(revoked('a'))
  given(keyCreated('a', now)).when(revokeKey('a')).then(revoked('a'))
  given(keyCreated('a'), revoked('a')).when(revokeKey('a')).then()
  given().when(revokeKey('a')).refuses('not_found')
})
keys('are all revoked together, also those that have expired by the clock of one node', () => {
  const all = { type: 'RevokeServiceKeys', ...base } as const
  given(keyCreated('a'), keyCreated('old', now), keyCreated('b'), keyCreated('c'), revoked('c'))
    .when(all)
    .then(revoked('a', 'old', 'b'))
  given().when(all).then()
})
keys('of a large number are revoked by facts of a thousand each', () => {
  const ids = Array.from({ length: 1001 }, (_, n) => `k${n}`)
  given(...ids.map((id) => keyCreated(id)))
    .when({ type: 'RevokeServiceKeys', ...base })
    .then(revoked(...ids.slice(0, 1000)), revoked('k1000'))
})
keys('were used in facts of version 0.1.0, which change nothing', () =>
  given(keyCreated('a'), { type: 'ServiceKeyUsed', service_key_id: 'a', api_key_id, at: now })
    .when(revokeKey('a'))
    .then(revoked('a')),
)
keys.run()
