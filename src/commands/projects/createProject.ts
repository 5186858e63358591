import { streamOf } from '../../events/streams.ts'
import type { ProjectDoc } from '../../projections/projects.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { projectDocFor } from './projectFor.ts'
import { reserveProjectName } from './projectName.ts'

/** Creates a project with a name unique in the environment (SPEC.md, Projects). Rejects with `project_exists` or `quota_exceeded`. */
export const createProject = async (
  deps: Pick<CommandDeps, 'aggregates' | 'views' | 'quotas'>,
  { name }: { name: string },
  { cause, newId }: Caller,
): Promise<ProjectDoc> => {
  const project_id = newId('project')
  const { aggregates, views, quotas } = deps
  const { env_id } = cause
  await quotas.inTurn(env_id, async () => {
    await views.settled('projects')
    const org_id = views.directory.env(env_id)?.org_id
    const projects = org_id === undefined ? [] : [...views.directory.projectsOf(org_id)]
    if (!projects.some((project) => project.project_id === project_id))
      quotas.checkCount(env_id, 'projects', projects.length + 1)
    await reserveProjectName(deps, { name, project_id }, cause)
    await aggregates.projects.handle(
      streamOf.project(project_id),
      { type: 'CreateProject', project_id, name },
      cause,
      { fresh: true },
    )
  })
  return projectDocFor(deps, project_id)
}
