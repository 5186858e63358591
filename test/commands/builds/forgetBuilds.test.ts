import * as assert from 'uvu/assert'
import { clock } from '../../../src/clock.ts'
import { forgetBuilds } from '../../../src/commands/builds/forgetBuilds.ts'
import { deleteProject } from '../../../src/commands/projects/deleteProject.ts'
import { newId } from '../../../src/ids.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { suite } from '../../support/suite.ts'
import { openCommands } from '../openCommands.ts'
import { plantBuild, plantEnv } from '../plantEnv.ts'

const node = await openCommands()
const tenant = await plantEnv(node, `o-${newId().slice(-12)}`)
const HOUR = 3600_000

/** A node with these unpacked builds. */
const removedOf = async (builds: readonly { hash: string; usedAt: number }[]): Promise<string[]> => {
  const removed: string[] = []
  const runtime = {
    async forgetUnneeded(isNeeded: (build: { hash: string; usedAt: number }) => Promise<boolean>) {
      for (const build of builds) if (!(await isNeeded(build))) removed.push(build.hash)
      return { removed: removed.length, left: 0 }
    },
  }
  assert.is((await forgetBuilds({ views: node.views, runtime })).removed, removed.length)
  return removed
}
const uploaded = async (project_id: string, hash: string): Promise<void> => {
  await node.aggregates.projects.handle(
    streamOf.project(project_id),
    {
      type: 'UploadBuild',
      build: {
        build_id: newId(),
        project_id,
        hash,
        functions: [],
        size: 1,
        storage_path: hash,
        storage_backend: 'disk',
        build_type: 'release',
      },
    },
    tenant.caller.cause,
  )
}

const unpacked = suite('unpacked builds')
unpacked('stay while they are deployed, however long they were not used', async () => {
  const { hash } = await plantBuild(node, tenant, { name: 'deployed' })
  assert.equal(await removedOf([{ hash, usedAt: 0 }]), [])
})
unpacked('of no deployment are removed when they were not used for an hour', async () => {
  const { project_id } = await plantBuild(node, tenant, { name: 'other' })
  const [young, old] = ['b'.repeat(64), 'c'.repeat(64)]
  await uploaded(project_id, young)
  await uploaded(project_id, old)
  const builds = [
    { hash: young, usedAt: clock.now() },
    { hash: old, usedAt: clock.now() - HOUR - 1 },
  ]
  assert.equal(await removedOf(builds), [old])
})
unpacked('of a deleted project are removed at once', async () => {
  const { project_id } = await plantBuild(node, tenant, { name: 'gone' })
  const hash = 'd'.repeat(64)
  await uploaded(project_id, hash)
  assert.equal(await removedOf([{ hash, usedAt: clock.now() }]), [])
  await deleteProject(node.deps, { project: 'gone' }, tenant.caller)
  assert.equal(await removedOf([{ hash, usedAt: clock.now() }]), [hash])
})
unpacked.after(() => node.close())
unpacked.run()
