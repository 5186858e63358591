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
import type { Certificates } from '../../src/ports/certificates.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { reacting } from './reacting.ts'
import { running } from './running.ts'

const CHECK_MS = 5000
const NOW = Date.parse('2026-05-01T10:00:00.000Z')
const HOUR = 3_600_000
const DAY = 24 * HOUR
const RECHECK_MS = DAY
const times = { checkMs: CHECK_MS, recheckMs: RECHECK_MS, issues: false }
const core = advanceDomainsCore(times)
const issuing = advanceDomainsCore({ ...times, issues: true })

const domain = (status: DomainDoc['status'], agoMs = 0, more: Partial<DomainDoc> = {}): DomainDoc => ({
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
  is_proved: status !== 'pending_validation',
  certificate: null,
  challenge: [],
  failure: null,
  diverted: null,
  order: '',
  ...more,
})
const drop = { do: 'drop', key: 'd' } as const
const dropOrder = { do: 'drop', key: 'd/certificate' } as const
const look = (doc: DomainDoc, at: number, task: 'check' | 'remove' = 'check') =>
  ({ do: 'setAlarm', key: 'd', at, input: { type: 'due', work: { task, doc } } }) as const
const order = (doc: DomainDoc, at: number) =>
  ({
    do: 'setAlarm',
    key: 'd/certificate',
    at,
    input: { type: 'due', work: { task: 'issue', doc } },
  }) as const
const when = (type: 'changed' | 'unmoved' | 'unordered' | 'early', doc: DomainDoc, by = core) =>
  reacting(by).given().when({ type, doc }).at(NOW)
/** The id `d` has the offset 13. */
const TURN = Math.floor(NOW / DAY) * DAY + DAY + 13

const rule = suite('the rules of custom domains')
rule('a domain that waits for its owner is checked after a delay', () => {
  for (const status of ['pending_validation', 'provisioning'] as const)
    when('changed', domain(status)).then(drop, look(domain(status), NOW + CHECK_MS), dropOrder)
})
rule('a domain that waits for nothing is moved on immediately', () => {
  when('changed', domain('validated')).then(drop, look(domain('validated'), NOW), dropOrder)
  when('changed', domain('deleting')).then(drop, look(domain('deleting'), NOW, 'remove'), dropOrder)
})
rule('an active domain is checked once a day, at a time of its own that no restart moves', () => {
  const doc = domain('active', 3 * HOUR)
  when('changed', doc).then(drop, look(doc, TURN), dropOrder)
  when('unmoved', doc).then(look(doc, TURN))
})
rule('a domain that leads elsewhere is checked soon again', () => {
  const doc = domain('active', DAY, { diverted: { since: isoOf(NOW), message: 'gone' } })
  when('changed', doc).then(drop, look(doc, NOW + CHECK_MS), dropOrder)
  const later = domain('active', DAY, { diverted: { since: isoOf(NOW - HOUR), message: 'gone' } })
  when('unmoved', later).then(look(later, NOW + HOUR / 10))
})
rule('work is carried out when it is due, orders under a key of their own', () => {
  const doc = domain('pending_validation')
  for (const [task, key] of [
    ['check', 'd'],
    ['remove', 'd'],
    ['issue', 'd/certificate'],
  ] as const) {
    const work = { task, doc }
    reacting(core).given().when({ type: 'due', work }).at(NOW).then({ do: 'carryOut', key, command: work })
  }
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
rule('a proved domain whose owner did nothing for a week is checked once a day', () => {
  const status = 'provisioning'
  when('unmoved', domain(status, 7 * DAY)).then(look(domain(status, 7 * DAY), NOW + HOUR))
  const old = domain(status, 7 * DAY + 1)
  when('unmoved', old).then(look(old, TURN))
})
rule('an unproved domain is checked for the last time when it expires', () => {
  const status = 'pending_validation'
  const last = domain(status, 7 * DAY - 1000)
  when('unmoved', last).then(look(last, NOW + 1000))
  const expired = domain(status, 7 * DAY + 1)
  when('changed', expired).then(drop, look(expired, NOW + HOUR), dropOrder)
  const proved = domain(status, 7 * DAY - 1000, { is_proved: true })
  when('unmoved', proved, issuing).then(look(proved, NOW + HOUR))
})
rule('the removal of a deleted domain is attempted until it succeeds', () => {
  const doc = domain('deleting', 30 * DAY)
  when('unmoved', doc).then(look(doc, NOW + HOUR, 'remove'))
})
rule('a removed domain is dropped', () => {
  reacting(core).given().when({ type: 'gone', domain_id: 'd' }).at(NOW).then(drop, dropOrder)
})
rule('a proved domain that waits for nothing because a proxy does TLS is moved on immediately', () => {
  const doc = domain('pending_validation', 0, { is_proved: true })
  when('changed', doc).then(drop, look(doc, NOW), dropOrder)
})
rule.run()

const certificate = {
  certificate_id: 'c',
  chain: 'PEM',
  sealed: 's',
  not_before: isoOf(NOW - 60 * DAY),
  not_after: isoOf(NOW + 30 * DAY),
}
const orders = suite('the orders of certificates')
orders('are placed as soon as a domain is proved, and not before', () => {
  const unproved = domain('pending_validation')
  when('changed', unproved, issuing).then(drop, look(unproved, NOW + CHECK_MS), dropOrder)
  const proved = domain('pending_validation', 0, { is_proved: true })
  when('changed', proved, issuing).then(drop, look(proved, NOW + CHECK_MS), order(proved, NOW))
})
orders('renew a certificate after two thirds of its lifetime', () => {
  const fresh = { ...certificate, not_before: isoOf(NOW), not_after: isoOf(NOW + 90 * DAY) }
  const active = domain('active', 0, { certificate: fresh })
  when('changed', active, issuing).then(drop, look(active, TURN), order(active, NOW + 60 * DAY))
  const short = domain('active', 0, { certificate: { ...fresh, not_after: isoOf(NOW + 6 * DAY) } })
  when('changed', short, issuing).then(drop, look(short, TURN), order(short, NOW + 4 * DAY))
  const old = domain('active', 0, { certificate })
  when('changed', old, issuing).then(drop, look(old, TURN), order(old, NOW))
})
orders('that failed are repeated at the time that was stored', () => {
  const failure = { count: 3, message: 'no', retry_at: isoOf(NOW + 7 * HOUR) }
  const doc = domain('active', 0, { certificate, failure })
  when('changed', doc, issuing).then(drop, look(doc, TURN), order(doc, NOW + 7 * HOUR))
})
orders('whose alarm rang too early get another one', () => {
  const failure = { count: 3, message: 'no', retry_at: isoOf(NOW + 7 * HOUR) }
  const doc = domain('active', 0, { certificate, failure })
  when('early', doc, issuing).then(order(doc, NOW + 7 * HOUR))
  when('early', domain('deleting', 0, { certificate, is_proved: true }), issuing).then()
})
orders('are not delayed by a time that was stored while a clock was ahead', () => {
  const failedWith = (retryAt: number) => {
    const failure = { count: 3, message: 'no', retry_at: isoOf(retryAt) }
    return domain('active', 0, { certificate, failure })
  }
  const asked = failedWith(NOW + DAY)
  when('changed', asked, issuing).then(drop, look(asked, TURN), order(asked, NOW + DAY))
  when('early', asked, issuing).then(order(asked, NOW + DAY))
  const far = failedWith(NOW + 400 * DAY)
  when('changed', far, issuing).then(drop, look(far, TURN), order(far, NOW))
  when('early', far, issuing).then(order(far, NOW))
})
orders('whose result could not be stored are repeated after a pause', () => {
  const doc = domain('active')
  when('unordered', doc, issuing).then(order(doc, NOW + 30 * CHECK_MS))
})
orders('of one organization are limited, so that it cannot use up those of the others', () => {
  const ordered = (agoMs: number, org_id = 'org') => {
    const doc = domain('validated', 0, { org_id })
    return { input: { type: 'due', work: { task: 'issue', doc } } as const, at: NOW - agoMs }
  }
  const placed = Array.from({ length: 100 }, (_, n) => ordered(2 * HOUR - n))
  const next = ordered(0)
  const after = (...earlier: readonly ReturnType<typeof ordered>[]) => {
    let { initial: state } = issuing
    for (const { input, at } of earlier) state = issuing.react(state, input, at).state
    return issuing.react(state, next.input, next.at).steps
  }
  const carriedOut = [{ do: 'carryOut', key: 'd/certificate', command: next.input.work }]
  assert.equal(after(...placed.slice(1)), carriedOut)
  assert.equal(after(...placed), [
    { do: 'setAlarm', key: 'd/certificate', at: NOW + HOUR, input: next.input },
  ])
  assert.equal(after(ordered(3 * HOUR), ...placed.slice(1)), carriedOut, 'three hours later')
  assert.equal(
    after(...placed.map(() => ordered(HOUR, 'other'))),
    carriedOut,
    'those of another organization',
  )
  assert.equal(
    after(...placed.map(() => ordered(-400 * DAY)), ordered(3 * HOUR)),
    carriedOut,
    'three hours after a clock that was ahead was corrected',
  )
})
orders('end with the domain', () => {
  const doc = domain('deleting', 0, { certificate, is_proved: true })
  when('changed', doc, issuing).then(drop, look(doc, NOW, 'remove'), dropOrder)
})
orders.run()

const claims = suite<{ node: Awaited<ReturnType<typeof openCommands>> }>('a claim whose time is over')
claims.before(async (context) => {
  context.node = await openCommands()
})

type Opened = Awaited<ReturnType<typeof openCommands>>

/** Registers a domain whose time is over. */
const registered = async ({ aggregates }: Opened, more: Partial<DomainDoc> = {}): Promise<DomainDoc> => {
  const doc = { ...domain('pending_validation', 7 * DAY + 1), domain_id: newId(), org_id: newId(), ...more }
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

const sagaOf = (
  { deps }: Opened,
  doc: DomainDoc,
  answer: 'none' | 'fails' | 'found',
  certificates: Certificates | null = null,
) =>
  advanceDomains({
    ...deps,
    certificates,
    dns: {
      txt: () => Promise.resolve([]),
      cname: () =>
        answer === 'fails'
          ? Promise.reject(new AppError('unavailable', 'no answer'))
          : Promise.resolve(answer === 'found' ? [doc.validation_cname_value] : []),
    },
    logger: silent,
    checkMs: CHECK_MS,
  })
const certificates: Certificates = {
  issue: () => Promise.reject(new AppError('unavailable', 'The authority is away')),
  revoke: () => Promise.resolve(),
}

for (const [what, answer, left] of [
  ['is removed if its record is missing', 'none', 'deleting'],
  ['is removed if DNS does not answer', 'fails', 'deleting'],
  ['is kept if its record has just appeared', 'found', 'validated'],
] as const)
  claims(what, async ({ node }) => {
    const old = await registered(node)
    const saga = sagaOf(node, old, answer)
    assert.is(await saga.carryOut({ task: 'check', doc: old }, running), undefined)
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

for (const [what, answer] of [
  ['has its record', 'found'],
  ['lost its record a moment ago', 'none'],
  ['is not found because DNS does not answer', 'fails'],
] as const)
  claims(`is kept if it is proved and waits for its certificate, also if it ${what}`, async ({ node }) => {
    const old = await registered(node)
    const { domain_id, org_id, env_id } = old
    const cause = { env_id, correlation_id: newId() }
    await node.aggregates.domains.handle(streamOf.domains(org_id), { type: 'ProveDomain', domain_id }, cause)
    const saga = sagaOf(node, old, answer, certificates)
    await saga.carryOut({ task: 'check', doc: { ...old, is_proved: true } }, running)
    assert.is(await statusOf(node, old), 'pending_validation')
  })

claims.after(({ node }) => node.close())
claims.run()

const placed = suite<{ node: Opened }>('the orders of a saga')
placed.before(async (context) => {
  context.node = await openCommands()
})

/** Registers a domain and proves it. */
const proved = async (node: Opened, more: Partial<DomainDoc> = {}): Promise<DomainDoc> => {
  const doc = await registered(node, more)
  const { domain_id, org_id, env_id } = doc
  const cause = { env_id, correlation_id: newId() }
  await node.aggregates.domains.handle(streamOf.domains(org_id), { type: 'ProveDomain', domain_id }, cause)
  return { ...doc, is_proved: true }
}

placed('that come too early because the clock was set back are reported', async ({ node }) => {
  const doc = await proved(node)
  const { domain_id, org_id, env_id } = doc
  const fail = {
    type: 'FailCertificate',
    domain_id,
    message: 'no',
    retry_at: isoOf(Date.now() + DAY),
  } as const
  const cause = { env_id, correlation_id: newId() }
  await node.aggregates.domains.handle(streamOf.domains(org_id), fail, cause)
  await node.views.settled('domains')
  const saga = sagaOf(node, doc, 'found', certificates)
  const next = await saga.carryOut({ task: 'issue', doc }, running)
  assert.is(next?.type, 'early')
  assert.is(next?.type === 'early' && next.doc.failure?.retry_at, fail.retry_at)
})

placed('are not early because a time was stored while a clock was ahead', async ({ node }) => {
  const doc = await proved(node)
  const { domain_id, org_id, env_id } = doc
  const retry_at = isoOf(Date.now() + 400 * DAY)
  const fail = { type: 'FailCertificate', domain_id, message: 'no', retry_at } as const
  const cause = { env_id, correlation_id: newId() }
  await node.aggregates.domains.handle(streamOf.domains(org_id), fail, cause)
  await node.views.settled('domains')
  const saga = sagaOf(node, doc, 'found', certificates)
  assert.is(await saga.carryOut({ task: 'issue', doc }, running), undefined)
  await node.views.settled('domains')
  const failure = (await node.views.domains.get(domain_id))?.failure
  assert.is(failure?.count, 2)
  assert.ok(Date.parse(failure?.retry_at ?? '') < Date.now() + DAY, failure?.retry_at)
})

placed('that wait for a place end with the lease', async ({ node }) => {
  const org_id = newId()
  const docs: DomainDoc[] = []
  for (let n = 0; n < 5; n++) docs.push(await proved(node, { org_id, domain: `h${n}.example` }))
  await node.views.settled('domains')
  const gate = Promise.withResolvers<never>()
  const begun: string[] = []
  const slow: Certificates = {
    ...certificates,
    issue: (domain) => {
      begun.push(domain)
      return gate.promise
    },
  }
  const saga = sagaOf(node, docs[0] as DomainDoc, 'found', slow)
  const lease = new AbortController()
  const carriedOut = docs.map((doc) => saga.carryOut({ task: 'issue', doc }, lease.signal))
  await until(() => begun.length === 4)
  lease.abort()
  gate.reject(new AppError('unavailable', 'The authority is away'))
  const results = await Promise.allSettled(carriedOut)
  assert.equal(
    results.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'fulfilled', 'fulfilled', 'rejected'],
  )
  assert.is(begun.length, 4)
})

placed.after(({ node }) => node.close())
placed.run()
