import { noVariable } from '../../events/contextKey.ts'
import { streamOf } from '../../events/streams.ts'
import { unsealVariable } from '../../secrets/contextVariables.ts'
import type { CommandDeps } from '../deps.ts'
import { sealedVariable } from './sealedVariable.ts'

/**
 * Reads the value of a context variable for a run of its project (SDK `context`; DESIGN.md, A build). It reads the log,
 * so it sees the last change of any node. Rejects with `not_found`, also when the data key was destroyed.
 */
export const readVariable = async (
  deps: Pick<CommandDeps, 'store' | 'aggregates' | 'keyring'>,
  { env_id, project_id, key }: { env_id: string; project_id: string; key: string },
): Promise<string> => {
  const revision = await deps.aggregates.contexts.read(
    streamOf.context(project_id),
    ({ variables }) => variables.get(key)?.revision,
  )
  if (revision === undefined) throw noVariable(key)
  const sealed = await sealedVariable(deps, project_id, revision)
  return unsealVariable(deps.keyring, { env_id, project_id }, key, sealed)
}
