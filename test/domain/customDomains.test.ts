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
const proved: EventOf<'DomainProved'> = { type: 'DomainProved', domain_id: 'd' }
const diverted: EventOf<'DomainDiverted'> = { type: 'DomainDiverted', domain_id: 'd', message: 'gone' }
const suspended = (status: 'provisioning' | 'pending_validation'): EventOf<'DomainSuspended'> => ({
  type: 'DomainSuspended',
  domain_id: 'd',
  domain,
  status,
})
states('goes back when its records lead elsewhere, but not once they have returned', () => {
  const divert = { type: 'DivertDomain', domain_id: 'd', message: 'gone' } as const
  const comeBack = { type: 'ReturnDomain', domain_id: 'd' } as const
  given(...path)
    .when(divert)
    .then({ type: 'DomainDiverted', domain_id: 'd', message: 'gone' })
  given(...path, diverted)
    .when(divert)
    .then()
  given(registered()).when(divert).then()
  const again = { ...divert, isAgain: true } as const
  given(...path, diverted)
    .when(again)
    .then({ type: 'DomainDiverted', domain_id: 'd', message: 'gone' })
  given(...path)
    .when(again)
    .then()
  given(...path, diverted)
    .when(comeBack)
    .then({ type: 'DomainReturned', domain_id: 'd' })
  for (const to of ['provisioning', 'pending_validation'] as const) {
    const suspend = { type: 'SuspendDomain', domain_id: 'd', to } as const
    const fact = { type: 'DomainSuspended', domain_id: 'd', domain, status: to } as const
    given(...path, diverted)
      .when(suspend)
      .then(fact)
    for (const facts of [
      [],
      [diverted, { type: 'DomainReturned', domain_id: 'd' }],
      [diverted, deleted],
    ] as const)
      given(...path, ...facts)
        .when(suspend)
        .then()
  }
})
states('becomes deleting when its time is over, unless it is proved', () => {
  const expire = { type: 'ExpireDomain', domain_id: 'd' } as const
  given(registered()).when(expire).then(deleted)
  given(registered(), proved).when(expire).then()
  given(registered(), proved, diverted, suspended('pending_validation')).when(expire).then(deleted)
  for (const length of [2, 3, 4])
    given(...path.slice(0, length))
      .when(expire)
      .then()
})
states('advances again after it went back', () => {
  given(...path, diverted, suspended('provisioning'))
    .when(activate)
    .then(activated)
  given(...path, diverted, suspended('pending_validation'))
    .when(validate)
    .then(validated)
})
states.run()

const issued: EventOf<'CertificateIssued'> = {
  type: 'CertificateIssued',
  domain_id: 'd',
  certificate_id: 'c',
  chain: 'PEM',
  sealed: 's',
  not_before: '2026-05-01T10:00:00.000Z',
  not_after: '2026-08-01T10:00:00.000Z',
}
const prove = { type: 'ProveDomain', domain_id: 'd' } as const
const add = {
  type: 'AddCertificate',
  domain_id: 'd',
  fact: issued,
  routing_domain: 'd.edge.svc.test',
} as const
const publish = { type: 'PublishChallenge', domain_id: 'd', values: ['v'] } as const
const published: EventOf<'ChallengePublished'> = { type: 'ChallengePublished', domain_id: 'd', values: ['v'] }
const fail = { type: 'FailCertificate', domain_id: 'd', message: 'no', retry_at: 't' } as const
const failed: EventOf<'CertificateFailed'> = {
  type: 'CertificateFailed',
  domain_id: 'd',
  message: 'no',
  retry_at: 't',
}

const certificates = suite('the certificate of a domain')
certificates('validates a proved domain, together with its first certificate', () => {
  given(registered()).when(prove).then(proved)
  given(registered(), proved).when(prove).then()
  given(registered(), proved).when(add).then(issued, validated)
  given(...path)
    .when(add)
    .then(issued)
})
certificates('is not stored for a domain that is unproved or deleted', () => {
  given(registered()).when(add).then()
  given(registered(), proved, deleted).when(add).then()
  given(...path, diverted, suspended('pending_validation'))
    .when(add)
    .then()
})
certificates('is awaited by a proved domain, until the record of its proof is gone', () => {
  const waiting = [registered(), proved] as const
  given(...waiting)
    .when({ type: 'DivertDomain', domain_id: 'd', message: 'gone' })
    .then(diverted)
  given(...waiting, diverted)
    .when({ type: 'ReturnDomain', domain_id: 'd' })
    .then({ type: 'DomainReturned', domain_id: 'd' })
  const suspend = (to: 'provisioning' | 'pending_validation') =>
    ({ type: 'SuspendDomain', domain_id: 'd', to }) as const
  given(...waiting)
    .when(suspend('pending_validation'))
    .then()
  given(...waiting, diverted)
    .when(suspend('provisioning'))
    .then()
  given(...waiting, diverted)
    .when(suspend('pending_validation'))
    .then(suspended('pending_validation'))
  const lost = [...waiting, diverted, suspended('pending_validation')] as const
  given(...lost)
    .when(suspend('pending_validation'))
    .then()
  given(...lost)
    .when(add)
    .then()
  given(...lost)
    .when(prove)
    .then(proved)
})
certificates('is preceded by a challenge, which is published once per order', () => {
  given(registered()).when(publish).then()
  given(registered(), proved).when(publish).then(published)
  given(registered(), proved, published).when(publish).then()
  given(registered(), proved, published, failed).when(publish).then(published)
  given(...path, published, issued)
    .when(publish)
    .then(published)
  given(...path, deleted)
    .when(publish)
    .then()
})
certificates('that could not be issued leaves a message, unless the domain is deleted', () => {
  given(registered(), proved).when(fail).then(failed)
  given(...path, deleted)
    .when(fail)
    .then()
})
certificates.run()
