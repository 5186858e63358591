import * as assert from 'uvu/assert'
import type { DomainDoc } from '../../src/projections/customDomains.ts'
import { isoOf } from '../../src/clock.ts'
import { expireClaim } from '../../src/commands/customDomains/expireClaim.ts'
import { AppError } from '../../src/errors.ts'
import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import { silent } from '../../src/logger.ts'
import { advanceDomains, advanceDomainsCore } from '../../src/sagas/advanceDomains.ts'
import { openCommands } from '../commands/openCommands.ts'
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
rule('a proved domain whose owner did nothing for a week is no longer checked', () => {
  const status = 'provisioning'
  when('unmoved', domain(status, 7 * DAY)).then(look(domain(status, 7 * DAY), NOW + HOUR))
  when('unmoved', domain(status, 7 * DAY + 1)).then()
  when('changed', domain(status, 7 * DAY + 1)).then(drop)
})
rule('an unproved domain is checked for the last time when it expires', () => {
  const status = 'pending_validation'
  const last = domain(status, 7 * DAY - 1000)
  when('unmoved', last).then(look(last, NOW + 1000))
  const expired = domain(status, 7 * DAY + 1)
  when('changed', expired).then(drop, look(expired, NOW + HOUR))
})
rule('the removal of a deleted domain is attempted until it succeeds', () => {
  const doc = domain('deleting', 30 * DAY)
  when('unmoved', doc).then(look(doc, NOW + HOUR))
})
rule('a removed domain is dropped', () => {
  reacting(core).given().when({ type: 'gone', domain_id: 'd' }).at(NOW).then(drop)
})
rule.run()

const claims = suite<{ node: Awaited<ReturnType<typeof openCommands>> }>('a claim whose time is over')
claims.before(async (context) => {
  context.node = await openCommands()
})

type Opened = Awaited<ReturnType<typeof openCommands>>

/** Registers a domain whose time is over. */
const registered = async ({ aggregates }: Opened): Promise<DomainDoc> => {
  const doc = { ...domain('pending_validation', 7 * DAY + 1), domain_id: newId(), org_id: newId() }
  const { domain_id, org_id, domain: name, validation_cname_name, validation_cname_value, env_id } = doc
  const proof = { validation_cname_name, validation_cname_value }
  const fact = { type: 'DomainRegistered', domain_id, org_id, domain: name, ...proof } as const
  const cause = { env_id, correlation_id: newId() }
  await aggregates.domains.handle(
    streamOf.domains(org_id),
    { type: 'RegisterDomain', max: null, fact },
    cause,
  )
  return doc
}
const statusOf = ({ aggregates }: Opened, { org_id, domain_id }: DomainDoc) =>
  aggregates.domains.read(streamOf.domains(org_id), (known) => known.get(domain_id)?.status)

for (const [what, answer, left] of [
  ['is removed if its record is missing', 'none', 'deleting'],
  ['is removed if DNS does not answer', 'fails', 'deleting'],
  ['is kept if its record has just appeared', 'found', 'validated'],
] as const)
  claims(what, async ({ node }) => {
    const old = await registered(node)
    const saga = advanceDomains({
      ...node.deps,
      dns: {
        cname: () =>
          answer === 'fails'
            ? Promise.reject(new AppError('unavailable', 'no answer'))
            : Promise.resolve(answer === 'found' ? [old.validation_cname_value] : []),
      },
      from: await node.store.head(),
      logger: silent,
      checkMs: CHECK_MS,
    })
    assert.is(await saga.carryOut(old), undefined)
    assert.is(await statusOf(node, old), left)
  })

claims('is kept if it was proved meanwhile', async ({ node }) => {
  const old = await registered(node)
  const { domain_id, org_id, env_id } = old
  const validate = { type: 'ValidateDomain', domain_id, routing_domain: 'r' } as const
  await node.aggregates.domains.handle(streamOf.domains(org_id), validate, {
    env_id,
    correlation_id: newId(),
  })
  assert.is(await expireClaim(node, old, newId()), false)
  assert.is(await statusOf(node, old), 'validated')
})

claims.after(({ node }) => node.close())
claims.run()
