import * as assert from 'uvu/assert'
import { clock, isoOf } from '../../../src/clock.ts'
import { advanceDomain } from '../../../src/commands/customDomains/advanceDomain.ts'
import { deleteDomain } from '../../../src/commands/customDomains/deleteDomain.ts'
import { domainFor } from '../../../src/commands/customDomains/domainFor.ts'
import { issueCertificate } from '../../../src/commands/customDomains/issueCertificate.ts'
import { registerDomain } from '../../../src/commands/customDomains/registerDomain.ts'
import { removeDomain } from '../../../src/commands/customDomains/removeDomain.ts'
import { verifyDomain } from '../../../src/commands/customDomains/verifyDomain.ts'
import { destroyDataKeys } from '../../../src/commands/dataKeys/destroyDataKeys.ts'
import { createEnv } from '../../../src/commands/orgs/createEnv.ts'
import { createOrg } from '../../../src/commands/orgs/createOrg.ts'
import { AppError, isAppError } from '../../../src/errors.ts'
import { newId } from '../../../src/ids.ts'
import type { Certificates } from '../../../src/ports/certificates.ts'
import type { DomainDoc } from '../../../src/projections/customDomains.ts'
import { unsealCertificateKey } from '../../../src/secrets/certificateKeys.ts'
import { suite } from '../../support/suite.ts'
import { callerOf, openCommands } from '../openCommands.ts'

const DAY = 86_400_000
const CHECK_MS = 10_000
const RECHECK_MS = DAY

const node = await openCommands()
const cnames = new Map<string, string>()
const revoked: string[] = []
/** What the authority does next. */
let mood: 'issues' | 'refuses' | 'is away' = 'issues'
/** The seconds for which the authority asks to wait when it refuses. */
let retryAfter: number | undefined
let beforeReply: () => Promise<void> = () => Promise.resolve()

/** The TXT records that the name server would return. */
const txtOf = (name: string): readonly string[] => {
  const label = cnames.get(name)?.split('.')[0] ?? ''
  return node.views.directory.domains.byId(label)?.challenge ?? []
}
const certificates: Certificates = {
  issue: async (domain, publish) => {
    if (mood === 'is away') throw new AppError('unavailable', 'The authority is away')
    await publish([`value of ${domain}`])
    if (mood === 'refuses')
      throw new AppError('unavailable', 'The authority refuses', { data: { retryAfter } })
    await beforeReply()
    return {
      chain: `chain of ${domain}`,
      privateKey: `key of ${domain}`,
      not_before: isoOf(clock.now()),
      not_after: isoOf(clock.now() + 90 * DAY),
    }
  },
  revoke: (chain) => {
    if (mood === 'is away') return Promise.reject(new AppError('unavailable', 'The authority is away'))
    revoked.push(chain)
    return Promise.resolve()
  },
}
const deps = {
  ...node.deps,
  certificates,
  checkMs: CHECK_MS,
  domainRecheckMs: RECHECK_MS,
  dns: {
    cname: (name: string) => Promise.resolve(cnames.has(name) ? [cnames.get(name) ?? ''] : []),
    txt: (name: string) => Promise.resolve(txtOf(name)),
  },
}
await createOrg(deps, { slug: 'org', name: 'org', plan: 'self_host' }, { correlation_id: newId() })
const { env_id } = await createEnv(deps, { org: 'org', name: 'dev' }, { correlation_id: newId() })
const caller = callerOf(env_id)

let count = 0
const get = ({ domain_id }: DomainDoc) => domainFor(deps, env_id, domain_id)
const verify = ({ domain_id }: DomainDoc) => verifyDomain(deps, { domain_id }, caller)
const advance = async (domain: DomainDoc) =>
  advanceDomain(deps, await get(domain), { correlation_id: newId() })
const issue = async (domain: DomainDoc) => issueCertificate(deps, await get(domain))
const remove = async (domain: DomainDoc) => removeDomain(deps, await get(domain), { correlation_id: newId() })
/** Registers a domain and creates its validation record. */
const proved = async (): Promise<DomainDoc> => {
  const domain = await registerDomain(deps, { domain: `c${++count}.example.com` }, caller)
  cnames.set(domain.validation_cname_name, domain.validation_cname_value)
  await advance(domain)
  return get(domain)
}
const active = async (): Promise<DomainDoc> => {
  const domain = await proved()
  await issue(domain)
  await advance(domain)
  cnames.set(domain.domain, (await get(domain)).routing_domain ?? '')
  await advance(domain)
  return get(domain)
}

const issuing = suite('issuing a certificate')
issuing.before.each(() => {
  mood = 'issues'
  retryAfter = undefined
  beforeReply = () => Promise.resolve()
})

issuing('validates a domain whose record was found, and not before', async () => {
  const domain = await proved()
  assert.equal([domain.status, domain.is_proved, domain.routing_domain], ['pending_validation', true, null])
  const { status, message } = await verify(domain)
  assert.equal(
    [status, message],
    ['pending_validation', 'The DNS record was found. The certificate is being issued'],
  )
  await issue(domain)
  const { status: now, certificate, routing_domain } = await get(domain)
  assert.equal([now, routing_domain], ['validated', `${domain.domain_id}.edge.svc.test`])
  assert.is(certificate?.chain, `chain of ${domain.domain}`)
})

issuing('stores the private key sealed, for this domain only', async () => {
  const [one, other] = [await proved(), await proved()]
  await issue(one)
  await issue(other)
  const { sealed = '' } = (await get(one)).certificate ?? {}
  assert.not.match(sealed, 'key of')
  assert.is(await unsealCertificateKey(deps.keyring, one, sealed), `key of ${one.domain}`)
  const stolen = unsealCertificateKey(deps.keyring, other, sealed)
  assert.is(
    await stolen.then(
      () => 'opened',
      () => 'refused',
    ),
    'refused',
  )
})

issuing('gives a key that an erasure of the secrets of the environment leaves', async () => {
  const domain = await active()
  const { sealed = '' } = domain.certificate ?? {}
  const secret = await deps.keyring.seal(env_id, 'p', 'secret')
  await destroyDataKeys(deps, { env_id }, { correlation_id: newId() })
  const erased = await deps.keyring.unseal(env_id, 'p', secret).catch((error: unknown) => error)
  assert.ok(isAppError(erased, 'not_found'), String(erased))
  assert.is(await unsealCertificateKey(deps.keyring, domain, sealed), `key of ${domain.domain}`)
})

issuing('that fails shows why, and is repeated after ever longer pauses', async () => {
  const domain = await proved()
  mood = 'refuses'
  const pauses: number[] = []
  for (let i = 0; i < 8; i++) {
    const before = clock.now()
    await issue(domain)
    pauses.push(Date.parse((await get(domain)).failure?.retry_at ?? '') - before)
  }
  const minutes = pauses.map((ms) => Math.round(ms / 60_000))
  assert.equal(minutes, [5, 10, 20, 40, 80, 160, 320, 360])
  const { message } = await verify(domain)
  assert.match(message, /^The authority refuses\. The next attempt is at \d{4}-/)
  mood = 'issues'
  await issue(domain)
  const { status, failure } = await get(domain)
  assert.equal([status, failure], ['validated', null])
})

issuing('that reaches a rate limit waits for as long as the authority asks, at most a day', async () => {
  const pauseHours = async (seconds: number): Promise<number> => {
    const domain = await proved()
    ;[mood, retryAfter] = ['refuses', seconds]
    const before = clock.now()
    await issue(domain)
    return Math.round((Date.parse((await get(domain)).failure?.retry_at ?? '') - before) / 360_000) / 10
  }
  assert.is(await pauseHours(3 * 3600), 3)
  assert.is(await pauseHours(7 * 24 * 3600), 24)
  assert.is(await pauseHours(1), 0.1, 'not sooner than without a limit')
})

issuing(
  'renews the certificate of an active domain with a new key; a failure does not end its service',
  async () => {
    const domain = await active()
    assert.is(domain.status, 'active')
    mood = 'is away'
    await issue(domain)
    const failing = await get(domain)
    assert.equal([failing.status, failing.certificate], ['active', domain.certificate])
    assert.match((await verify(domain)).message, /^The certificate could not be renewed and expires at/)
    mood = 'issues'
    await issue(domain)
    const renewed = await get(domain)
    assert.is.not(renewed.certificate?.certificate_id, domain.certificate?.certificate_id)
    assert.is.not(renewed.certificate?.sealed, domain.certificate?.sealed)
  },
)

issuing('for a domain that is deleted meanwhile stores nothing, and revokes the certificate', async () => {
  const domain = await proved()
  beforeReply = () => deleteDomain(deps, domain, caller)
  await issue(domain)
  assert.equal([(await get(domain)).status, (await get(domain)).certificate], ['deleting', null])
  assert.ok(revoked.includes(`chain of ${domain.domain}`))
})

issuing('for a proved domain is awaited: no other environment can claim it meanwhile', async () => {
  const domain = await proved()
  const other = await createEnv(deps, { org: 'org', name: 'other' }, { correlation_id: newId() })
  const claim = `_svc-claim.${domain.domain}`
  cnames.set(claim, `${other.env_id}.claim.svc.test`)
  const refusal = await registerDomain(deps, { domain: domain.domain }, callerOf(other.env_id)).catch(
    (error: unknown) => error,
  )
  assert.ok(isAppError(refusal, 'domain_exists'))
  assert.not.match(refusal.message, claim)
  assert.is((await get(domain)).status, 'pending_validation')
})

issuing.run()

const leaving = suite('a domain that leads elsewhere')

/** The same domain after its records have led elsewhere for `ms`. */
const since = (doc: DomainDoc, ms: number): DomainDoc => ({
  ...doc,
  diverted: doc.diverted && { ...doc.diverted, since: isoOf(clock.now() - ms) },
})

leaving('is watched for a quarter of a day before it stops serving', async () => {
  const domain = await active()
  cnames.set(domain.domain, 'elsewhere.example')
  assert.ok((await advance(domain)).moved)
  const diverted = await get(domain)
  assert.is(diverted.status, 'active')
  assert.match(
    (await verify(domain)).message,
    /no longer leads to this service: it is a CNAME of elsewhere\.example/,
  )
  await advanceDomain(deps, since(diverted, RECHECK_MS / 4 - 1000), { correlation_id: newId() })
  assert.is((await get(domain)).status, 'active')
  await advanceDomain(deps, since(diverted, RECHECK_MS / 4), { correlation_id: newId() })
  assert.is((await get(domain)).status, 'provisioning')
  assert.is(node.views.directory.envOfDomain(domain.domain), undefined)
  cnames.set(domain.domain, domain.routing_domain ?? '')
  await advance(domain)
  assert.is((await get(domain)).status, 'active')
})

leaving(
  'without its proof goes back to its first status, and needs no second certificate afterwards',
  async () => {
    const domain = await active()
    cnames.delete(domain.domain)
    cnames.delete(domain.validation_cname_name)
    await advance(domain)
    await advanceDomain(deps, since(await get(domain), RECHECK_MS), { correlation_id: newId() })
    const suspended = await get(domain)
    assert.equal(
      [suspended.status, suspended.is_proved, suspended.routing_domain],
      ['pending_validation', false, null],
    )
    cnames.set(domain.validation_cname_name, domain.validation_cname_value)
    await advance(domain)
    const again = await get(domain)
    assert.equal([again.status, again.certificate], ['validated', domain.certificate])
  },
)

leaving('is watched from now on if a clock that was ahead stored the time', async () => {
  const domain = await active()
  cnames.set(domain.domain, 'elsewhere.example')
  await advance(domain)
  const ahead = since(await get(domain), -400 * DAY)
  const before = clock.now()
  assert.ok((await advanceDomain(deps, ahead, { correlation_id: newId() })).moved)
  const diverted = await get(domain)
  assert.is(diverted.status, 'active')
  const watched = Date.parse(diverted.diverted?.since ?? '')
  assert.ok(watched >= before && watched <= clock.now(), diverted.diverted?.since)
  const soon = since(diverted, -1000) // the usual difference of clocks
  assert.not.ok((await advanceDomain(deps, soon, { correlation_id: newId() })).moved)
  await advanceDomain(deps, since(diverted, RECHECK_MS / 4), { correlation_id: newId() })
  assert.is((await get(domain)).status, 'provisioning')
})

leaving('and returns in time changes nothing', async () => {
  const domain = await active()
  cnames.delete(domain.domain)
  await advance(domain)
  cnames.set(domain.domain, domain.routing_domain ?? '')
  await advance(domain)
  const { status, diverted } = await get(domain)
  assert.equal([status, diverted], ['active', null])
})

leaving('before it has a certificate loses its proof with its record, but not at once', async () => {
  const domain = await proved()
  const record = `${domain.validation_cname_name} CNAME ${domain.validation_cname_value}`
  cnames.delete(domain.validation_cname_name)
  const { message } = await verify(domain)
  assert.is(
    message,
    `${domain.validation_cname_name} no longer leads to this service: it has no CNAME record. Create the DNS record ${record}`,
  )
  cnames.set(domain.validation_cname_name, domain.validation_cname_value)
  await advance(domain)
  assert.equal([(await get(domain)).is_proved, (await get(domain)).diverted], [true, null])
  cnames.delete(domain.validation_cname_name)
  await advance(domain)
  await advanceDomain(deps, since(await get(domain), RECHECK_MS / 4 - 1000), { correlation_id: newId() })
  assert.is((await get(domain)).is_proved, true)
  await advanceDomain(deps, since(await get(domain), RECHECK_MS / 4), { correlation_id: newId() })
  const { status, is_proved } = await get(domain)
  assert.equal([status, is_proved], ['pending_validation', false])
  assert.is((await verify(domain)).message, `Expected the DNS record ${record}; found no such record`)
})

leaving('before it ever served loses its proof with its record', async () => {
  const domain = await proved()
  await issue(domain)
  await advance(domain)
  assert.is((await get(domain)).status, 'provisioning')
  await advance(domain)
  assert.is((await get(domain)).diverted, null)
  cnames.delete(domain.validation_cname_name)
  await advance(domain)
  await advanceDomain(deps, since(await get(domain), RECHECK_MS), { correlation_id: newId() })
  assert.is((await get(domain)).status, 'pending_validation')
})

leaving.run()

const removing = suite('removing a domain with a certificate')
removing.before.each(() => {
  mood = 'issues'
})

removing('revokes the certificate and destroys its private key', async () => {
  const domain = await active()
  const { sealed = '', chain = '' } = domain.certificate ?? {}
  await deleteDomain(deps, domain, caller)
  await remove(domain)
  assert.ok(revoked.includes(chain))
  const opened = await unsealCertificateKey(deps.keyring, domain, sealed).catch((error: unknown) => error)
  assert.ok(isAppError(opened, 'not_found'), String(opened))
  assert.is(
    await get(domain).then(
      () => 'found',
      () => 'gone',
    ),
    'gone',
  )
})

removing('waits an hour for an authority that is away, while the name is available again', async () => {
  const domain = await active()
  await deleteDomain(deps, domain, caller)
  mood = 'is away'
  const failure = await remove(domain).catch((error: unknown) => error)
  assert.ok(isAppError(failure, 'unavailable'))
  const again = await registerDomain(deps, { domain: domain.domain }, caller)
  assert.is.not(again.domain_id, domain.domain_id)
  await removeDomain(
    deps,
    { ...(await get(domain)), since: isoOf(clock.now() - 3_600_000) },
    { correlation_id: newId() },
  )
  assert.is(
    await get(domain).then(
      () => 'found',
      () => 'gone',
    ),
    'gone',
  )
})

removing.after(() => node.close())
removing.run()
