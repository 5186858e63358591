import { checkContextKey } from '../../events/contextKey.ts'
import { streamOf } from '../../events/streams.ts'
import { sealVariable } from '../../secrets/contextVariables.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { projectFor } from '../projects/projectFor.ts'

/**
 * Creates a context variable of a project, given by id or name (SPEC.md, Context variables). Resolves with the
 * project's id. Rejects with `bad_request`, `not_found`, `quota_exceeded` or `context_exists`; no error contains the value (I6).
 */
export const createVariable = async (
  { aggregates, views, keyring, quotas }: Pick<CommandDeps, 'aggregates' | 'views' | 'keyring' | 'quotas'>,
  {
    project,
    key,
    value,
    description = '',
  }: { project: string; key: string; value: string; description?: string | undefined },
  { cause, newId }: Caller,
): Promise<{ project_id: string }> => {
  checkContextKey(key)
  await views.settled('projects')
  const { env_id, project_id } = projectFor(views.directory, cause.env_id, project)
  const sealed = await sealVariable(keyring, { env_id, project_id }, key, value)
  const variable_id = newId('context variable')
  await aggregates.contexts.handle(
    streamOf.context(project_id),
    {
      type: 'CreateVariable',
      variable_id,
      project_id,
      key,
      description,
      sealed,
      most: quotas.countsOf(env_id).variablesPerProject,
    },
    cause,
  )
  return { project_id }
}
