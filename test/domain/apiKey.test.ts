import { apiKey } from '../../src/domain/apiKey.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import { given as givenOf } from '../support/given.ts'
import { suite } from '../support/suite.ts'

const given = givenOf(apiKey, { env_id: 'env', correlation_id: 'c' })
const api_key_id = 'k'
const created = {
  type: 'ApiKeyCreated',
  api_key_id,
  env_id: 'env',
  name: 'ci',
  mac: 'm',
  permissions: { 'run:*': ['read'] as string[] },
} as const
const disabled: DomainEvent = { type: 'ApiKeyChanged', api_key_id, enabled: false }
const deleted: DomainEvent = { type: 'ApiKeyDeleted', api_key_id }
const change = (changes: object) => ({ type: 'ChangeApiKey', api_key_id, changes }) as const
const remove = { type: 'DeleteApiKey', api_key_id } as const

const keys = suite('an API key')
keys('is created once, also after it was deleted', () => {
  const { type: _, ...fields } = created
  const create = { type: 'CreateApiKey', ...fields } as const
  given().when(create).then(created)
  given(created).when(create).then()
  given(created, deleted).when(create).then()
})
keys('is disabled and enabled', () => {
  given(created)
    .when(change({ enabled: false }))
    .then({ type: 'ApiKeyChanged', api_key_id, enabled: false })
  given(created, disabled)
    .when(change({ enabled: true }))
    .then({ type: 'ApiKeyChanged', api_key_id, enabled: true })
})
keys('records only the fields that differ', () =>
  given(created)
    .when(change({ name: 'ci', enabled: true, permissions: { 'env:*': ['read'] } }))
    .then({ type: 'ApiKeyChanged', api_key_id, permissions: { 'env:*': ['read'] } }),
)
keys('does not change when it already has the wanted values', () => {
  given(created)
    .when(change({ permissions: { 'run:*': ['read'] } }))
    .then()
  given(created, disabled)
    .when(change({ enabled: false }))
    .then()
})
keys('gets an end, another one, and none', () => {
  const ends = (expires_at: string | null) => ({ type: 'ApiKeyChanged', api_key_id, expires_at }) as const
  given(created)
    .when(change({ expires_at: null }))
    .then()
  given(created)
    .when(change({ expires_at: '2026-01-01' }))
    .then(ends('2026-01-01'))
  given(created, ends('2026-01-01'))
    .when(change({ expires_at: null }))
    .then(ends(null))
})
keys('is deleted', () => given(created, disabled).when(remove).then({ type: 'ApiKeyDeleted', api_key_id }))
keys('cannot change before it is created or after it is deleted', () => {
  for (const command of [remove, change({ enabled: true })]) {
    given().when(command).refuses('not_found')
    given(created, deleted).when(command).refuses('not_found')
  }
})
keys.run()
