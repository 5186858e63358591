import { createHash } from 'node:crypto'
import { AppError } from '../errors.ts'
import type { RunPlan } from '../events/run.ts'
import type { LaneRef } from '../ports/runtime.ts'
import { buildDocId } from '../projections/builds.ts'
import type { Views } from '../projections/views.ts'

/** Returns the build of a run, with the rights that its process has. Rejects with `not_found` if it was deleted. */
export const laneOf = async (
  views: Pick<Views, 'directory' | 'builds'>,
  { env_id, org_id }: { readonly env_id: string; readonly org_id: string },
  plan: RunPlan,
): Promise<LaneRef> => {
  const { project_id, build_id, context } = plan
  const hash = await hashOf(views, env_id, plan)
  return { org_id, env_id, project_id, build_id, hash, rights: { context, evaluator: evaluatorOf(plan) } }
}

/** Reads the hash of a plan's build. The directory contains the hashes of deployed builds. */
const hashOf = async (
  views: Pick<Views, 'directory' | 'builds'>,
  env_id: string,
  plan: RunPlan,
): Promise<string> => {
  const project = views.directory.project(env_id, plan.project_id)
  for (const build of [project?.deployed, project?.live])
    if (build?.build_id === plan.build_id) return build.hash
  const build = await views.builds.get(buildDocId(plan.project_id, plan.build_id))
  if (build?.env_id !== env_id) throw new AppError('not_found', `Build ${plan.build_id} no longer exists`)
  return build.hash
}

/** Evaluations share a process only with others of the same credential with the same permissions. */
const evaluatorOf = ({ target, evaluator }: RunPlan): string | undefined => {
  if (!('code' in target)) return undefined
  return evaluator ? `${evaluator.id} ${digestOf(JSON.stringify(evaluator.permissions))}` : 'unknown'
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex')
