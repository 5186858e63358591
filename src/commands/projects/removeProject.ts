import { buildsOf } from '../../domain/project.ts'
import type { EnvCause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'
import { discardBuild, type DiscardDeps } from './discardBuild.ts'

/**
 * Deletes a project by its id, with its builds, variables and data keys. Its name and webhooks become available. Rejects
 * with `not_found` when it does not exist.
 */
export const removeProject = async (
  deps: Pick<CommandDeps, 'aggregates' | 'dataKeys'> & DiscardDeps,
  { project_id }: { project_id: string },
  cause: EnvCause,
): Promise<void> => {
  const { aggregates, dataKeys } = deps
  const stream = streamOf.project(project_id)
  const builds = await aggregates.projects.read(stream, (state) => new Map(buildsOf(state)))
  // The variables first: if this node dies in between, the project still exists and can be deleted again.
  await aggregates.contexts.handle(streamOf.context(project_id), { type: 'CloseContext', project_id }, cause)
  await dataKeys.destroy({ env_id: cause.env_id, project_id }, { final: true }, cause)
  await aggregates.projects.handle(stream, { type: 'DeleteProject', project_id }, cause)
  for (const build of builds.values()) await discardBuild(deps, build)
}
