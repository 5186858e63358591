import { org } from '../../src/domain/org.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import { given as givenOf } from '../support/given.ts'
import { suite } from '../support/suite.ts'

const given = givenOf(org, { correlation_id: 'c' })
const created: DomainEvent = { type: 'OrgCreated', org_id: 'o', slug: 'acme', name: 'Acme', plan: 'free' }
const change = (changes: object) => ({ type: 'ChangeOrg', org_id: 'o', changes }) as const

const orgs = suite('an organization')
orgs('changes what is new about it', () =>
  given(created)
    .when(change({ plan: 'pro', name: 'Acme', team_members: 3 }))
    .then({ type: 'OrgChanged', org_id: 'o', plan: 'pro', team_members: 3 }),
)
orgs('that is so already does not change', () => {
  given(created)
    .when(change({ name: 'Acme', plan: 'free' }))
    .then()
  given(created, { type: 'OrgChanged', org_id: 'o', plan: 'pro' })
    .when(change({ plan: 'pro' }))
    .then()
})
orgs('that is not there cannot change', () =>
  given()
    .when(change({ plan: 'pro' }))
    .refuses('not_found'),
)
orgs.run()
