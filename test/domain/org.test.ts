import { org } from '../../src/domain/org.ts'
import { given as givenOf } from '../support/given.ts'
import { suite } from '../support/suite.ts'

const given = givenOf(org, { correlation_id: 'c' })
const created = { type: 'OrgCreated', org_id: 'o', slug: 'acme', name: 'Acme', plan: 'free' } as const
const change = (changes: object) => ({ type: 'ChangeOrg', org_id: 'o', changes }) as const

const orgs = suite('an organization')
orgs('is created once', () => {
  const create = { type: 'CreateOrg', org_id: 'o', slug: 'acme', name: 'Acme', plan: 'free' } as const
  given().when(create).then(created)
  given(created)
    .when({ ...create, name: 'Other' })
    .then()
})
orgs('records only the fields that differ', () =>
  given(created)
    .when(change({ plan: 'pro', name: 'Acme', team_members: 3 }))
    .then({ type: 'OrgChanged', org_id: 'o', plan: 'pro', team_members: 3 }),
)
orgs('does not change when it already has the wanted values', () => {
  given(created)
    .when(change({ name: 'Acme', plan: 'free' }))
    .then()
  given(created, { type: 'OrgChanged', org_id: 'o', plan: 'pro' })
    .when(change({ plan: 'pro' }))
    .then()
})
orgs('cannot change before it is created', () =>
  given()
    .when(change({ plan: 'pro' }))
    .refuses('not_found'),
)
orgs('is deleted once, and neither changed nor created again', () => {
  const remove = { type: 'DeleteOrg', org_id: 'o', env_ids: ['e'] } as const
  const deleted = { type: 'OrgDeleted', org_id: 'o', env_ids: ['e'] } as const
  given().when(remove).refuses('not_found')
  given(created).when(remove).then(deleted)
  given(created, deleted).when(remove).then()
  given(created, deleted)
    .when(change({ plan: 'pro' }))
    .refuses('not_found')
  given(created, deleted)
    .when({ type: 'CreateOrg', org_id: 'o', slug: 'acme', name: 'Acme', plan: 'free' })
    .then()
})
orgs.run()
