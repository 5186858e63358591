import { apiKey } from '../../src/domain/apiKey.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import { given as givenOf } from '../support/given.ts'
import { suite } from '../support/suite.ts'

const given = givenOf(apiKey, { env_id: 'env', correlation_id: 'c' })
const api_key_id = 'k'
const created: DomainEvent = {
  type: 'ApiKeyCreated',
  api_key_id,
  env_id: 'env',
  name: 'ci',
  mac: 'm',
  permissions: { 'run:*': ['read'] },
}
const disabled: DomainEvent = { type: 'ApiKeyChanged', api_key_id, enabled: false }
const deleted: DomainEvent = { type: 'ApiKeyDeleted', api_key_id }
const change = (changes: object) => ({ type: 'ChangeApiKey', api_key_id, changes }) as const
const remove = { type: 'DeleteApiKey', api_key_id } as const

const keys = suite('an API key')
keys('is disabled and enabled', () => {
  given(created)
    .when(change({ enabled: false }))
    .then({ type: 'ApiKeyChanged', api_key_id, enabled: false })
  given(created, disabled)
    .when(change({ enabled: true }))
    .then({ type: 'ApiKeyChanged', api_key_id, enabled: true })
})
keys('changes only what is new about it', () =>
  given(created)
    .when(change({ name: 'ci', enabled: true, permissions: { 'env:*': ['read'] } }))
    .then({ type: 'ApiKeyChanged', api_key_id, permissions: { 'env:*': ['read'] } }),
)
keys('that is so already does not change', () => {
  given(created)
    .when(change({ permissions: { 'run:*': ['read'] } }))
    .then()
  given(created, disabled)
    .when(change({ enabled: false }))
    .then()
})
keys('is deleted', () => given(created, disabled).when(remove).then({ type: 'ApiKeyDeleted', api_key_id }))
keys('that is not there, or no longer, cannot change', () => {
  for (const command of [remove, change({ enabled: true })]) {
    given().when(command).refuses('not_found')
    given(created, deleted).when(command).refuses('not_found')
  }
})
keys.run()
