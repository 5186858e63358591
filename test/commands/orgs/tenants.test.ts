import * as assert from 'uvu/assert'
import { changeApiKey } from '../../../src/commands/credentials/changeApiKey.ts'
import { changeOrg } from '../../../src/commands/orgs/changeOrg.ts'
import { createApiKey } from '../../../src/commands/credentials/createApiKey.ts'
import { createEnv } from '../../../src/commands/orgs/createEnv.ts'
import { createOrg } from '../../../src/commands/orgs/createOrg.ts'
import { deleteApiKey } from '../../../src/commands/credentials/deleteApiKey.ts'
import { ensureFirstTenant } from '../../../src/commands/orgs/ensureFirstTenant.ts'
import { findApiKey, findEnv, findOrg } from '../../../src/commands/orgs/findTenant.ts'
import { issueServiceKey } from '../../../src/commands/credentials/issueServiceKey.ts'
import { issueSession } from '../../../src/commands/credentials/issueSession.ts'
import { newApiToken, parseApiToken } from '../../../src/access/tokens.ts'
import { openAggregates } from '../../../src/domain/aggregates.ts'
import { newId } from '../../../src/ids.ts'
import { suite } from '../../support/suite.ts'
import { issuerOf } from '../issuerOf.ts'
import { callerOf, openCommands } from '../openCommands.ts'
import { refusedWith } from '../refusedWith.ts'

const node = await openCommands()
const { deps } = node
const cause = { correlation_id: newId(), actor: 'operator' }
const caller = { cause, newId }
const newOrg = async () => {
  const slug = `o-${newId().slice(-12)}`
  return { slug, ...(await createOrg(deps, { slug, plan: 'free' }, cause)) }
}
const newEnv = async () => createEnv(deps, { org: (await newOrg()).slug, name: 'dev' }, cause)

const orgs = suite('createOrg and changeOrg')

orgs('accept a slug once, even from ten callers at the same time', async () => {
  const slug = `o-${newId().slice(-12)}`
  const settled = await Promise.allSettled(
    Array.from({ length: 10 }, () => createOrg(deps, { slug, plan: 'free' }, cause)),
  )
  assert.is(settled.filter(({ status }) => status === 'fulfilled').length, 1)
  await refusedWith('conflict', () => createOrg(deps, { slug, plan: 'pro' }, cause))
  assert.is((await findOrg(deps, slug)).plan, 'free')
})

for (const slug of ['', 'A', 'a_b', '-a', 'a-', 'ä', 'a.b', 'a\n', 'a'.repeat(64)])
  orgs(`refuse the slug ${JSON.stringify(slug.slice(0, 10))}, which is no DNS label`, async () => {
    const before = await node.store.head()
    const { message } = await refusedWith('bad_request', () => createOrg(deps, { slug, plan: 'pro' }, cause))
    assert.ok(message.startsWith('slug: '))
    assert.is(await node.store.head(), before)
  })

orgs('name an organization after its slug unless it has a name', async () => {
  const { slug, org_id } = await newOrg()
  assert.is((await findOrg(deps, org_id)).name, slug)
})

orgs('change only what is given, by slug or id', async () => {
  const { slug, org_id } = await newOrg()
  await changeOrg(deps, { org: slug, plan: 'scale' }, cause)
  await changeOrg(deps, { org: org_id, name: 'New', team_members: 7 }, cause)
  const { plan, name, team_members } = await findOrg(deps, slug)
  assert.equal([plan, name, team_members], ['scale', 'New', 7])
})

orgs('ignore the fields of a body that do not belong to them', async () => {
  const [{ slug, org_id }, other] = [await newOrg(), await newOrg()]
  const body = { name: 'New', org_id: other.org_id, type: 'OrgCreated', unknown: 1 }
  await changeOrg(deps, { ...body, org: slug }, cause)
  const facts = await Array.fromAsync(node.store.read(`org-${org_id}`))
  assert.equal(facts.at(-1)?.event, { type: 'OrgChanged', org_id, name: 'New' })
})

orgs('store nothing for a change without effect', async () => {
  const { slug } = await newOrg()
  const before = await node.store.head()
  await changeOrg(deps, { org: slug, plan: 'free' }, cause)
  assert.is(await node.store.head(), before)
})

orgs('refuse to change an unknown organization', () =>
  refusedWith('not_found', () => changeOrg(deps, { org: newId(), plan: 'pro' }, cause)),
)
orgs.run()

const envs = suite('createEnv')
envs('accepts a name once in an organization, and in every organization', async () => {
  const [one, two] = [await newOrg(), await newOrg()]
  const { env_id } = await createEnv(deps, { org: one.slug, name: 'dev' }, cause)
  await refusedWith('conflict', () => createEnv(deps, { org: one.org_id, name: 'dev' }, cause))
  assert.is.not((await createEnv(deps, { org: two.slug, name: 'dev' }, cause)).env_id, env_id)
  assert.is((await findEnv(deps, env_id)).org_id, one.org_id)
})
envs('refuses an unknown organization, and a name that is no DNS label', async () => {
  await refusedWith('not_found', () => createEnv(deps, { org: 'none', name: 'dev' }, cause))
  const { slug } = await newOrg()
  await refusedWith('bad_request', () => createEnv(deps, { org: slug, name: 'Dev' }, cause))
})
envs.run()

const keys = suite('the commands for API keys')

keys('create a key with full access by default, and store no secret (I6)', async () => {
  const { env_id } = await newEnv()
  const { api_key_id, token } = await createApiKey(deps, { env_id, name: 'ci' }, caller)
  const secret = parseApiToken(token)?.secret ?? ''
  const { permissions, mac } = await findApiKey(deps, api_key_id)
  assert.equal(permissions, { '*:*': ['*'] })
  assert.ok(deps.keyring.proves(secret, mac))
  for await (const { event } of node.store.read(`key-${api_key_id}`))
    assert.not.ok(JSON.stringify(event).includes(secret))
})

keys('refuse an unknown environment, and invalid permissions', async () => {
  const { env_id } = await newEnv()
  await refusedWith('not_found', () => createApiKey(deps, { env_id: newId(), name: 'k' }, caller))
  const permissions = { run: ['read'] }
  await refusedWith('bad_request', () => createApiKey(deps, { env_id, name: 'k', permissions }, caller))
  const { api_key_id } = await createApiKey(deps, { env_id, name: 'k' }, caller)
  await refusedWith('bad_request', () => changeApiKey(deps, { api_key_id, permissions }, cause))
})

keys('refuse permissions that need more memory than those of one credential may', async () => {
  const { env_id } = await newEnv()
  const { api_key_id } = await createApiKey(deps, { env_id, name: 'k' }, caller)
  const permissions = { 'run:*': Array.from({ length: 10_000 }, () => 'read') }
  await refusedWith('bad_request', () => createApiKey(deps, { env_id, name: 'k', permissions }, caller))
  await refusedWith('bad_request', () => changeApiKey(deps, { api_key_id, permissions }, cause))
})

keys('announce each change and the deletion to the authenticator', async () => {
  const ended: string[] = []
  const watched = { ...deps, authenticator: { ended: (id: string) => void ended.push(id) } }
  const { api_key_id } = await createApiKey(deps, { ...(await newEnv()), name: 'k' }, caller)
  await changeApiKey(watched, { api_key_id, enabled: false }, cause)
  assert.equal(ended, [api_key_id])
  await deleteApiKey(watched, { api_key_id }, cause)
  assert.equal(new Set(ended), new Set([api_key_id]))
  assert.ok(ended.length > 1)
})

keys('delete the key first, then revoke what was issued under it', async () => {
  const { env_id } = await newEnv()
  const { api_key_id } = await createApiKey(deps, { env_id, name: 'k' }, caller)
  const issuer = issuerOf(env_id, api_key_id)
  const permissions = { 'run:*': ['read'] }
  await issueSession(deps, { issuer, permissions }, callerOf(env_id))
  await issueServiceKey(deps, { issuer, permissions }, callerOf(env_id))
  const before = await node.store.head()
  await deleteApiKey(deps, { api_key_id }, cause)
  const types: string[] = []
  const done = new AbortController()
  const watched = ['ApiKeyDeleted', 'SessionsEnded', 'ServiceKeysRevoked'] as const
  for await (const { events } of node.store.subscribe({
    after: before,
    types: watched,
    signal: done.signal,
  })) {
    types.push(...events.map(({ event }) => event.type))
    if (types.length === watched.length) done.abort()
  }
  assert.equal(types, [...watched])
})

keys('refuse to change or delete a deleted or unknown key', async () => {
  const { api_key_id } = await createApiKey(deps, { ...(await newEnv()), name: 'k' }, caller)
  await deleteApiKey(deps, { api_key_id }, cause)
  for (const id of [api_key_id, newId()]) {
    await refusedWith('not_found', () => deleteApiKey(deps, { api_key_id: id }, cause))
    await refusedWith('not_found', () => changeApiKey(deps, { api_key_id: id, enabled: true }, cause))
  }
})
keys.run()

const first = suite('ensureFirstTenant')
first('creates the first key once, even when several nodes start at the same time', async () => {
  const token = newApiToken(newId())
  const nodes = [1, 2, 3].map(() => ({ ...deps, aggregates: openAggregates(node.store) }))
  const created = await Promise.all(nodes.map((each) => ensureFirstTenant(each, { token })))
  assert.is(created.filter(Boolean).length, 1)
  assert.not.ok(await ensureFirstTenant(deps, { token }))
  const { env_id } = await findApiKey(deps, parseApiToken(token)?.api_key_id ?? '')
  const { name, org_id } = await findEnv(deps, env_id)
  assert.equal([name, (await findOrg(deps, 'local')).org_id], ['dev', org_id])
})
first('refuses a text that is no API key', () =>
  refusedWith('bad_request', () => ensureFirstTenant(deps, { token: 'svc_nonsense' })),
)
first.after(() => node.close())
first.run()
