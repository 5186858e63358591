import { name } from '../../src/domain/name.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import { given as givenOf } from '../support/given.ts'
import { suite } from '../support/suite.ts'

const given = givenOf(name, { env_id: 'env', correlation_id: 'c' })
const reserved = (holder: string): DomainEvent & { type: 'NameReserved' } => ({
  type: 'NameReserved',
  name: 'shop',
  holder,
})
const released = (holder: string): DomainEvent & { type: 'NameReleased' } => ({
  type: 'NameReleased',
  name: 'shop',
  holder,
})
const reserve = (holder: string, gone?: string) =>
  ({
    type: 'ReserveName',
    name: 'shop',
    by: { holder },
    taken: 'project_exists',
    ...(gone !== undefined && { gone: { holder: gone } }),
  }) as const
const release = (holder: string) => ({ type: 'ReleaseName', name: 'shop', holder }) as const

const names = suite('a unique name')
names('belongs to the first that reserves it', () => given().when(reserve('a')).then(reserved('a')))
names('is refused to another one, with the code of its kind of resource', () =>
  given(reserved('a')).when(reserve('b')).refuses('project_exists'),
)
names('is reserved once by repeated commands', () => given(reserved('a')).when(reserve('a')).then())
names('is taken over from a holder that does not exist', () =>
  given(reserved('a')).when(reserve('b', 'a')).then(reserved('b')),
)
names('is not taken over from the successor of a lost holder', () =>
  given(reserved('a'), reserved('c')).when(reserve('b', 'a')).refuses('project_exists'),
)
names('is reserved again by a later rename of its holder, not by an earlier one', () => {
  const at = (fence: number) => ({ holder: 'a', fence, reserved_at: '2026-05-01T10:00:00.000Z' })
  const [first, second] = [at(0), at(4)]
  given(reserved('a'))
    .when({ ...reserve('a'), by: first })
    .then({ ...reserved('a'), ...first })
  given({ ...reserved('a'), ...first })
    .when({ ...reserve('a'), by: second })
    .then({ ...reserved('a'), ...second })
  given({ ...reserved('a'), ...second })
    .when({ ...reserve('a'), by: first })
    .then()
  given({ ...reserved('a'), ...second })
    .when({ ...reserve('b'), gone: first })
    .refuses('project_exists')
})
names('is available once it is released', () => {
  given(reserved('a')).when(release('a')).then(released('a'))
  given(reserved('a'), released('a')).when(reserve('b')).then(reserved('b'))
})
names('is released by its holder only, and once', () => {
  given(reserved('a')).when(release('b')).then()
  given(reserved('a'), released('a')).when(release('a')).then()
  given().when(release('a')).then()
})
names.run()
