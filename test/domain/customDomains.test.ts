import { domains } from '../../src/domain/customDomains.ts'
import type { DomainEvent, EventOf } from '../../src/events/index.ts'
import { given as givenOf } from '../support/given.ts'
import { suite } from '../support/suite.ts'

const given = givenOf(domains, { env_id: 'env', correlation_id: 'c' })
const registered = (domain_id = 'd'): EventOf<'DomainRegistered'> => ({
  type: 'DomainRegistered',
  domain_id,
  org_id: 'o',
  domain: `${domain_id}.example.com`,
  validation_cname_name: `_acme-challenge.${domain_id}.example.com`,
  validation_cname_value: `${domain_id}.acme.svc.test`,
})
const validated: EventOf<'DomainValidated'> = {
  type: 'DomainValidated',
  domain_id: 'd',
  routing_domain: 'd.edge.svc.test',
}
const routed: EventOf<'DomainRouted'> = { type: 'DomainRouted', domain_id: 'd' }
const domain = 'd.example.com'
const activated: EventOf<'DomainActivated'> = { type: 'DomainActivated', domain_id: 'd', domain }
const deleted: EventOf<'DomainDeleted'> = { type: 'DomainDeleted', domain_id: 'd', domain }
const removed: EventOf<'DomainRemoved'> = { type: 'DomainRemoved', domain_id: 'd' }

const register = (domain_id: string, max: number | null) =>
  ({ type: 'RegisterDomain', fact: registered(domain_id), max }) as const
const validate = { type: 'ValidateDomain', domain_id: 'd', routing_domain: 'd.edge.svc.test' } as const
const route = { type: 'RouteDomain', domain_id: 'd' } as const
const activate = { type: 'ActivateDomain', domain_id: 'd' } as const
const remove = { type: 'RemoveDomain', domain_id: 'd' } as const
const erase = { type: 'DeleteDomain', domain_id: 'd' } as const

const registering = suite('registering a domain')
registering('is done once', () => {
  given().when(register('d', 3)).then(registered())
  given(registered()).when(register('d', 1)).then()
})
registering('needs a plan that has domains', () => given().when(register('d', 0)).refuses('plan_required'))
registering('respects the limit of the plan', () => {
  const two = [registered('a'), registered('b')]
  given(...two)
    .when(register('d', 3))
    .then(registered())
  given(...two)
    .when(register('d', 2))
    .refuses('domain_limit_reached')
  given(...two)
    .when(register('d', null))
    .then(registered())
})
registering('does not count domains that are being deleted or are deleted', () => {
  given(registered(), deleted).when(register('e', 1)).then(registered('e'))
  given(registered(), deleted, removed).when(register('e', 1)).then(registered('e'))
})
registering('has no effect after it was abandoned, unless the domain was registered first', () => {
  const abandon = { type: 'AbandonRegistration', domain_id: 'd' } as const
  const abandoned: DomainEvent = { type: 'RegistrationAbandoned', domain_id: 'd' }
  given().when(abandon).then({ type: 'RegistrationAbandoned', domain_id: 'd' })
  given(abandoned).when(abandon).then()
  given(registered()).when(abandon).then()
  given(abandoned).when(register('d', null)).refuses('conflict')
  given(abandoned).when(erase).refuses('not_found')
  given(abandoned).when(register('e', 1)).then(registered('e'))
})
registering.run()

const path: readonly DomainEvent[] = [registered(), validated, routed, activated]
const states = suite('the status of a domain')
states('goes from one to the next', () => {
  given(...path.slice(0, 1))
    .when(validate)
    .then(validated)
  given(...path.slice(0, 2))
    .when(route)
    .then(routed)
  given(...path.slice(0, 3))
    .when(activate)
    .then(activated)
})
states('skips no status and never goes back', () => {
  for (const [command, at] of [
    [validate, 1],
    [route, 2],
    [activate, 3],
  ] as const) {
    for (const length of [0, 1, 2, 3, 4])
      if (length !== at)
        given(...path.slice(0, length))
          .when(command)
          .then()
    given(...path, deleted)
      .when(command)
      .then()
  }
})
for (const length of [1, 2, 3, 4]) {
  states(`becomes deleting from any other one (${length})`, () =>
    given(...path.slice(0, length))
      .when(erase)
      .then(deleted),
  )
}
states('becomes deleting once, and then the domain is removed', () => {
  given(...path, deleted)
    .when(erase)
    .then()
  given(...path, deleted)
    .when(remove)
    .then(removed)
  given(...path)
    .when(remove)
    .then()
  given(...path, deleted, removed)
    .when(remove)
    .then()
  given(...path, deleted, removed)
    .when(erase)
    .refuses('not_found')
})
states.run()
