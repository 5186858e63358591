import { dataKey } from '../../src/domain/dataKey.ts'
import type { EventOf } from '../../src/events/index.ts'
import { given as givenOf } from '../support/given.ts'
import { suite } from '../support/suite.ts'

const given = givenOf(dataKey, { env_id: 'env', correlation_id: 'c' })
const created = (key_id: string): EventOf<'DataKeyCreated'> => ({ type: 'DataKeyCreated', key_id })
const destroyed = (final: boolean): EventOf<'DataKeysDestroyed'> => ({ type: 'DataKeysDestroyed', final })
const create = (key_id: string, replaces: string | null) =>
  ({ type: 'CreateDataKey', key_id, replaces }) as const
const destroy = (final: boolean) => ({ type: 'DestroyDataKeys', final }) as const

const keys = suite('data keys')
keys('begin with one', () => given().when(create('a', null)).then(created('a')))
keys('of two nodes at once: the first one is kept', () => given(created('a')).when(create('b', null)).then())
keys('are followed by a new one', () => given(created('a')).when(create('b', 'a')).then(created('b')))
keys('rotated twice at once are rotated once', () =>
  given(created('a'), created('b')).when(create('c', 'a')).then(),
)
keys('name their owner', () =>
  given()
    .when({ type: 'CreateDataKey', key_id: 'a', project_id: 'p', replaces: null })
    .then({ type: 'DataKeyCreated', key_id: 'a', project_id: 'p' }),
)
keys('are destroyed', () => given(created('a')).when(destroy(false)).then(destroyed(false)))
keys('are destroyed once', () => given(created('a'), destroyed(false)).when(destroy(false)).then())
keys('make room for a new one once they are destroyed', () =>
  given(created('a'), destroyed(false)).when(create('b', null)).then(created('b')),
)
keys('never make room once they are destroyed permanently', () => {
  given(created('a'), destroyed(true)).when(create('b', null)).refuses('not_found')
  given().when(destroy(true)).then(destroyed(true))
  given(destroyed(true)).when(destroy(true)).then()
})
keys('stay if a destruction names others', () => {
  const ofOthers = { ...destroyed(false), key_ids: ['b', 'unknown'] }
  given(created('a'), created('b'), ofOthers).when(create('c', 'a')).then(created('c'))
  given(created('a'), created('b'), ofOthers).when(destroy(false)).then(destroyed(false))
})
keys.run()
