import type { EnvCause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import { sealVariable } from '../../secrets/contextVariables.ts'
import type { CommandDeps } from '../deps.ts'
import { projectFor } from '../projects/projectFor.ts'

/**
 * Changes the value of a context variable (SPEC.md, Context variables); running functions see it at their next read.
 * The description remains if none is given. Resolves with the project's id. Rejects with `bad_request` or `not_found`.
 */
export const updateVariable = async (
  { aggregates, views, keyring }: Pick<CommandDeps, 'aggregates' | 'views' | 'keyring'>,
  {
    project,
    key,
    value,
    description,
  }: { project: string; key: string; value: string; description?: string | undefined },
  cause: EnvCause,
): Promise<{ project_id: string }> => {
  await views.settled('projects')
  const { env_id, project_id } = projectFor(views.directory, cause.env_id, project)
  const sealed = await sealVariable(keyring, { env_id, project_id }, key, value)
  await aggregates.contexts.handle(
    streamOf.context(project_id),
    {
      type: 'UpdateVariable',
      project_id,
      key,
      sealed,
      ...(description !== undefined && { description }),
    },
    cause,
  )
  return { project_id }
}
