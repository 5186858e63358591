import type { DomainDoc } from '../../src/projections/customDomains.ts'
import { isoOf } from '../../src/clock.ts'
import { advanceDomainsCore } from '../../src/sagas/advanceDomains.ts'
import { suite } from '../support/suite.ts'
import { reacting } from './reacting.ts'

const CHECK_MS = 5000
const NOW = Date.parse('2026-05-01T10:00:00.000Z')
const HOUR = 3_600_000
const DAY = 24 * HOUR
const core = advanceDomainsCore(CHECK_MS)

const domain = (status: DomainDoc['status'], agoMs = 0): DomainDoc => ({
  domain_id: 'd',
  env_id: 'env',
  org_id: 'org',
  domain: 'shop.example',
  status,
  validation_cname_name: '_acme-challenge.shop.example',
  validation_cname_value: 'd.acme.zone',
  routing_domain: null,
  created_at: isoOf(NOW - agoMs),
  since: isoOf(NOW - agoMs),
  order: '',
})
const drop = { do: 'drop', key: 'd' } as const
const look = (doc: DomainDoc, at: number) =>
  ({ do: 'setAlarm', key: 'd', at, input: { type: 'due', doc } }) as const
const when = (type: 'changed' | 'due' | 'unmoved', doc: DomainDoc) =>
  reacting(core).given().when({ type, doc }).at(NOW)

const rule = suite('the rules of custom domains')
rule('a domain that waits for its owner is checked after a delay', () => {
  for (const status of ['pending_validation', 'provisioning'] as const)
    when('changed', domain(status)).then(drop, look(domain(status), NOW + CHECK_MS))
})
rule('a domain that waits for nothing is checked immediately', () => {
  for (const status of ['validated', 'deleting'] as const)
    when('changed', domain(status)).then(drop, look(domain(status), NOW))
})
rule('an active domain is not checked', () => {
  when('changed', domain('active')).then(drop)
})
rule('a domain is advanced when its check is due', () => {
  const doc = domain('pending_validation')
  when('due', doc).then({ do: 'carryOut', key: 'd', command: doc })
})
rule('an unchanged domain is checked ever less often, but at least every hour', () => {
  for (const [agoMs, pauseMs] of [
    [0, CHECK_MS],
    [HOUR, HOUR / 10],
    [2 * DAY, HOUR],
  ] as const) {
    const doc = domain('pending_validation', agoMs)
    when('unmoved', doc).then(look(doc, NOW + pauseMs))
  }
})
rule('a domain whose owner did nothing for a week is no longer checked', () => {
  for (const status of ['pending_validation', 'provisioning'] as const) {
    when('unmoved', domain(status, 7 * DAY)).then(look(domain(status, 7 * DAY), NOW + HOUR))
    when('unmoved', domain(status, 7 * DAY + 1)).then()
    when('changed', domain(status, 7 * DAY + 1)).then(drop)
  }
})
rule('the removal of a deleted domain is attempted until it succeeds', () => {
  const doc = domain('deleting', 30 * DAY)
  when('unmoved', doc).then(look(doc, NOW + HOUR))
})
rule('a removed domain is dropped', () => {
  reacting(core).given().when({ type: 'gone', domain_id: 'd' }).at(NOW).then(drop)
})
rule.run()
