import { Readable } from 'node:stream'
import * as assert from 'uvu/assert'
import { createApiKey } from '../../../src/commands/credentials/createApiKey.ts'
import { issueServiceKey } from '../../../src/commands/credentials/issueServiceKey.ts'
import { createEnv } from '../../../src/commands/orgs/createEnv.ts'
import { createOrg } from '../../../src/commands/orgs/createOrg.ts'
import { deleteEnv } from '../../../src/commands/orgs/deleteEnv.ts'
import { deleteOrphanEnvs } from '../../../src/commands/orgs/deleteOrphanEnvs.ts'
import { deleteOrg } from '../../../src/commands/orgs/deleteOrg.ts'
import { ensureFirstTenant } from '../../../src/commands/orgs/ensureFirstTenant.ts'
import { findApiKey, findEnv, findOrg } from '../../../src/commands/orgs/findTenant.ts'
import { purgeEnv } from '../../../src/commands/orgs/purgeEnv.ts'
import { createVariable } from '../../../src/commands/context/createVariable.ts'
import { beginUpload } from '../../../src/commands/files/beginUpload.ts'
import { completeUpload } from '../../../src/commands/files/completeUpload.ts'
import { putPart } from '../../../src/commands/files/putPart.ts'
import { storeFile } from '../../../src/commands/files/storeFile.ts'
import { credentialNow } from '../../../src/access/storedCredential.ts'
import { newApiToken } from '../../../src/access/tokens.ts'
import { filesOf } from '../../../src/content/contentKey.ts'
import { payloadsOf } from '../../../src/content/payloads.ts'
import { clock } from '../../../src/clock.ts'
import { openAggregates } from '../../../src/domain/aggregates.ts'
import { AppError } from '../../../src/errors.ts'
import { newId } from '../../../src/ids.ts'
import { usageOf } from '../../../src/plans/usage.ts'
import { termsOf } from '../../../src/plans/plans.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { forwarding } from '../../support/forwarding.ts'
import { suite } from '../../support/suite.ts'
import { issuerOf } from '../issuerOf.ts'
import { openCommands } from '../openCommands.ts'
import { plantBuild, plantEnv } from '../plantEnv.ts'
import { refusedWith } from '../refusedWith.ts'

const node = await openCommands()
const { deps, views, blobs } = node
const cause = { correlation_id: newId(), actor: 'operator' }
const caller = { cause, newId }
const newSlug = () => `o-${newId().slice(-12)}`
const planted = async () => {
  const slug = newSlug()
  return { slug, ...(await plantEnv(node, slug)) }
}
/** Publishes a large event and starts a run of it. */
const startRun = async (env_id: string, project_id = newId()): Promise<string> => {
  const stream_id = newId()
  const plan = {
    run_id: newId(),
    stream_id,
    run_type: 'event',
    build_id: newId(),
    project_id,
    project_name: 'shop',
    target: { ns: 'a', var: 'b' },
    attempt: 1,
  } as const
  const publish = {
    type: 'PublishEvent',
    stream_id,
    env_id,
    event_id: newId(),
    event_type: 'x',
    data: await deps.payloads.keep('x'.repeat(100_000), { env_id }),
    source: 'api',
    create: true,
    claim: { plans: [plan], worker_id: 'w' },
    now: clock.iso(),
  } as const
  await node.aggregates.streams.handle(streamOf.stream(stream_id), publish, { ...cause, env_id })
  return stream_id
}
const purged = (env_id: string, final = true) => purgeEnv({ ...deps, runtime: null }, { env_id, final })

const deleting = suite('deleteEnv')

deleting('ends the environment and its credentials, and is repeatable', async () => {
  const { env_id, caller: own } = await planted()
  const { api_key_id } = await createApiKey(deps, { env_id, name: 'k' }, caller)
  const issuer = issuerOf(env_id, api_key_id)
  await issueServiceKey(deps, { issuer, permissions: { 'run:*': ['read'] } }, own)
  await deleteEnv(deps, { env_id }, cause)
  await refusedWith('not_found', () => findEnv(deps, env_id))
  await refusedWith('not_found', () => findApiKey(deps, api_key_id))
  await refusedWith('not_found', () => createApiKey(deps, { env_id, name: 'k' }, caller))
  await views.settled('serviceKeys')
  assert.is(
    (await views.serviceKeys.find({ equal: { api_key_id }, sort: 'order', limit: 1, offset: 0 })).total,
    0,
  )
  const before = await node.store.head()
  await deleteEnv(deps, { env_id }, cause)
  assert.is(await node.store.head(), before)
})

deleting('refuses ids that no environment had', async () => {
  await refusedWith('not_found', () => deleteEnv(deps, { env_id: newId() }, cause))
  await refusedWith('not_found', () => deleteEnv(deps, { env_id: '../x' }, cause))
})

deleting('makes a key invalid that a slow request created meanwhile', async () => {
  const { env_id } = await planted()
  await deleteEnv(deps, { env_id }, cause)
  const api_key_id = newId()
  await node.aggregates.apiKeys.handle(
    streamOf.key(api_key_id),
    { type: 'CreateApiKey', api_key_id, env_id, name: 'late', mac: 'm', permissions: { '*:*': ['*'] } },
    { ...cause, env_id },
  )
  assert.is(await credentialNow(views, { kind: 'api-key', id: api_key_id }), undefined)
  await purged(env_id)
  await refusedWith('not_found', () => findApiKey(deps, api_key_id))
})

deleting('makes the name available for an environment with another id', async () => {
  const { env_id, slug } = await planted()
  await deleteEnv(deps, { env_id }, cause)
  const { env_id: second } = await createEnv(deps, { org: slug, name: 'dev' }, cause)
  assert.is.not(second, env_id)
  await refusedWith('conflict', () => createEnv(deps, { org: slug, name: 'dev' }, cause))
  await deleteEnv(deps, { env_id: second }, cause)
  const { env_id: third } = await createEnv(deps, { org: slug, name: 'dev' }, cause)
  assert.is(new Set([env_id, second, third]).size, 3)
})
deleting.run()

const purging = suite('purgeEnv')

purging('removes the bytes and documents of the environment, and of no other', async () => {
  const counts = async (env_id: string) => {
    await views.settled()
    const page = { limit: 1, offset: 0 }
    const of = async (name: 'runs' | 'events' | 'projects' | 'builds' | 'apiKeys', sort = 'order') =>
      (await views[name].find({ equal: { env_id }, sort, ...page })).total
    return {
      runs: await of('runs'),
      events: await of('events'),
      projects: await of('projects'),
      builds: await of('builds'),
      keys: await of('apiKeys'),
      files: (await views.files.find({ equal: { env_id }, sort: 'path', ...page })).total,
      totals: (await views.fileTotals.get(env_id)) === null ? 0 : 1,
      uploads: (await Array.fromAsync(views.uploads.scan())).filter((one) => one.env_id === env_id).length,
      payloads: (await Array.fromAsync(blobs.list(payloadsOf(env_id)))).length,
      dataKeys: (await Array.fromAsync(blobs.list(`keys/${env_id}/`))).length,
    }
  }
  const fill = async () => {
    const tenant = await planted()
    const { env_id, caller: own } = tenant
    await createApiKey(deps, { env_id, name: 'k' }, caller)
    const { project_id } = await plantBuild(node, tenant, { name: 'shop' })
    await createVariable(deps, { project: project_id, key: 'KEY', value: 'secret', description: '' }, own)
    const file = { content_type: 'text/plain', run_id: null }
    const content = () => Readable.from([Buffer.from('hello')])
    await storeFile(deps, { ...file, path: 'a.txt', rights: null, announced: null, content }, own.cause)
    await beginUpload(deps, { ...file, path: 'b.bin' }, own)
    const stream_id = await startRun(env_id, project_id)
    return { ...tenant, stream_id }
  }
  const [gone, other] = [await fill(), await fill()]
  const full = {
    runs: 1,
    events: 1,
    projects: 1,
    builds: 1,
    keys: 1,
    files: 1,
    totals: 1,
    uploads: 1,
    payloads: 1,
    dataKeys: 1,
  }
  assert.equal(await counts(gone.env_id), full)
  const { org_id } = await findOrg(deps, gone.slug)
  const usage = async () => {
    await views.settled()
    return usageOf(views, { org_id, limits: termsOf.free.limits, nowMs: clock.now() })
  }
  assert.is((await usage()).runs_this_period, 1)
  await deleteEnv(deps, { env_id: gone.env_id }, cause)
  await purged(gone.env_id, false)
  const none = Object.fromEntries(Object.keys(full).map((name) => [name, 0]))
  assert.equal(await counts(gone.env_id), none)
  assert.equal(await counts(other.env_id), full)
  const types = await node.typesIn(gone.stream_id)
  assert.is(types.at(-1), 'RunCancelled')
  assert.equal(await usage(), {
    runs_this_period: 1, // a deletion does not give the month's runs back
    file_storage_bytes: 0,
    team_members: 1,
    call_storage_bytes: 0,
    call_count: 0,
  })
  await purged(gone.env_id)
  assert.equal(await counts(gone.env_id), none)
})

purging('removes the parts of an upload that were joined and are no file yet', async () => {
  const { env_id, caller: own } = await planted()
  const { upload_id } = await beginUpload(deps, { path: 'a', content_type: 'text/plain', run_id: null }, own)
  const part = { upload_id, part_number: 1, size: 1, content: Readable.from([Buffer.from('x')]) }
  await putPart(deps, part, own.cause)
  const store = forwarding(node.store, {
    append: (stream, events, expected) =>
      events.some(({ event }) => event.type === 'FileStored')
        ? Promise.reject(new AppError('unavailable', 'The node is dead'))
        : node.store.append(stream, events, expected),
  })
  const dying = { ...deps, store, aggregates: openAggregates(store) }
  await refusedWith('unavailable', () => completeUpload(dying, { upload_id, rights: null }, own.cause))
  const content = () => Array.fromAsync(blobs.list(filesOf(env_id)))
  assert.is((await content()).length, 1)
  await deleteEnv(deps, { env_id }, cause)
  await purged(env_id)
  assert.equal(await content(), [])
})

purging('is repeatable after the final time', async () => {
  const { env_id } = await planted()
  await deleteEnv(deps, { env_id }, cause)
  await purged(env_id)
  const before = await node.store.head()
  await purged(env_id)
  assert.is(await node.store.head(), before)
})
purging.run()

const orgs = suite('deleteOrg')
orgs('is refused while the organization has environments, whose ids the error names', async () => {
  const { slug, env_id } = await planted()
  const { message } = await refusedWith('conflict', () => deleteOrg(deps, { org: slug }, cause))
  assert.match(message, env_id)
  assert.match(message, 'DELETE /operator/envs/{env_id}')
  assert.is((await findOrg(deps, slug)).slug, slug)
})
orgs('is repeatable, by slug and id, and the slug is available afterwards', async () => {
  const { slug, env_id } = await planted()
  const { org_id } = await findOrg(deps, slug)
  await deleteEnv(deps, { env_id }, cause)
  await purged(env_id)
  await deleteOrg(deps, { org: slug }, cause)
  await refusedWith('not_found', () => findOrg(deps, slug))
  const before = await node.store.head()
  await deleteOrg(deps, { org: slug }, cause)
  await deleteOrg(deps, { org: org_id }, cause)
  assert.is(await node.store.head(), before)
  await views.settled()
  assert.is(views.directory.env(env_id), undefined)
  assert.is(await views.envs.get(env_id), null)
  const second = await createOrg(deps, { slug, plan: 'pro' }, cause)
  assert.is.not(second.org_id, org_id)
  await refusedWith('conflict', () => createOrg(deps, { slug, plan: 'pro' }, cause))
  assert.is((await findOrg(deps, slug)).org_id, second.org_id)
  assert.is.not((await createEnv(deps, { org: slug, name: 'dev' }, cause)).env_id, env_id)
})
orgs('removes the days of its environments', async () => {
  const { slug, env_id } = await planted()
  const { org_id } = await findOrg(deps, slug)
  await startRun(env_id)
  const expire = { type: 'ExpireCalls', env_id, before: '2020-01-01' } as const
  await deps.aggregates.calls.handle(streamOf.calls(env_id), expire, { env_id, correlation_id: 'c' })
  await deleteEnv(deps, { env_id }, cause)
  await purged(env_id)
  const days = async () => {
    await views.settled()
    return (await views.callDays.find({ equal: { env_id }, sort: 'day', limit: 1, offset: 0 })).total
  }
  assert.is(await days(), 2, 'the day, and what has expired')
  await deleteOrg(deps, { org: org_id }, cause)
  assert.is(await days(), 0)
})
/** The commands on a store that runs `first` before it appends a fact of the type, and `then` after that. */
const interrupted = (
  type: 'EnvCreated' | 'OrgDeleted',
  { first, then }: { first?: () => Promise<unknown>; then?: () => never },
) => {
  const store = forwarding(node.store, {
    append: async (stream, events, expected) => {
      const isMeant = events.some(({ event }) => event.type === type)
      if (isMeant) await first?.()
      const appended = await node.store.append(stream, events, expected)
      if (isMeant) then?.()
      return appended
    },
  })
  return { ...deps, store, aggregates: openAggregates(store) }
}
const dies = () => {
  throw new AppError('unavailable', 'The node is dead')
}
/** An organization without environments, and the ids of its active ones. */
const emptyOrg = async () => {
  const slug = newSlug()
  const { org_id } = await createOrg(deps, { slug, plan: 'pro' }, cause)
  const active = async () => {
    await views.settled('envs')
    const equal = { org_id, active: true }
    const { items } = await views.envs.find({ equal, sort: 'order', limit: 10, offset: 0 })
    return items.map(({ env_id }) => env_id)
  }
  return { slug, org_id, active }
}
orgs('deletes an environment that was created since its environments were listed', async () => {
  const { slug, active } = await emptyOrg()
  const created: string[] = []
  const first = async () => {
    const { env_id } = await createEnv(deps, { org: slug, name: 'dev' }, cause)
    created.push(env_id)
    await createApiKey(deps, { env_id, name: 'k' }, caller)
  }
  await deleteOrg(interrupted('OrgDeleted', { first }), { org: slug }, cause)
  assert.is(created.length, 1)
  assert.equal(await active(), [])
  await views.settled('apiKeys')
  const equal = { env_id: created[0] ?? '' }
  assert.is((await views.apiKeys.find({ equal, sort: 'order', limit: 1, offset: 0 })).total, 0)
})
orgs('is completed by a repetition, or by the sweep, when its node died', async () => {
  for (const complete of [
    (slug: string) => deleteOrg(deps, { org: slug }, cause),
    () => deleteOrphanEnvs(deps),
  ]) {
    const { slug, active } = await emptyOrg()
    const first = () => createEnv(deps, { org: slug, name: 'dev' }, cause)
    await refusedWith('unavailable', () =>
      deleteOrg(interrupted('OrgDeleted', { first, then: dies }), { org: slug }, cause),
    )
    assert.is((await active()).length, 1)
    await complete(slug)
    assert.equal(await active(), [])
  }
})
orgs('refuses an environment whose creation began before', async () => {
  const { slug, org_id, active } = await emptyOrg()
  const first = () => deleteOrg(deps, { org: org_id }, cause)
  await refusedWith('not_found', () =>
    createEnv(interrupted('EnvCreated', { first }), { org: slug, name: 'dev' }, cause),
  )
  assert.equal(await active(), [])
})
orgs('ends an environment whose node died after it had created it', async () => {
  const [{ slug, org_id, active }, other] = [await emptyOrg(), await planted()]
  const first = () => deleteOrg(deps, { org: org_id }, cause)
  await refusedWith('unavailable', () =>
    createEnv(interrupted('EnvCreated', { first, then: dies }), { org: slug, name: 'dev' }, cause),
  )
  assert.is((await active()).length, 1)
  assert.is(await deleteOrphanEnvs(deps), 1)
  assert.equal(await active(), [])
  assert.is(await deleteOrphanEnvs(deps), 0)
  assert.ok((await findEnv(deps, other.env_id)).active)
})
orgs('refuses unknown organizations', async () => {
  await refusedWith('not_found', () => deleteOrg(deps, { org: newId() }, cause))
  await refusedWith('not_found', () => deleteOrg(deps, { org: 'unknown' }, cause))
})
orgs.run()

const first = suite('the first environment')
first('is not created again after its deletion', async () => {
  const token = newApiToken(newId())
  await ensureFirstTenant(deps, { token })
  await views.settled()
  const { org_id } = await findOrg(deps, 'local')
  const { items } = await views.envs.find({ equal: { org_id }, sort: 'order', limit: 1, offset: 0 })
  await deleteEnv(deps, { env_id: items[0]?.env_id ?? '' }, cause)
  assert.not.ok(await ensureFirstTenant(deps, { token }))
  assert.not.ok(await ensureFirstTenant(deps, { token: newApiToken(newId()) }))
  await views.settled()
  assert.equal([...views.directory.envsOf(org_id)], [])
})
first.after(() => node.close())
first.run()
