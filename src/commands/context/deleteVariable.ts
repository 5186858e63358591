import type { EnvCause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'
import { projectFor } from '../projects/projectFor.ts'

/**
 * Deletes a context variable of a project, given by id or name (SPEC.md, Context variables). Rejects with `not_found`.
 */
export const deleteVariable = async (
  { aggregates, views }: Pick<CommandDeps, 'aggregates' | 'views'>,
  { project, key }: { project: string; key: string },
  cause: EnvCause,
): Promise<void> => {
  await views.settled('projects')
  const { project_id } = projectFor(views.directory, cause.env_id, project)
  await aggregates.contexts.handle(
    streamOf.context(project_id),
    { type: 'DeleteVariable', project_id, key },
    cause,
  )
}
