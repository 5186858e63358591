import { createHash } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import * as assert from 'uvu/assert'
import { clock } from '../../../src/clock.ts'
import { removeOrphanZips } from '../../../src/commands/builds/removeOrphanZips.ts'
import { publishEvent } from '../../../src/commands/events/publishEvent.ts'
import { removeOrphans } from '../../../src/commands/files/removeOrphans.ts'
import { importEnv } from '../../../src/commands/transfer/importEnv.ts'
import { removeOrphanPayloads } from '../../../src/commands/transfer/removeOrphanPayloads.ts'
import { RecordWriter } from '../../../src/commands/transfer/records.ts'
import { contentKey } from '../../../src/content/contentKey.ts'
import { payloadsOf } from '../../../src/content/payloads.ts'
import { newId } from '../../../src/ids.ts'
import { buildKey } from '../../../src/ports/runtime.ts'
import { suite } from '../../support/suite.ts'
import { openCommands } from '../openCommands.ts'
import { plantBuild, plantEnv } from '../plantEnv.ts'
import {
  cause,
  entriesOf,
  entryOf,
  eventOf,
  fileOf,
  fill,
  handle,
  importInto,
  transferKey,
} from './importHarness.ts'

const [source, fresh] = await Promise.all([openCommands(), openCommands()])
const mine = await plantEnv(source, 'acme')
await fill(source, mine)

/** An environment with a build whose zip is stored. */
const building = await plantEnv(source, 'building')
const zip = await (async () => {
  const bytes = Buffer.from('a zip')
  const hash = createHash('sha256').update(bytes).digest('hex')
  const build = await plantBuild(source, building, { name: 'zipped', hash, size: bytes.length })
  const key = buildKey(build)
  await source.blobs.put(key, bytes)
  return { bytes, hash, key }
})()

const transfer = suite('an import', { timeoutMs: 60_000 })

transfer(
  'whose content is removed as an orphan before its fact is stored is refused, and can be repeated',
  async () => {
    const entries = await entriesOf(source, mine)
    const { key } = eventOf(entries, 'FileStored') as { key: string }
    const swept = async function* () {
      const facts = entries.findIndex(({ line }) => 'event' in line)
      const writer = new RecordWriter()
      yield* fileOf(entries.slice(0, facts), writer)
      await removeOrphans(fresh.deps, { now: clock.now() + 365 * 24 * 3600_000 })
      assert.is(await fresh.blobs.head(key), null)
      yield* fileOf(entries.slice(facts), writer)
    }
    const error = await importEnv(fresh.deps, { content: swept(), transferKey }, cause).catch(String)
    assert.match(String(error), `The blob ${key} was removed during the import; repeat the import`)
    assert.is(await fresh.views.envs.get(mine.env_id), null, 'the environment was not created')
    await importInto(fresh, entries)
    assert.is((await buffer(await fresh.blobs.get(key))).toString(), 'content')
  },
)

transfer(
  'that succeeds during a sweep keeps the content that the sweep had found to be an orphan',
  async () => {
    const [node, entries] = [await openCommands(), await entriesOf(source, mine)]
    const { key } = eventOf(entries, 'FileStored') as { key: string }
    const orphan = contentKey('0', newId())
    await node.blobs.put(orphan, Buffer.from('removed first'))
    const [reached, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const remove = async (removed: string) => {
      reached.resolve()
      await goOn.promise
      return node.blobs.remove(removed)
    }
    const sweeping = { ...node.deps, blobs: { ...node.blobs, remove } }
    let sweep: Promise<number> | undefined
    const swept = async function* () {
      const facts = entries.findIndex(({ line }) => 'event' in line)
      const writer = new RecordWriter()
      yield* fileOf(entries.slice(0, facts), writer)
      assert.ok(await node.blobs.head(key))
      sweep = removeOrphans(sweeping, { now: clock.now() + 365 * 24 * 3600_000 })
      await reached.promise
      yield* fileOf(entries.slice(facts), writer)
    }
    await importEnv(node.deps, { content: swept(), transferKey }, cause)
    goOn.resolve()
    assert.is(await sweep, 1)
    assert.is(await node.blobs.head(orphan), null)
    assert.is((await buffer(await node.blobs.get(key))).toString(), 'content')
  },
)

for (const before of ['the first fact', 'BuildDeployed', 'the fact after BuildDeployed'] as const)
  transfer(
    `whose zip is removed as an orphan before ${before} arrives is refused, and can be repeated`,
    async () => {
      const [node, entries] = [await openCommands(), await entriesOf(source, building)]
      const first = entries.findIndex(({ line }) => 'event' in line)
      const deployed = entries.indexOf(entryOf(entries, 'BuildDeployed'))
      const at = {
        'the first fact': first,
        BuildDeployed: deployed,
        'the fact after BuildDeployed': deployed + 1,
      }[before]
      const suspects = new Set<string>()
      const swept = async function* () {
        const writer = new RecordWriter()
        yield* fileOf(entries.slice(0, at), writer)
        for (const removed of [0, 1]) assert.is(await removeOrphanZips(node.deps, suspects), removed)
        yield* fileOf(entries.slice(at), writer)
      }
      const error = await importEnv(node.deps, { content: swept(), transferKey }, cause).catch(String)
      assert.match(String(error), `The blob ${zip.key} was removed during the import; repeat the import`)
      await importInto(node, entries)
      await node.views.settled()
      const { env_id } = building
      const { items } = await node.views.builds.find({
        equal: { env_id },
        limit: 9,
        offset: 0,
        sort: 'order',
      })
      assert.equal(
        items.map(({ hash, storage_path }) => [hash, storage_path]),
        [[zip.hash, zip.key]],
      )
      assert.equal(await buffer(await node.blobs.get(zip.key)), zip.bytes)
    },
  )

/** An export with a large event, and the key of its payload. */
const largeEvent = async () => {
  const tenant = await plantEnv(source, `large-${newId().slice(-12)}`)
  const event = { event_type: 'large', event_data: 'x'.repeat(100_000), source: 'api' } as const
  await handle(source, await publishEvent(source.deps, event, tenant.caller))
  await source.views.settled()
  const entries = await entriesOf(source, tenant)
  const key = String(entries.find(({ line }) => 'blob' in line)?.line['blob'])
  assert.ok(key.startsWith(payloadsOf(tenant.env_id)), key)
  return { tenant, entries, key, isStored: async () => (await fresh.blobs.head(key)) !== null }
}

transfer('that was given up before it created its environment leaves no payloads for ever', async () => {
  const { entries, isStored } = await largeEvent()
  await importInto(fresh, entries.slice(0, -1)).catch(() => {})
  const suspects = new Set<string>()
  assert.is(await removeOrphanPayloads(fresh.deps, suspects), 0)
  assert.ok(await isStored())
  assert.is(await removeOrphanPayloads(fresh.deps, suspects), 1)
  assert.not(await isStored())
  await importInto(fresh, entries)
  for (const removed of [0, 0]) assert.is(await removeOrphanPayloads(fresh.deps, suspects), removed)
  assert.ok(await isStored())
})

transfer(
  'whose payload is removed before its environment is created is refused, and can be repeated',
  async () => {
    const { tenant, entries, key, isStored } = await largeEvent()
    const suspects = new Set<string>()
    const swept = async function* () {
      const writer = new RecordWriter()
      yield* fileOf(entries.slice(0, -1), writer)
      for (const removed of [0, 1]) assert.is(await removeOrphanPayloads(fresh.deps, suspects), removed)
      yield* fileOf(entries.slice(-1), writer)
    }
    const error = await importEnv(fresh.deps, { content: swept(), transferKey }, cause).catch(String)
    assert.match(String(error), `The blob ${key} was removed during the import; repeat the import`)
    assert.is(await fresh.views.envs.get(tenant.env_id), null, 'the environment was not created')
    await importInto(fresh, entries)
    assert.ok(await isStored())
  },
)
transfer.run()
