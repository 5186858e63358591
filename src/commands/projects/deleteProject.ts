import { buildsOf } from '../../domain/project.ts'
import { streamOf } from '../../events/streams.ts'
import { discardBuild } from './discardBuild.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { projectFor } from './projectFor.ts'

/**
 * Deletes a project (id or name) with its builds, variables and data keys (SPEC.md, Projects). Its name and webhooks
 * become available. Rejects with `not_found`.
 */
export const deleteProject = async (
  deps: Pick<CommandDeps, 'aggregates' | 'views' | 'blobs' | 'runtime' | 'dataKeys'>,
  { project }: { project: string },
  { cause }: Caller,
): Promise<void> => {
  const { aggregates, views, dataKeys } = deps
  const { env_id } = cause
  await views.settled('projects')
  const { project_id } = projectFor(views.directory, env_id, project)
  const builds = await aggregates.projects.read(streamOf.project(project_id), buildsOf)
  // The variables first: if this node dies in between, the project still exists and can be deleted again.
  await aggregates.contexts.handle(streamOf.context(project_id), { type: 'CloseContext', project_id }, cause)
  await dataKeys.destroy({ env_id, project_id }, { final: true }, cause)
  const stream = streamOf.project(project_id)
  await aggregates.projects.handle(stream, { type: 'DeleteProject', project_id }, cause)
  for (const build of builds.values()) await discardBuild(deps, build)
}
