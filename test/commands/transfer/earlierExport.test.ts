import { createHash } from 'node:crypto'
import { cpSync, readFileSync } from 'node:fs'
import { buffer } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import { exportEnv } from '../../../src/commands/transfer/exportEnv.ts'
import { importEnv } from '../../../src/commands/transfer/importEnv.ts'
import { payloadsOf } from '../../../src/content/payloads.ts'
import { buildKey, oldBuildKey, oldFunctionsKey } from '../../../src/ports/runtime.ts'
import { openSecrets } from '../../../src/process/secretsFile.ts'
import { readConfig } from '../../../src/process/config.ts'
import type { BuildDoc } from '../../../src/projections/builds.ts'
import { MasterKeys } from '../../../src/secrets/masterKeys.ts'
import { WrappedKeys } from '../../../src/secrets/wrappedKeys.ts'
import { installation } from '../../support/installation.ts'
import { openNode } from '../../support/openNode.ts'
import { plantStored, type StoredFact } from '../../support/plantStored.ts'
import { suite } from '../../support/suite.ts'
import { tempDir } from '../../support/tempDir.ts'
import { openCommands } from '../openCommands.ts'
import { cause, transferKey } from './importHarness.ts'

const fixture = fileURLToPath(new URL('../../fixtures/log-0.1.0', import.meta.url))
const ENV = '63c6d460-881b-50af-ae56-d91b64136f28'
const dir = tempDir()
cpSync(fixture, dir, { recursive: true })

/** Version 0.1.0 stored a long list of functions like a payload. */
const list = Buffer.from(JSON.stringify([{ ns: 'orders', var: 'listed' }]))
const sha256 = createHash('sha256').update(list).digest('hex')
const ref = { key: `payloads/${sha256.slice(0, 2)}/${sha256}.json`, size: list.length, sha256 }

const facts = readFileSync(`${fixture}/log.jsonl`, 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as StoredFact)
/** The facts, in which the deployed build has its functions in the blobs. */
const withList = facts.map((fact): StoredFact => {
  const { functions, ...event } = fact[4] as { functions?: object[]; build_type?: string }
  const isDeployed = event.build_type !== 'live' && functions?.length === 10
  return isDeployed ? (fact.with(4, { ...event, functions_ref: ref }) as unknown as StoredFact) : fact
})
plantStored(dir, withList)

const source = await openNode(dir)
await source.blobs.put(ref.key, list)
const { masterKey } = openSecrets(readConfig(installation(dir)))
const wrappedKeys = new WrappedKeys(source.blobs, new MasterKeys([masterKey]))
const exported = async (): Promise<readonly Buffer[]> =>
  Array.fromAsync(await exportEnv({ ...source, wrappedKeys }, { env_id: ENV, transferKey }))

const buildsIn = async ({ views }: Pick<typeof source, 'views'>): Promise<readonly BuildDoc[]> => {
  await views.settled()
  const { items } = await views.builds.find({ equal: { env_id: ENV }, sort: 'order', limit: 9, offset: 0 })
  return items
}

const earlier = suite('an export of an environment of version 0.1.0', { timeoutMs: 60_000 })

earlier('is imported with its builds and large payloads, as this version stores them', async () => {
  const target = await openCommands()
  const content = async function* () {
    yield* await exported()
  }
  await importEnv(target.deps, { content: content(), transferKey }, cause)
  const [before, after] = [await buildsIn(source), await buildsIn(target)]
  assert.is(before.length, 3)
  assert.equal(
    after.map(({ build_id, hash }) => [build_id, hash]),
    before.map(({ build_id, hash }) => [build_id, hash]),
  )
  for (const [n, build] of after.entries()) {
    assert.is(build.storage_path, buildKey(build))
    assert.is(before[n]?.storage_path, oldBuildKey(build.hash))
    const bytesIn = async ({ blobs }: Pick<typeof source, 'blobs'>, key: string) =>
      buffer(await blobs.get(key))
    assert.equal(await bytesIn(target, build.storage_path), await bytesIn(source, oldBuildKey(build.hash)))
  }
  const listed = after.find(({ functions_ref }) => functions_ref)
  assert.equal(listed?.functions_ref, { ...ref, key: oldFunctionsKey(listed?.storage_path ?? '') })
  const { deployed } = target.views.directory.projectById(listed?.project_id ?? '') ?? {}
  assert.equal(deployed?.functions, [{ ns: 'orders', var: 'listed' }])

  const { items } = await target.views.events.find({
    equal: { env_id: ENV, event_type: 'order:noted' },
    sort: 'order',
    limit: 9,
    offset: 0,
  })
  const large = items.find(({ event_data_ref }) => event_data_ref)?.event_data_ref
  assert.match(large?.key ?? '', `${payloadsOf(ENV)}2026-11-22/`)
  assert.equal(await target.payloads.load({ ref: large }), { text: 'a'.repeat(66_000) })
})

earlier('names the zip that is missing', async () => {
  const [build] = await buildsIn(source)
  await source.blobs.remove(build?.storage_path ?? '')
  const last = JSON.parse((await exported()).at(-1)?.toString() ?? '') as { error?: string }
  assert.match(last.error ?? '', `is missing in the blobs: restore ${build?.storage_path}, or`)
})

earlier.run()
