import type { Caller, CommandDeps } from '../deps.ts'
import { projectFor } from './projectFor.ts'
import { removeProject } from './removeProject.ts'

/**
 * Deletes a project (id or name) with its builds, variables and data keys (SPEC.md, Projects). Its name and webhooks
 * become available. Rejects with `not_found`.
 */
export const deleteProject = async (
  deps: Pick<CommandDeps, 'aggregates' | 'views' | 'blobs' | 'runtime' | 'dataKeys'>,
  { project }: { project: string },
  { cause }: Caller,
): Promise<void> => {
  const { views } = deps
  await views.settled('projects')
  await removeProject(deps, projectFor(views.directory, cause.env_id, project), cause)
}
