import * as assert from 'uvu/assert'
import type { Credential } from '../../../src/access/credential.ts'
import { parseToken } from '../../../src/access/tokens.ts'
import { clock } from '../../../src/clock.ts'
import { issueServiceKey } from '../../../src/commands/credentials/issueServiceKey.ts'
import { issueSession } from '../../../src/commands/credentials/issueSession.ts'
import { revokeServiceKey } from '../../../src/commands/credentials/revokeServiceKey.ts'
import { revokeServiceKeys } from '../../../src/commands/credentials/revokeServiceKeys.ts'
import { revokeSession } from '../../../src/commands/credentials/revokeSession.ts'
import { revokeSessions } from '../../../src/commands/credentials/revokeSessions.ts'
import { useServiceKey } from '../../../src/commands/credentials/useServiceKey.ts'
import { isAppError } from '../../../src/errors.ts'
import type { Permissions } from '../../../src/events/org.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { newId } from '../../../src/ids.ts'
import { suite } from '../../support/suite.ts'
import { issuerOf } from '../issuerOf.ts'
import { callerOf, openCommands } from '../openCommands.ts'
import { refusedWith } from '../refusedWith.ts'

const node = await openCommands()
const { deps } = node
const env_id = newId()
const caller = callerOf(env_id)
const READ: Permissions = { 'run:*': ['read'] }

/** Both kinds are issued by the same rules. */
const kinds = {
  issueSession: (issuer = issuerOf(env_id), permissions = READ, expires_in?: number) =>
    issueSession(deps, { issuer, permissions, expires_in }, caller),
  issueServiceKey: (issuer = issuerOf(env_id), permissions = READ, expires_in?: number) =>
    issueServiceKey(deps, { issuer, permissions, expires_in }, caller),
}

for (const [name, issue] of Object.entries(kinds)) {
  const issuing = suite(name)

  for (const kind of ['session', 'service-key'] as const)
    issuing(`refuses a ${kind} as the issuer, before it checks the permissions`, () =>
      refusedWith('forbidden', () => issue({ ...issuerOf(env_id), kind }, { nonsense: [] })),
    )

  issuing('refuses an invalid map before it compares it with the issuer', () =>
    refusedWith('bad_request', () => issue(issuerOf(env_id, newId(), {}), { run: ['read'] })),
  )

  for (const permissions of [
    { 'run:*': ['read'], 'event:*': ['read'] },
    { 'event:shop': ['create'] },
    { 'stream:*': ['*'] },
  ] satisfies Permissions[])
    issuing(`refuses ${JSON.stringify(permissions)} to an issuer without it, and names it`, async () => {
      const { message } = await refusedWith('permission_escalation', () =>
        issue(issuerOf(env_id, newId(), READ), permissions),
      )
      assert.match(message, /(event|stream):/)
    })

  issuing('grants what the issuer has on any path', async () => {
    assert.ok((await issue(issuerOf(env_id, newId(), READ), { 'run:x': ['*'] })).token)
    assert.ok((await issue(issuerOf(env_id, newId(), READ), {})).token)
  })

  for (const expires_in of [0, -1, 1.5, 1e12])
    issuing(`refuses to expire in ${expires_in} seconds`, async () => {
      const { message } = await refusedWith('bad_request', () => issue(undefined, undefined, expires_in))
      assert.ok(message.startsWith('expires_in: '))
    })

  issuing('stores no secret (I6)', async () => {
    const issuer = issuerOf(env_id)
    const { token } = await issue(issuer)
    const secret = parseToken(token)?.secret ?? ''
    assert.ok(secret)
    for await (const { event } of node.store.read(`issued-${issuer.id}`))
      assert.not.ok(JSON.stringify(event).includes(secret))
  })
  issuing.run()
}

const sessions = suite('sessions')

const expiryOf = async (session_id: string) => {
  await deps.views.settled('sessions')
  return Date.parse((await deps.views.sessions.get(session_id))?.expires_at ?? '')
}

sessions('are valid for an hour by default and for a day at most', async () => {
  const before = clock.now()
  const { session_id } = await kinds.issueSession()
  const lasts = (await expiryOf(session_id)) - before
  assert.ok(lasts >= 3_600_000 && lasts <= 3_600_000 + (clock.now() - before))
  assert.ok((await kinds.issueSession(undefined, undefined, 86_400)).token)
  await refusedWith('bad_request', () => kinds.issueSession(undefined, undefined, 86_401))
})

sessions('number at most 1000 per API key, also when 50 are issued at once at 999', async () => {
  const issuer = issuerOf(env_id)
  const { api_key_id } = issuer
  await Promise.all(Array.from({ length: 999 }, () => kinds.issueSession(issuer)))
  const settled = await Promise.allSettled(Array.from({ length: 50 }, () => kinds.issueSession(issuer)))
  const issued = settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
  assert.is(issued.length, 1)
  for (const each of settled)
    if (each.status === 'rejected') assert.ok(isAppError(each.reason, 'session_limit_exceeded'))
  await revokeSession(deps, { api_key_id, session_id: issued[0]?.session_id ?? '' }, caller.cause)
  assert.ok((await kinds.issueSession(issuer)).token)
  assert.is(await revokeSessions(deps, { api_key_id }, caller.cause), 1000)
  assert.is(await revokeSessions(deps, { api_key_id }, caller.cause), 0)
})

sessions('are revoked only by their API key, once', async () => {
  const issuer = issuerOf(env_id)
  const { session_id } = await kinds.issueSession(issuer)
  const revoke = (api_key_id: string) => revokeSession(deps, { api_key_id, session_id }, caller.cause)
  await refusedWith('not_found', () => revoke(newId()))
  await revoke(issuer.id)
  await refusedWith('not_found', () => revoke(issuer.id))
})
sessions.run()

const keys = suite('service keys')

for (const type of ['project', 'build', 'context', 'key', 'session', 'env', 'file', 'domain', '*'])
  keys(`cannot have permissions on ${type}`, () =>
    refusedWith('bad_request', () => kinds.issueServiceKey(undefined, { [`${type}:*`]: ['*'] })),
  )

keys('never expire by default', async () => {
  const { service_key_id } = await kinds.issueServiceKey()
  await deps.views.settled('serviceKeys')
  assert.is((await deps.views.serviceKeys.get(service_key_id))?.expires_at, null)
})

keys('have sealed metadata (I6)', async () => {
  const issuer = issuerOf(env_id)
  await issueServiceKey(deps, { issuer, permissions: READ, metadata: { partner: 'planted' } }, caller)
  const facts = await Array.fromAsync(node.store.read(`issued-${issuer.id}`))
  assert.is(facts.length, 1)
  assert.not.ok(JSON.stringify(facts).includes('planted'))
})

keys('are limited by the plan, per API key', async () => {
  const quotas = Object.assign(Object.create(deps.quotas) as typeof deps.quotas, {
    countsOf: (of: string) => ({ ...deps.quotas.countsOf(of), serviceKeysPerApiKey: 1 }),
  })
  const issue = (issuer: Credential) =>
    issueServiceKey({ ...deps, quotas }, { issuer, permissions: READ }, caller)
  const issuer = issuerOf(env_id)
  const { service_key_id } = await issue(issuer)
  const { message } = await refusedWith('quota_exceeded', () => issue(issuer))
  assert.match(message, /allows 1 valid service keys per API key; revoke one first/)
  await issue(issuerOf(env_id))
  await revokeServiceKey(deps, { api_key_id: issuer.id, service_key_id }, caller.cause)
  await issue(issuer)
})

keys('are revoked only by their API key; a repeat is a no-op', async () => {
  const issuer = issuerOf(env_id)
  const { service_key_id } = await kinds.issueServiceKey(issuer)
  const revoke = (api_key_id: string) => revokeServiceKey(deps, { api_key_id, service_key_id }, caller.cause)
  await refusedWith('not_found', () => revoke(newId()))
  await revoke(issuer.id)
  const before = await node.store.head()
  await revoke(issuer.id)
  assert.is(await node.store.head(), before)
  assert.is(await revokeServiceKeys(deps, { api_key_id: issuer.id }, caller.cause), 0)
})

keys('record a use once a minute, in a stream that no issuing reads', async () => {
  const issuer = issuerOf(env_id)
  const { service_key_id: id } = await kinds.issueServiceKey(issuer)
  const use = () => useServiceKey(deps, { id, api_key_id: issuer.id, env_id })
  const before = await node.store.head()
  await use()
  const used = await node.store.head()
  assert.is.not(used, before)
  await use()
  assert.is(await node.store.head(), used)
  assert.is((await Array.fromAsync(node.store.read(streamOf.issued(issuer.id)))).length, 1)
  await node.views.settled('serviceKeys')
  assert.ok((await node.views.serviceKeys.get(id))?.last_used_at)
})
keys.after(() => node.close())
keys.run()
