import * as assert from 'uvu/assert'
import { deleteProject } from '../../src/commands/projects/deleteProject.ts'
import { newId } from '../../src/ids.ts'
import type { RunPlan } from '../../src/events/run.ts'
import { buildDocId } from '../../src/projections/builds.ts'
import { laneOf } from '../../src/worker/laneOf.ts'
import { callerOf, openCommands } from '../commands/openCommands.ts'
import { plantBuild, plantEnv } from '../commands/plantEnv.ts'
import { refusedWith } from '../commands/refusedWith.ts'
import { suite } from '../support/suite.ts'

type Directory = Awaited<ReturnType<typeof openCommands>>['views']['directory']

const lanes = suite('the build of a claimed run')

/** A deployed build, the plan of a run of it, and views that still know the build after its project was deleted. */
const planted = async () => {
  const node = await openCommands()
  const { env_id } = await plantEnv(node, `o-${newId().slice(-12)}`)
  const caller = callerOf(env_id)
  const { project_id, build_id } = await plantBuild(node, { env_id, caller }, { name: 'p' })
  const doc = await node.views.builds.get(buildDocId(project_id, build_id))
  const [run_id, stream_id] = [newId(), newId()]
  const target = { ns: 'f', var: 'f' }
  const plan: RunPlan = {
    run_id,
    stream_id,
    run_type: 'call',
    project_id,
    project_name: 'p',
    build_id,
    target,
    attempt: 1,
  }
  const builds = { ...node.views.builds, get: () => Promise.resolve(doc) }
  const laneIn = (directory: Directory, of: RunPlan = plan) =>
    laneOf({ store: node.store, views: { ...node.views, directory, builds } }, { env_id, org_id: 'o' }, of)
  return { node, env_id, doc, plan, laneIn, remove: () => deleteProject(node.deps, { project: 'p' }, caller) }
}

/** A directory that learns nothing until a reader waits for it. */
const behind = (directory: Directory, plan: RunPlan): Directory => {
  const known = directory.project(plan.project_id, plan.project_id) ?? directory.projectById(plan.project_id)
  let reached = false
  return {
    reach: async (cursor: string) => {
      await directory.reach(cursor)
      reached = true
    },
    project: (env_id: string, name: string) => (reached ? directory.project(env_id, name) : known),
  } as unknown as Directory
}

lanes('is none when its project was deleted, although the read models still contain the build', async () => {
  const { node, plan, laneIn, remove } = await planted()
  const { directory } = node.views
  assert.is((await laneIn(directory)).build_id, plan.build_id)
  await remove()
  await refusedWith('not_found', () => laneIn(directory))
  await node.close()
})

lanes('is none for a replay on a node that has not heard of the deletion', async () => {
  const { node, plan, laneIn, remove } = await planted()
  const late = behind(node.views.directory, plan)
  await remove()
  await refusedWith('not_found', () => laneIn(late, { ...plan, replay_of: newId() }))
  await node.close()
})

lanes('is found on a node that has not heard of the project', async () => {
  const { node, plan, laneIn } = await planted()
  const { directory } = node.views
  let reached = false
  const unaware = {
    reach: async () => void (reached = true),
    project: (env_id: string, name: string) => (reached ? directory.project(env_id, name) : undefined),
  } as unknown as Directory
  assert.is((await laneIn(unaware)).build_id, plan.build_id)
  await node.close()
})

lanes('is found although the read model of the builds is behind', async () => {
  const { node, env_id, doc, plan } = await planted()
  const former = { ...plan, build_id: newId() }
  let reached = false
  const views = {
    directory: node.views.directory,
    builds: { ...node.views.builds, get: () => Promise.resolve(reached ? doc : null) },
    reach: async () => void (reached = true),
  }
  assert.ok(await laneOf({ store: node.store, views }, { env_id, org_id: 'o' }, former))
  await node.close()
})

lanes.run()
