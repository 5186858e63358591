import type { FunctionChanges } from '../../domain/functionChanges.ts'
import type { CommandDeps } from '../deps.ts'
import { demandReadable } from '../projects/demandReadable.ts'
import { projectFor } from '../projects/projectFor.ts'
import { buildFor } from './buildFor.ts'
import { changesBetween } from './changesBetween.ts'
import { functionsOf } from './reserveWebhooks.ts'

/** The changes of a deployment, and the build that it would replace. */
export type BuildChanges = FunctionChanges & { readonly against: string | null }

/** Memory of a parsed list of functions for each byte of its JSON. */
const HEAP_PER_BYTE = 6

/**
 * Compares the functions of a build with those of the deployed build of its project (id or name): the `changes` of a
 * deployment now. `hold` takes the memory for a long list. Rejects with `not_found`.
 */
export const compareBuild = async (
  deps: Pick<CommandDeps, 'views' | 'payloads'>,
  { project, build_id }: { readonly project: string; readonly build_id: string },
  { env_id }: { readonly env_id: string },
  hold: <T>(bytes: number, work: () => Promise<T>) => Promise<T>,
): Promise<BuildChanges> => {
  await deps.views.settled('builds', 'projects')
  const found = projectFor(deps.views.directory, env_id, project)
  const { project_id, deployed } = found
  demandReadable(found, deployed)
  const build = await buildFor(deps, project_id, build_id)
  return hold(HEAP_PER_BYTE * (build.functions_ref?.size ?? 0), async () => {
    const functions = await functionsOf(deps, build)
    return {
      against: deployed?.build_id ?? null,
      ...(await changesBetween(deployed?.functions ?? [], functions)),
    }
  })
}
