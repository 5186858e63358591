import { activeProject } from '../../domain/project.ts'
import { streamOf } from '../../events/streams.ts'
import type { ProjectDoc } from '../../projections/projects.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { projectDocFor, projectFor } from './projectFor.ts'
import { reserveProjectName } from './projectName.ts'
import { retryLate } from './retryLate.ts'

/**
 * Renames a project (id or name); its old name becomes available (SPEC.md, Projects). Rejects with `bad_request`,
 * `not_found` or `project_exists`.
 */
export const renameProject = async (
  deps: Pick<CommandDeps, 'aggregates' | 'views'>,
  { project, name }: { project: string; name: string },
  { cause }: Caller,
): Promise<ProjectDoc> => {
  await deps.views.settled('projects')
  const { project_id, name: before } = projectFor(deps.views.directory, cause.env_id, project)
  if (name !== before) {
    const { projects } = deps.aggregates
    const stream = streamOf.project(project_id)
    await retryLate(async () => {
      const fence = await projects.read(stream, (state) => activeProject(state).nameFence)
      await reserveProjectName(deps, { name, project_id, fence }, cause)
      await projects.handle(stream, { type: 'RenameProject', project_id, name, fence }, cause)
    })
  }
  return projectDocFor(deps, project_id)
}
