import { env } from '../../src/domain/env.ts'
import { given as givenOf } from '../support/given.ts'
import { suite } from '../support/suite.ts'

const given = givenOf(env, { env_id: 'e', correlation_id: 'c' })
const create = { type: 'CreateEnv', env_id: 'e', org_id: 'o', name: 'dev' } as const
const created = { type: 'EnvCreated', env_id: 'e', org_id: 'o', name: 'dev' } as const

const envs = suite('an environment')
envs('is created once', () => {
  given().when(create).then(created)
  given(created)
    .when({ ...create, name: 'other' })
    .then()
})
envs('has a number of named consumers, each named once', () => {
  const name = (text: string) => ({ type: 'NameConsumer', name: text, most: 2 }) as const
  const named = (text: string) => ({ type: 'ConsumerNamed', name: text }) as const
  given(created).when(name('a')).then(named('a'))
  given(created, named('a'), named('b')).when(name('a')).then()
  given(created, named('a'), named('b')).when(name('c')).refuses('quota_exceeded')
})
envs.run()
