import { streamOf } from '../../events/streams.ts'
import type { ProjectDoc } from '../../projections/projects.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { projectDocFor } from './projectFor.ts'
import { reserveProjectName } from './projectName.ts'

/** Creates a project with a name unique in the environment (SPEC.md, Projects). Rejects with `project_exists`. */
export const createProject = async (
  deps: Pick<CommandDeps, 'aggregates' | 'views'>,
  { name }: { name: string },
  { cause, newId }: Caller,
): Promise<ProjectDoc> => {
  const project_id = newId('project')
  await reserveProjectName(deps, { name, project_id }, cause)
  await deps.aggregates.projects.handle(
    streamOf.project(project_id),
    { type: 'CreateProject', project_id, name },
    cause,
    { fresh: true },
  )
  return projectDocFor(deps, project_id)
}
