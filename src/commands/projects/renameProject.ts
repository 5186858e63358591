import { streamOf } from '../../events/streams.ts'
import type { ProjectDoc } from '../../projections/projects.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { projectDocFor, projectFor } from './projectFor.ts'
import { releaseProjectName, reserveProjectName } from './projectName.ts'

/** Renames a project, found by id or name; its old name becomes available. Rejects with `project_exists`. */
export const renameProject = async (
  deps: Pick<CommandDeps, 'aggregates' | 'views'>,
  { project, name }: { project: string; name: string },
  { cause }: Caller,
): Promise<ProjectDoc> => {
  await deps.views.settled('projects')
  const { project_id, name: before } = projectFor(deps.views.directory, cause.env_id, project)
  if (name !== before) {
    await reserveProjectName(deps, { name, project_id }, cause)
    await deps.aggregates.projects.handle(
      streamOf.project(project_id),
      { type: 'RenameProject', project_id, name },
      cause,
    )
    await releaseProjectName(deps, { name: before, project_id }, cause)
  }
  return projectDocFor(deps, project_id)
}
