import { createHash } from 'node:crypto'
import { AppError } from '../errors.ts'
import type { RunPlan } from '../events/run.ts'
import type { LaneRef } from '../ports/runtime.ts'
import { buildDocId } from '../projections/builds.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { Views } from '../projections/views.ts'

type Deps = {
  readonly store: Pick<EventStore, 'head'>
  readonly views: Pick<Views, 'directory' | 'builds' | 'reach'>
}

/**
 * Returns the build of a run, with the rights that its process has. Rejects with `not_found` if the build or its project was
 * deleted: the code of a run does not begin after that, and a replay does not on any node.
 */
export const laneOf = async (
  deps: Deps,
  { env_id, org_id }: { readonly env_id: string; readonly org_id: string },
  plan: RunPlan,
): Promise<LaneRef> => {
  const { project_id, build_id, context } = plan
  const hash = await hashOf(deps, env_id, plan)
  return { org_id, env_id, project_id, build_id, hash, rights: { context, evaluator: evaluatorOf(plan) } }
}

/** Reads the hash of a plan's build. The directory contains the hashes of deployed builds. */
const hashOf = async ({ store, views }: Deps, env_id: string, plan: RunPlan): Promise<string> => {
  const { directory } = views
  const found = () => directory.project(env_id, plan.project_id)
  if (plan.replay_of !== undefined || !found()) await directory.reach(await store.head()) // this node may be behind
  const project = found()
  if (!project) throw new AppError('not_found', `Project ${plan.project_name} no longer exists`)
  for (const build of [project.deployed, project.live])
    if (build?.build_id === plan.build_id) return build.hash
  const stored = () => views.builds.get(buildDocId(plan.project_id, plan.build_id))
  let build = await stored()
  if (!build) {
    await views.reach(await store.head(), 'builds') // this node may be behind
    build = await stored()
  }
  if (build?.env_id !== env_id) throw new AppError('not_found', `Build ${plan.build_id} no longer exists`)
  return build.hash
}

/** Evaluations share a process only with others of the same credential with the same permissions. */
const evaluatorOf = ({ target, evaluator }: RunPlan): string | undefined => {
  if (!('code' in target)) return undefined
  return evaluator ? `${evaluator.id} ${digestOf(JSON.stringify(evaluator.permissions))}` : 'unknown'
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex')
