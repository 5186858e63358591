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
const day = (n: number) => `2026-05-${String(n).padStart(2, '0')}T10:00:00.000Z`
const named = (name: string, at = day(1)) => ({ type: 'ConsumerNamed', name, at }) as const
const use = (name: string, now = day(1)) => ({ type: 'NameConsumer', name, most: 2, now }) as const
envs('has a number of named consumers, each named once', () => {
  given(created).when(use('a')).then(named('a'))
  given(created, named('a'), named('b')).when(use('a')).then()
  given(created, named('a'), named('b')).when(use('c')).refuses('quota_exceeded')
})
envs('records once a day that a consumer is used', () => {
  const used = { type: 'ConsumerUsed', name: 'a', at: day(2) } as const
  given(created, named('a'))
    .when(use('a', day(2)))
    .then(used)
  given(created, named('a'), used).when(use('a', '2026-05-03T09:59:59.000Z')).then()
  given(created, { type: 'ConsumerNamed', name: 'a' })
    .when(use('a', day(2)))
    .then(used)
})
envs('forgets a consumer that was not used since, whose name then no longer counts', () => {
  const forget = (unusedSince: string) =>
    ({ type: 'ForgetConsumer', name: 'a', unusedSince, now: day(9) }) as const
  const forgotten = { type: 'ConsumerForgotten', name: 'a' } as const
  given(created, named('a'))
    .when(forget(day(2)))
    .then(forgotten)
  given(created, named('a', day(3)))
    .when(forget(day(2)))
    .then()
  given(created, named('a'), forgotten)
    .when(forget(day(2)))
    .then()
  given(created, named('a'), named('b'), forgotten).when(use('c')).then(named('c'))
})
envs('counts the days of a consumer that version 0.1.0 named from now on', () =>
  given(created, { type: 'ConsumerNamed', name: 'a' })
    .when({ type: 'ForgetConsumer', name: 'a', unusedSince: day(2), now: day(9) })
    .then({ type: 'ConsumerUsed', name: 'a', at: day(9) }),
)
envs('is deleted once, and never created again', () => {
  const remove = { type: 'DeleteEnv', env_id: 'e' } as const
  const deleted = { type: 'EnvDeleted', env_id: 'e' } as const
  given().when(remove).refuses('not_found')
  given(created).when(remove).then(deleted)
  given(created, deleted).when(remove).then()
  given(created, deleted).when(create).then()
})
envs('accepts no name of a consumer after its deletion', () =>
  given(created, { type: 'EnvDeleted', env_id: 'e' }).when(use('a')).refuses('not_found'),
)
const numbers = { env_id: 'e', keys: 1, blobs: 2, facts: 3 } as const
const imported = { type: 'EnvImported', ...numbers } as const
const record = (import_id: string) => ({ type: 'RecordImport', import_id, ...numbers }) as const
const begin = (empty: boolean, import_id = 'a') =>
  ({ type: 'BeginImport', env_id: 'e', empty, import_id }) as const
const begun = (empty: boolean, import_id = 'a') =>
  ({ type: 'ImportBegun', env_id: 'e', empty, import_id }) as const
const abandon = (import_id: string) => ({ type: 'AbandonImport', env_id: 'e', import_id }) as const
const abandoned = { type: 'ImportAbandoned', env_id: 'e' } as const
envs('records each import once', () => {
  given(created).when(record('a')).then(imported)
  given(created, imported).when(record('b')).then()
  given(created, imported)
    .when({ ...record('b'), facts: 4 })
    .then({ ...imported, facts: 4 })
  given().when(record('a')).refuses('not_found')
})
envs('is imported from a beginning to an end', () => {
  given(created).when(begin(true)).then(begun(true))
  given(created, begun(true)).when(begin(false)).then()
  given(created, begun(true)).when(record('a')).then(imported)
  given(created, begun(true), imported).when(begin(false)).then(begun(false))
  given(created, imported, begun(false)).when(record('a')).then(imported)
  given(created, imported, begun(false)).when(abandon('a')).then(abandoned)
  given(created, begun(true)).when(abandon('a')).then()
  given(created, begun(false), abandoned).when(abandon('a')).then()
  given(created, begun(false), abandoned).when(begin(false)).then(begun(false))
  given().when(begin(true)).refuses('not_found')
  given(created, { type: 'EnvDeleted', env_id: 'e' }).when(begin(true)).refuses('not_found')
})
envs('is paused by its latest import only', () => {
  given(created, begun(false)).when(begin(false, 'b')).then(begun(false, 'b'))
  given(created, begun(true)).when(begin(false, 'b')).then(begun(true, 'b')) // it has a part of its content
  given(created, begun(false), begun(false, 'b')).when(abandon('a')).then()
  given(created, begun(false), begun(false, 'b')).when(record('a')).refuses('conflict')
  given(created, begun(false), begun(false, 'b')).when(record('b')).then(imported)
  given(created, { type: 'ImportBegun', env_id: 'e', empty: true }) // of an earlier version
    .when(begin(false))
    .then(begun(true))
})
envs('is purged only after its deletion, until the final time', () => {
  const purge = (final: boolean) => ({ type: 'RecordPurge', env_id: 'e', final }) as const
  const purged = (final: boolean) => ({ type: 'EnvPurged', env_id: 'e', final }) as const
  const deleted = { type: 'EnvDeleted', env_id: 'e' } as const
  given(created).when(purge(true)).then()
  given(created, deleted).when(purge(false)).then(purged(false))
  given(created, deleted, purged(false)).when(purge(true)).then(purged(true))
  given(created, deleted, purged(true)).when(purge(true)).then()
})
envs.run()
