import { tenant } from '../../src/domain/tenant.ts'
import type { EventOf } from '../../src/events/index.ts'
import { given as givenOf } from '../support/given.ts'
import { suite } from '../support/suite.ts'

const given = givenOf(tenant, { correlation_id: 'c' })
const fact: EventOf<'OrgCreated'> = {
  type: 'OrgCreated',
  org_id: 'o',
  slug: 'local',
  name: 'Local',
  plan: 'self_host',
}

const tenants = suite('an organization, environment or key')
tenants('is created once, whoever asks again', () => {
  given().when({ type: 'Create', fact }).then(fact)
  given(fact)
    .when({ type: 'Create', fact: { ...fact, name: 'Other' } })
    .then()
})
tenants.run()
