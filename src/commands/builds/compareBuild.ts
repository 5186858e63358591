import { type FunctionChanges, functionChanges } from '../../domain/functionChanges.ts'
import type { CommandDeps } from '../deps.ts'
import { projectFor } from '../projects/projectFor.ts'
import { buildFor } from './buildFor.ts'
import { functionsOf } from './reserveWebhooks.ts'

/** The changes of a deployment, and the build that it would replace. */
export type BuildChanges = FunctionChanges & { readonly against: string | null }

/**
 * Compares the functions of a build with those of the deployed build of its project (id or name): the `changes` of a
 * deployment now. Rejects with `not_found`.
 */
export const compareBuild = async (
  deps: Pick<CommandDeps, 'views' | 'payloads'>,
  { project, build_id }: { readonly project: string; readonly build_id: string },
  { env_id }: { readonly env_id: string },
): Promise<BuildChanges> => {
  await deps.views.settled('builds', 'projects')
  const { project_id, deployed } = projectFor(deps.views.directory, env_id, project)
  const functions = await functionsOf(deps, await buildFor(deps, project_id, build_id))
  return { against: deployed?.build_id ?? null, ...functionChanges(deployed?.functions ?? [], functions) }
}
