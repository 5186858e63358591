import * as assert from 'uvu/assert'
import { createVariable } from '../../../src/commands/context/createVariable.ts'
import { createProject } from '../../../src/commands/projects/createProject.ts'
import { exportEnv } from '../../../src/commands/transfer/exportEnv.ts'
import { importEnv } from '../../../src/commands/transfer/importEnv.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { newId } from '../../../src/ids.ts'
import { TransferKey } from '../../../src/secrets/transferKey.ts'
import { suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'
import { openCommands } from '../openCommands.ts'
import { plantBuild, plantEnv } from '../plantEnv.ts'

type Node = Awaited<ReturnType<typeof openCommands>>

const source = await openCommands()
const transferKey = new TransferKey(Buffer.alloc(32, 5))
const cause = { correlation_id: newId(), actor: 'operator' }
const mine = await plantEnv(source, 'acme')
const { env_id, caller } = mine
const { project_id } = await plantBuild(source, mine, { name: 'built' })

/** An export of the environment, record by record. */
const exported = async (node: Node = source): Promise<readonly Buffer[]> =>
  Array.fromAsync(await exportEnv(node.deps, { env_id, transferKey }))

async function* contentOf(
  records: readonly Buffer[],
  before: (n: number) => Promise<unknown> = () => Promise.resolve(),
): AsyncGenerator<Uint8Array> {
  for (const [n, record] of records.entries()) {
    await before(n)
    yield record
  }
}

const importInto = ({ deps }: Node, content: AsyncIterable<Uint8Array>) =>
  importEnv(deps, { content, transferKey }, cause)

const refusal = (node: Node, records: readonly Buffer[]): Promise<string> =>
  importInto(node, contentOf(records)).then(() => 'none', String)

const imports = ({ deps }: Node): Promise<string[]> =>
  Array.fromAsync(deps.store.read(streamOf.env(env_id)), ({ event }) => event.type)

/** Another installation, in which the environment exists and is empty. */
const openTarget = async (): Promise<Node> => {
  const target = await openCommands()
  await plantEnv(target, 'acme')
  return target
}

/** What the operator reads about the environment. */
const shownIn = async ({ views }: Node) => {
  await views.settled('envs')
  return (await views.envs.get(env_id))?.importing
}

const pause = suite('an import into an environment that exists')

pause('keeps everybody out until it is complete', async () => {
  const target = await openTarget()
  const { directory } = target.views
  const records = await exported()
  let seen = 0
  const last = async (n: number) => {
    if (n < records.length - 1) return
    await until(() => directory.isImporting(env_id))
    assert.is(directory.env(env_id), undefined)
    assert.is(await shownIn(target), true)
    seen++
  }
  assert.ok(directory.env(env_id))
  await importInto(target, contentOf(records, last))
  assert.is(seen, 1)
  assert.ok(directory.env(env_id))
  assert.not.ok(directory.isImporting(env_id))
  assert.is(await shownIn(target), undefined)
  assert.equal(await imports(target), ['EnvCreated', 'ImportBegun', 'EnvImported'])
})

pause('that failed keeps everybody out of what it left, until a repetition is complete', async () => {
  const target = await openTarget()
  const { directory } = target.views
  const records = await exported()
  assert.match(await refusal(target, records.slice(0, -1)), 'incomplete')
  assert.is(directory.env(env_id), undefined)
  assert.match(await exported(target).then(String, String), 'An import into the environment is not complete')
  assert.match(await refusal(target, records.slice(0, -1)), 'incomplete')
  await importInto(target, contentOf(records))
  assert.ok(directory.env(env_id))
  assert.equal(await imports(target), ['EnvCreated', ...Array(3).fill('ImportBegun'), 'EnvImported'])
})

pause('is not begun by a file that is damaged before its first fact', async () => {
  const target = await openTarget()
  assert.match(await refusal(target, (await exported()).slice(0, 1)), 'incomplete')
  assert.equal(await imports(target), ['EnvCreated'])
})

pause('is none if the file has no new fact', async () => {
  const target = await openTarget()
  const records = await exported()
  await importInto(target, contentOf(records))
  await importInto(target, contentOf(records))
  assert.match(await refusal(target, records.slice(0, -1)), 'incomplete')
  assert.equal(await imports(target), ['EnvCreated', 'ImportBegun', 'EnvImported'])
})

pause('of a later export that failed leaves an environment in use that was in use', async () => {
  const target = await openTarget()
  await importInto(target, contentOf(await exported()))
  await createProject(source.deps, { name: 'later' }, caller)
  await source.views.settled()
  const records = await exported()
  assert.match(await refusal(target, records.slice(0, -1)), 'incomplete')
  const { directory } = target.views
  await until(() => !directory.isImporting(env_id))
  const begun = ['EnvCreated', 'ImportBegun', 'EnvImported', 'ImportBegun', 'ImportAbandoned']
  assert.equal(await imports(target), begun)
  await importInto(target, contentOf(records))
  assert.ok(directory.env(env_id))
})

/** Begins an import whose connection hangs before the last record. */
const beginImport = async (node: Node, records: readonly Buffer[]) => {
  const [reached, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const last = async (n: number) => {
    if (n < records.length - 1) return
    reached.resolve()
    await goOn.promise
  }
  const result = importInto(node, contentOf(records, last)).then(() => 'none', String)
  await reached.promise
  return { result, goOn: goOn.resolve, cut: () => goOn.reject(new TypeError('terminated')) }
}

/** A later export, whose new facts are several appends. */
const exportedLater = async (): Promise<readonly Buffer[]> => {
  for (let n = 0; n < 20; n++) await createProject(source.deps, { name: newId() }, caller)
  await source.views.settled()
  return exported()
}

pause('is not ended by an earlier one that fails or is complete meanwhile', async () => {
  const target = await openTarget()
  const { directory } = target.views
  await importInto(target, contentOf(await exported()))
  const records = await exportedLater()
  const [failing, overtaken] = [await beginImport(target, records), await beginImport(target, records)]
  const later = await beginImport(target, records)
  const isPaused = async (): Promise<boolean> => {
    await directory.reach(await target.deps.store.head())
    return directory.isImporting(env_id)
  }
  failing.cut()
  assert.match(await failing.result, 'terminated')
  assert.ok(await isPaused())
  overtaken.goOn()
  assert.match(await overtaken.result, 'A later import of the environment has taken its place')
  assert.ok(await isPaused())
  later.goOn()
  assert.is(await later.result, 'none')
  assert.not.ok(await isPaused())
  const before = ['EnvCreated', 'ImportBegun', 'EnvImported']
  assert.equal(await imports(target), [...before, 'ImportBegun', 'ImportBegun', 'ImportBegun', 'EnvImported'])
})

pause(
  'that found no environment keeps everybody out of the one that another import has created',
  async () => {
    const target = await openCommands()
    const early = await exported()
    const later = await beginImport(target, await exportedLater())
    await importInto(target, contentOf(early))
    later.goOn()
    assert.is(await later.result, 'none')
    assert.equal(await imports(target), ['EnvCreated', 'EnvImported', 'ImportBegun', 'EnvImported'])
  },
)

pause('removes the keys that the source has erased since an earlier export', async () => {
  const target = await openTarget()
  await createVariable(source.deps, { project: project_id, key: 'KEY', value: 'secret' }, caller)
  await source.views.settled()
  await importInto(target, contentOf(await exported()))
  const keysIn = ({ blobs }: Node) => Array.fromAsync(blobs.list(`keys/${env_id}/`))
  assert.ok((await keysIn(target)).length > 0)
  await source.deps.dataKeys.destroy({ env_id }, { final: false }, { ...cause, env_id })
  await importInto(target, contentOf(await exported()))
  assert.equal(await keysIn(target), [])
})
pause.run()
