import { text } from 'node:stream/consumers'
import * as assert from 'uvu/assert'
import { reserveWebhooks } from '../../../src/commands/builds/reserveWebhooks.ts'
import { deleteFile } from '../../../src/commands/files/deleteFile.ts'
import { fileAt } from '../../../src/commands/files/fileAt.ts'
import { storeFile } from '../../../src/commands/files/storeFile.ts'
import { createProject } from '../../../src/commands/projects/createProject.ts'
import { deleteProject } from '../../../src/commands/projects/deleteProject.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { newId } from '../../../src/ids.ts'
import { sealMetadata, unsealMetadata } from '../../../src/secrets/serviceKeyMetadata.ts'
import { suite } from '../../support/suite.ts'
import { wantedFile } from '../files/wantedFile.ts'
import { openCommands } from '../openCommands.ts'
import { plantEnv } from '../plantEnv.ts'
import { type Entry, entriesOf, fill, importInto, type Node, type Tenant } from './importHarness.ts'

const open = async () => {
  const [source, target] = [await openCommands(), await openCommands()]
  const [mine, there] = [await plantEnv(source, 'acme'), await plantEnv(target, 'acme')]
  const project_id = await fill(source, mine)
  return { source, target, mine, there, project_id, env_id: mine.env_id }
}

const resultOf = (node: Node, entries: readonly Entry[]): Promise<string> =>
  importInto(node, entries).then(() => 'none', String)

const imports = ({ deps }: Node, env_id: string): Promise<string[]> =>
  Array.fromAsync(deps.store.read(streamOf.env(env_id)), ({ event }) => event.type)

const put = async (node: Node, { caller }: Tenant, content: string) => {
  const wanted = wantedFile('a.txt', async function* () {
    yield Buffer.from(content)
  })
  const file = await storeFile(node.deps, wanted, caller.cause)
  await node.views.settled()
  return file
}

const beside = suite('an import into an empty environment', { timeoutMs: 60_000 })

beside('keeps the data keys that the environment has', async () => {
  const { source, target, mine, env_id } = await open()
  const of = { env_id, service_key_id: newId() }
  const own = await sealMetadata(target.deps.keyring, of, { n: 1 })
  const theirs = await source.deps.keyring.seal(env_id, 'test', 'of the source')
  const opens = async () => {
    assert.equal(await unsealMetadata(target.deps.keyring, of, own), { n: 1 })
    return target.deps.keyring.unseal(env_id, 'test', theirs)
  }
  const current = () => target.aggregates.dataKeys.read(streamOf.dataKeys(env_id), (keys) => keys.current)
  const entries = await entriesOf(source, mine)
  assert.match(await resultOf(target, entries.slice(0, -1)), 'incomplete')
  for (const _ of ['first', 'repeated']) {
    assert.is(await resultOf(target, entries), 'none')
    assert.is(await opens(), 'of the source')
    assert.is(await current(), theirs.split('.')[1])
  }
  assert.equal(await imports(target, env_id), ['EnvCreated', 'ImportBegun', 'ImportBegun', 'EnvImported'])
  await source.deps.dataKeys.destroy({ env_id }, { final: false }, mine.caller.cause)
  assert.is(await resultOf(target, await entriesOf(source, mine)), 'none')
  assert.match(await opens().catch(String), 'The data key of this secret was destroyed')
  assert.is(await current(), own.split('.')[1])
  const later = await source.deps.keyring.seal(env_id, 'test', 'later')
  assert.is(await resultOf(target, await entriesOf(source, mine)), 'none')
  assert.is(await target.deps.keyring.unseal(env_id, 'test', later), 'later')
})

beside('takes the names that the environment had once', async () => {
  const { source, target, mine, there, project_id, env_id } = await open()
  const webhooks = [{ method: 'POST', service: 'bank', path: 'paid' }]
  await reserveWebhooks(source.deps, { webhooks, project_id, fence: 0 }, mine.caller.cause)
  const former = await createProject(target.deps, { name: 'shop' }, there.caller)
  await reserveWebhooks(
    target.deps,
    { webhooks, project_id: former.project_id, fence: 0 },
    there.caller.cause,
  )
  await target.views.settled()
  await deleteProject(target.deps, { project: 'shop' }, there.caller)
  await deleteFile(target.deps, await put(target, there, 'former'), there.caller.cause)
  await target.views.settled()

  const entries = await entriesOf(source, mine)
  assert.match(await resultOf(target, entries.slice(0, -1)), 'incomplete')
  for (const _ of ['first', 'repeated']) assert.is(await resultOf(target, entries), 'none')
  assert.equal(await imports(target, env_id), ['EnvCreated', 'ImportBegun', 'ImportBegun', 'EnvImported'])
  await target.views.settled()
  const holder = target.aggregates.webhooks.read(
    streamOf.webhook(env_id, webhooks[0]!),
    (state) => state.holder,
  )
  assert.is((await holder)?.project_id, project_id)
  const taken = await createProject(target.deps, { name: 'shop' }, there.caller).catch(String)
  assert.match(String(taken), 'taken')
  const content = async () => {
    const file = await fileAt(target.deps, env_id, 'a.txt')
    return file && text(await target.blobs.get(file.key))
  }
  assert.is(await content(), 'content')

  await put(source, mine, 'changed')
  assert.is(await resultOf(target, await entriesOf(source, mine)), 'none')
  assert.is(await content(), 'changed')
  await put(target, there, 'changed here')
  await put(source, mine, 'changed again')
  assert.match(await resultOf(target, await entriesOf(source, mine)), 'has other facts than the file')
  assert.is(await content(), 'changed here')
})
beside.run()
