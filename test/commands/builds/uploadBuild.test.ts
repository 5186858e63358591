import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { createProject } from '../../../src/commands/projects/createProject.ts'
import { deleteProject } from '../../../src/commands/projects/deleteProject.ts'
import { deleteBuild } from '../../../src/commands/builds/deleteBuild.ts'
import { removeOrphanZips } from '../../../src/commands/builds/removeOrphanZips.ts'
import { uploadBuild } from '../../../src/commands/builds/uploadBuild.ts'
import { openAggregates } from '../../../src/domain/aggregates.ts'
import { Payloads } from '../../../src/content/payloads.ts'
import { AppError, isAppError } from '../../../src/errors.ts'
import { payloadFields } from '../../../src/events/payload.ts'
import type { FunctionSpec } from '../../../src/events/project.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { derivedIdBeside, newId } from '../../../src/ids.ts'
import type { Blobs } from '../../../src/ports/blobs.ts'
import { buildKey, functionsKey, oldFunctionsKey } from '../../../src/ports/runtime.ts'
import { forwarding } from '../../support/forwarding.ts'
import { openFilesIn } from '../../support/openFiles.ts'
import { suite } from '../../support/suite.ts'
import { tempDir } from '../../support/tempDir.ts'
import { until } from '../../support/until.ts'
import { callerOf, openCommands } from '../openCommands.ts'
import { refusedWith } from '../refusedWith.ts'

const node = await openCommands()
const { deps } = node
const dir = tempDir()
const caller = callerOf(newId())
const { project_id } = await createProject(deps, { name: 'shop' }, caller)
const stream = streamOf.project(project_id)

/** A file in place of a zip with these functions. */
const fileOf = async (content: string, functions: readonly FunctionSpec[] = []) => {
  const hash = createHash('sha256').update(content).digest('hex')
  node.functionsOf.set(hash, functions)
  const file = join(dir, hash)
  await writeFile(file, content)
  return { file, size: content.length, hash, live: false }
}
/** So many functions that their list is in the blobs. */
const manyIn = (ns: string): FunctionSpec[] =>
  Array.from({ length: 2000 }, (_, i) => ({ ns, var: `function${i}_of_many` }))
const refusalOf = (error: unknown) => (isAppError(error) ? error.code : error)
const one = await fileOf('one')
const two = await fileOf('two')
const upload = (
  what: Partial<Parameters<typeof uploadBuild>[1]> = {},
  as: Parameters<typeof uploadBuild>[2] = caller,
) => uploadBuild(deps, { project: 'shop', ...one, ...what }, as)
const uploadsIn = async (build_id: string) =>
  (await Array.fromAsync(node.store.read(stream))).filter(
    ({ event }) => event.type === 'BuildUploaded' && event.build_id === build_id,
  )

const uploading = suite('uploading a build')

uploading('stores its zip and the functions that the sandbox found', async () => {
  const functions = [{ ns: 'a', var: 'b' }]
  const file = await fileOf('with functions', functions)
  const { build, existed } = await upload(file)
  assert.equal([existed, build.hash, build.functions], [false, file.hash, functions])
  assert.is((await node.blobs.head(build.storage_path))?.size, file.size)
})

const zips = async () => (await Array.fromAsync(node.blobs.list('builds/'))).map(({ key }) => key)
const deny = (inspect: typeof deps.runtime.inspect) => ({ ...deps, runtime: { ...deps.runtime, inspect } })

uploading('that does not load is refused, and stores nothing', async () => {
  const file = await fileOf('broken')
  node.functionsOf.delete(file.hash)
  const [before, stored] = [await node.store.head(), await zips()]
  await refusedWith('bad_request', () => upload(file))
  assert.is(await node.store.head(), before)
  assert.equal(await zips(), stored)
})

uploading('that does not load keeps the zip of an earlier build with the same bytes', async () => {
  const file = await fileOf('flaky')
  const { build } = await upload(file)
  node.functionsOf.delete(file.hash)
  await refusedWith('bad_request', () => upload(file))
  assert.ok(await node.blobs.head(build.storage_path))
})

uploading('that does not load keeps the zip of a build that was accepted meanwhile', async () => {
  const file = await fileOf('at once')
  const inspected = Promise.withResolvers<{ ok: false; message: string }>()
  const asked = Promise.withResolvers<void>()
  const slow = deny(() => (asked.resolve(), inspected.promise))
  const refused = refusedWith('bad_request', () => uploadBuild(slow, { project: 'shop', ...file }, caller))
  await asked.promise
  const { build } = await upload(file)
  inspected.resolve({ ok: false, message: 'main.js: took too long' })
  await refused
  assert.ok(await node.blobs.head(build.storage_path))
})

uploading('that is refused keeps the content of the same build, which was accepted meanwhile', async () => {
  const functions = manyIn('module')
  const file = await fileOf('accepted while the other one is removed', functions)
  const build_id = newId()
  const store = forwarding(node.store, {
    append: () => Promise.reject(new AppError('payload_too_large', 'refused')),
  })
  let accepted: string[] = []
  const blobs: Blobs = {
    ...node.blobs,
    async remove(key) {
      if (accepted.length === 0) {
        const { storage_path, functions_ref } = (await upload({ ...file, build_id })).build
        accepted = [storage_path, functions_ref?.key ?? '']
      }
      await node.blobs.remove(key)
    },
  }
  const refused = { ...deps, aggregates: openAggregates(store), blobs }
  await refusedWith('payload_too_large', () =>
    uploadBuild(refused, { project: 'shop', ...file, build_id }, caller),
  )
  for (const key of accepted) assert.ok(await node.blobs.head(key), key)
})

for (const [what, live] of [
  ['of the same type', false],
  ['of another type', true],
] as const)
  uploading(
    `keeps the list of the build ${what} that is accepted meanwhile with other functions`,
    async () => {
      const file = await fileOf(`found twice, ${what}`)
      const build_id = newId()
      const stored = await zips()
      let first: ReturnType<typeof upload> | undefined
      const blobs: Blobs = {
        ...node.blobs,
        async put(key, content) {
          node.functionsOf.set(file.hash, manyIn('accepted'))
          await (first ??= upload({ ...file, build_id, live }))
          return node.blobs.put(key, content)
        },
      }
      node.functionsOf.set(file.hash, manyIn('late'))
      const slow = { ...deps, blobs, payloads: new Payloads(blobs) }
      const late = uploadBuild(slow, { project: 'shop', ...file, build_id }, caller)
      assert.is(
        await late.then(({ functions }) => functions[0]?.ns, refusalOf),
        live ? 'conflict' : 'accepted',
      )
      const { storage_path, functions_ref } = (await first)?.build ?? {}
      assert.is(((await deps.payloads.load({ ref: functions_ref })) as FunctionSpec[])[0]?.ns, 'accepted')
      assert.equal(await zips(), [...stored, storage_path, functions_ref?.key].toSorted())
    },
  )

uploading('whose zip the blobs refuse unread leaves no file open', async () => {
  const blobs: Blobs = {
    ...node.blobs,
    async put() {
      await until(() => openFilesIn(dir).length > 0)
      throw new AppError('unavailable', 'refused')
    },
  }
  await refusedWith('unavailable', () => uploadBuild({ ...deps, blobs }, { project: 'shop', ...one }, caller))
  assert.equal(openFilesIn(dir), [])
})

uploading('that another organization makes with the same bytes has a zip of its own', async () => {
  const file = await fileOf('shared')
  const stranger = callerOf(newId())
  await createProject(deps, { name: 'shop' }, stranger)
  const [mine, theirs] = [await upload(file), await upload(file, stranger)]
  assert.is.not(mine.build.storage_path, theirs.build.storage_path)
})

uploading('whose project is deleted during the inspection leaves no zip', async () => {
  const file = await fileOf('too late')
  await createProject(deps, { name: 'short-lived' }, caller)
  const stored = await zips()
  const late = deny(async () => {
    await deleteProject(deps, { project: 'short-lived' }, caller)
    return { ok: true, functions: [] }
  })
  await refusedWith('not_found', () => uploadBuild(late, { project: 'short-lived', ...file }, caller))
  assert.equal(await zips(), stored)
})

uploading('six times at once under one build_id stores one build', async () => {
  const build_id = newId()
  const results = await Promise.all(Array.from({ length: 6 }, () => upload({ build_id })))
  assert.is(results.filter(({ existed }) => !existed).length, 1)
  assert.is((await uploadsIn(build_id)).length, 1)
  for (const { build } of results) assert.equal(build, results[0]?.build)
})

uploading('refuses other bytes under a build_id that exists', async () => {
  const build_id = newId()
  await upload({ build_id })
  await refusedWith('conflict', () => upload({ ...two, build_id }))
})

uploading('refuses a live build under the build_id of a release, and the reverse', async () => {
  const [release, live] = [newId(), newId()]
  await upload({ build_id: release })
  await upload({ build_id: live, live: true })
  await refusedWith('conflict', () => upload({ build_id: release, live: true }))
  await refusedWith('conflict', () => upload({ build_id: live }))
})

uploading('accepts one of two builds that arrive at once under one build_id', async () => {
  const build_id = newId()
  const results = await Promise.allSettled([upload({ build_id }), upload({ ...two, build_id })])
  assert.equal(results.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
  assert.is((await uploadsIn(build_id)).length, 1)
})

uploading('accepts a build_id that another project or environment uses (I7)', async () => {
  const build_id = newId()
  const elsewhere = callerOf(newId())
  await createProject(deps, { name: 'other' }, caller)
  await createProject(deps, { name: 'shop' }, elsewhere)
  const builds = [
    await upload({ build_id }),
    await upload({ ...two, build_id, project: 'other' }),
    await upload({ ...two, build_id }, elsewhere),
  ]
  assert.equal(
    builds.map(({ existed, build }) => [existed, build.hash]),
    [
      [false, one.hash],
      [false, two.hash],
      [false, two.hash],
    ],
  )
})

uploading('without a build_id stores a build each time', async () => {
  const [first, second] = [await upload(), await upload()]
  assert.is.not(first.build.build_id, second.build.build_id)
})

uploading('of a repeated request is one build, and not reported as existing', async () => {
  const key = newId()
  const again = { ...caller, newId: (what: string) => derivedIdBeside(key, what) }
  const [first, second] = [await upload({}, again), await upload({}, again)]
  assert.equal(second, first)
  assert.is((await uploadsIn(first.build.build_id)).length, 1)
})

uploading('keeps a list of functions over 64 KiB out of the log', async () => {
  const functions = manyIn('module')
  const { build } = await upload(await fileOf('many', functions))
  assert.is(build.functions, undefined)
  assert.equal(await deps.payloads.load({ ref: build.functions_ref }), functions)
})

uploading('to a project that is deleted, or of another environment, is refused', async () => {
  await createProject(deps, { name: 'gone' }, caller)
  await deleteProject(deps, { project: 'gone' }, caller)
  await refusedWith('not_found', () => upload({ project: 'gone' }))
  await refusedWith('not_found', () => upload({ project: project_id }, callerOf(newId())))
})

uploading(
  'counts as storage until the build or the project is deleted, and its zip is then removed',
  async () => {
    const owner = callerOf(newId())
    await createProject(deps, { name: 'counted' }, owner)
    const held = async () => {
      await node.views.settled('holdings')
      const equal = { env_id: owner.cause.env_id, kind: 'builds' }
      const { items } = await node.views.holdings.find({ equal, sort: 'holder', limit: 1, offset: 0 })
      return items[0]?.bytes ?? 0
    }
    const [first, second] = [
      await upload({ ...one, project: 'counted' }, owner),
      await upload({ ...two, project: 'counted' }, owner),
    ]
    assert.is(await held(), one.size + two.size)
    await deleteBuild(deps, { project: 'counted', build_id: first.build.build_id }, owner)
    assert.is(await held(), two.size)
    assert.is(await node.blobs.head(first.build.storage_path), null)
    assert.ok(await node.blobs.head(second.build.storage_path))
    await deleteProject(deps, { project: 'counted' }, owner)
    assert.is(await held(), 0)
    assert.is(await node.blobs.head(second.build.storage_path), null)
  },
)

uploading('with a long list of functions counts it, and removes it with the build', async () => {
  const owner = callerOf(newId())
  await createProject(deps, { name: 'long' }, owner)
  const functions = manyIn('module')
  const file = await fileOf('long list', functions)
  const { build } = await upload({ ...file, project: 'long' }, owner)
  const list = build.functions_ref
  if (!list) throw new Error('Expected the list to be in the blobs')
  await node.views.settled('holdings')
  const equal = { env_id: owner.cause.env_id, kind: 'builds' }
  const find = () => node.views.holdings.find({ equal, sort: 'holder', limit: 1, offset: 0 })
  assert.is((await find()).items[0]?.bytes, file.size + list.size)
  await deleteBuild(deps, { project: 'long', build_id: build.build_id }, owner)
  await node.views.settled('holdings')
  assert.is((await find()).items[0]?.bytes, 0)
  assert.is(await node.blobs.head(list.key), null)
})

uploading('of a sixth live build deletes the oldest with its zip', async () => {
  const owner = callerOf(newId())
  await createProject(deps, { name: 'live' }, owner)
  const paths: string[] = []
  for (let i = 0; i < 6; i++)
    paths.push((await upload({ project: 'live', live: true }, owner)).build.storage_path)
  const isStored = async (path: string) => (await node.blobs.head(path)) !== null
  const [oldest = '', ...others] = paths
  await until(async () => !(await isStored(oldest))) // nobody waits for its removal
  assert.equal(await Promise.all(others.map(isStored)), [true, true, true, true, true])
})

uploading('with more functions than the plan allows is refused, and nothing of it is kept', async () => {
  const stored = await zips()
  const full = { ...one, build_id: newId() }
  const most = node.quotas.countsOf(caller.cause.env_id).functionsPerBuild
  const many = Array.from({ length: most + 1 }, (_, i) => ({ ns: 'a', var: `f${i}` }))
  const crowded = deny(() => Promise.resolve({ ok: true, functions: many }))
  await refusedWith('quota_exceeded', () => uploadBuild(crowded, { project: 'shop', ...full }, caller))
  assert.equal(await zips(), stored)
})

uploading('whose node died before its fact leaves a zip that the second sweep removes', async () => {
  const orphan = `builds/${newId()}/${newId()}-${'a'.repeat(64)}.zip`
  await node.blobs.put(orphan, Buffer.from('x'))
  const stored = await zips()
  const suspects = new Set<string>()
  assert.is(await removeOrphanZips(deps, suspects), 0)
  assert.is(await removeOrphanZips(deps, suspects), 1)
  assert.equal(
    await zips(),
    stored.filter((key) => key !== orphan),
  )
})

uploading(
  'that found other functions than the accepted one leaves a list that the second sweep removes',
  async () => {
    const { build } = await upload(await fileOf('accepted', manyIn('accepted')))
    const stored = await zips()
    await node.blobs.put(functionsKey(build.storage_path, 'a'.repeat(64)), Buffer.from('[]'))
    const suspects = new Set<string>()
    assert.is(await removeOrphanZips(deps, suspects), 0)
    assert.is(await removeOrphanZips(deps, suspects), 1)
    assert.equal(await zips(), stored)
  },
)

uploading(
  'whose list was stored without a hash in its key finds it, and keeps it until its deletion',
  async () => {
    const ref = { project_id, build_id: newId(), hash: one.hash }
    const storage_path = buildKey(ref)
    const keys = [storage_path, oldFunctionsKey(storage_path)] as const
    await node.blobs.put(storage_path, Buffer.from('one'))
    const functions = payloadFields('functions', await deps.payloads.keepList(manyIn('old'), () => keys[1]))
    const stored = { size: 3, build_type: 'release', storage_path, storage_backend: 'disk' } as const
    const build = { ...ref, ...stored, ...functions }
    await deps.aggregates.projects.handle(stream, { type: 'UploadBuild', build }, caller.cause)
    const heads = () => Promise.all(keys.map(async (key) => (await node.blobs.head(key)) !== null))
    assert.is((await upload({ build_id: ref.build_id })).functions[0]?.ns, 'old')
    const suspects = new Set<string>()
    for (let sweep = 0; sweep < 2; sweep++) await removeOrphanZips(deps, suspects)
    assert.equal(await heads(), [true, true])
    await deleteBuild(deps, { project: 'shop', build_id: ref.build_id }, caller)
    assert.equal(await heads(), [false, false])
  },
)

uploading('keeps its zip when the read model lacks the build', async () => {
  const stored = await zips()
  const { builds } = node.views
  const lacking = { ...builds, get: async () => null, find: async () => ({ items: [], total: 0 }) }
  const incomplete = { ...deps, views: { ...node.views, builds: lacking } }
  const suspects = new Set<string>()
  assert.is(await removeOrphanZips(incomplete, suspects), 0)
  assert.equal([...suspects].toSorted(), stored.toSorted())
  assert.is(await removeOrphanZips(incomplete, suspects), 0)
  assert.equal(await zips(), stored)
})

uploading.after(() => node.close())
uploading.run()
