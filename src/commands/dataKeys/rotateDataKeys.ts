import { isAppError } from '../../errors.ts'
import type { Cause, EnvCause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import { everyDoc } from '../../loops/everyDoc.ts'
import { sealVariable, unsealVariable } from '../../secrets/contextVariables.ts'
import { isSealedWith } from '../../secrets/keyring.ts'
import type { CommandDeps } from '../deps.ts'
import { findEnv } from '../orgs/findTenant.ts'
import { sealedVariable } from '../context/sealedVariable.ts'

type Deps = Pick<CommandDeps, 'store' | 'aggregates' | 'views' | 'keyring' | 'dataKeys'>

/**
 * Creates new data keys for an environment and its projects (DESIGN.md, Event streams), and seals the context variables
 * again. Older secrets are unsealed with their former keys. Resolves with the id of the environment's new key and the
 * number of resealed variables.
 */
export const rotateDataKeys = async (
  deps: Deps,
  { env_id }: { env_id: string },
  cause: Cause,
): Promise<{ key_id: string; resealed: number }> => {
  await findEnv(deps, env_id)
  const inEnv = { ...cause, env_id }
  const key_id = await deps.dataKeys.rotate({ env_id }, inEnv)
  let resealed = 0
  for await (const project_id of projectsWithVariables(deps, env_id))
    resealed += await rotateProject(deps, project_id, inEnv)
  return { key_id, resealed }
}

async function* projectsWithVariables({ views }: Deps, env_id: string): AsyncGenerator<string> {
  await views.settled('projects', 'contextVariables')
  const projects = everyDoc(views.projects, { id: 'project_id', equal: { env_id }, sort: 'order' })
  for await (const { project_id } of projects) {
    const query = { equal: { project_id }, sort: 'order', limit: 0, offset: 0 }
    const { total } = await views.contextVariables.find(query)
    if (total > 0) yield project_id
  }
}

const rotateProject = async (deps: Deps, project_id: string, cause: EnvCause): Promise<number> => {
  const { aggregates, keyring, dataKeys } = deps
  const place = { env_id: cause.env_id, project_id }
  const current = await dataKeys.rotate(place, cause)
  const stream = streamOf.context(project_id)
  const variables = await aggregates.contexts.read(stream, ({ variables }) => [...variables])
  let resealed = 0
  for (const [key, { revision }] of variables) {
    const before = await sealedVariable(deps, project_id, revision)
    if (isSealedWith(current, before)) continue
    const value = await unsealVariable(keyring, place, key, before).catch(erasedAsNull)
    if (value === null) continue
    const sealed = await sealVariable(keyring, place, key, value)
    const { events } = await aggregates.contexts.handle(
      stream,
      { type: 'ResealVariable', project_id, key, sealed, revision },
      cause,
    )
    resealed += events.length
  }
  return resealed
}

/** Returns null for a variable whose data key was destroyed: it has no value to seal again. */
const erasedAsNull = (error: unknown): null => {
  if (isAppError(error, 'not_found')) return null
  throw error
}
