import { activeProject } from '../../domain/project.ts'
import { streamOf } from '../../events/streams.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { projectFor } from '../projects/projectFor.ts'
import { discardBuild } from '../projects/discardBuild.ts'

/**
 * Deletes a build of a project (id or name) with its zip. Its runs that have not begun fail. Rejects with `not_found`, or
 * with `conflict` when the build is deployed.
 */
export const deleteBuild = async (
  deps: Pick<CommandDeps, 'aggregates' | 'views' | 'blobs' | 'runtime'>,
  { project, build_id }: { project: string; build_id: string },
  { cause }: Caller,
): Promise<void> => {
  const { aggregates, views } = deps
  await views.settled('projects')
  const { project_id } = projectFor(views.directory, cause.env_id, project)
  const stream = streamOf.project(project_id)
  const build = await aggregates.projects.read(stream, (state) => activeProject(state).builds.get(build_id))
  await aggregates.projects.handle(stream, { type: 'DeleteBuild', project_id, build_id }, cause)
  if (build) await discardBuild(deps, build)
}
