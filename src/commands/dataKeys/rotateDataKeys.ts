import { AppError, isAppError } from '../../errors.ts'
import type { Cause, EnvCause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import { everyDoc } from '../../loops/everyDoc.ts'
import type { ProjectDoc } from '../../projections/projects.ts'
import { sealVariable, unsealVariable } from '../../secrets/contextVariables.ts'
import { isSealedWith } from '../../secrets/keyring.ts'
import { LostKey } from '../../secrets/wrappedKeys.ts'
import type { CommandDeps } from '../deps.ts'
import { findEnv } from '../orgs/findTenant.ts'
import { sealedVariable } from '../context/sealedVariable.ts'

type Deps = Pick<CommandDeps, 'store' | 'aggregates' | 'views' | 'keyring' | 'dataKeys'>

/** The projects that an error names. */
const NAMED = 100

/**
 * Creates new data keys for an environment and its projects (DESIGN.md, Event streams), and seals the context variables
 * again. Older secrets are unsealed with their former keys. Resolves with the id of the environment's new key and the
 * number of resealed variables. Rejects with `not_found`, and after all projects with `unavailable` if former keys are lost.
 */
export const rotateDataKeys = async (
  deps: Deps,
  { env_id }: { env_id: string },
  cause: Cause,
): Promise<{ key_id: string; resealed: number }> => {
  await findEnv(deps, env_id)
  const inEnv = { ...cause, env_id }
  const key_id = await deps.dataKeys.rotate({ env_id }, inEnv)
  const projects: Rotated[] = []
  for await (const project of projectsWithVariables(deps, env_id))
    projects.push(await rotateProject(deps, project, inEnv))
  checkNoneLost(projects)
  return { key_id, resealed: projects.reduce((sum, { resealed }) => sum + resealed, 0) }
}

type Project = Pick<ProjectDoc, 'project_id' | 'name'>

interface Rotated {
  readonly name: string
  readonly resealed: number
  /** The variables that no key opens, with the reason of each. */
  readonly lost: ReadonlyMap<string, LostKey>
}

const checkNoneLost = (projects: readonly Rotated[]): void => {
  const failed = projects.filter(({ lost }) => lost.size > 0)
  if (failed.length === 0) return
  const named = failed.slice(0, NAMED).map(({ name, lost }) => {
    const reasons = new Set([...lost.values()].map(({ message }) => message))
    return `${name}: ${[...lost.keys()].join(', ')} (${[...reasons].join('; ')})`
  })
  const more = failed.length > NAMED ? `; ${failed.length - NAMED} more projects` : ''
  throw new AppError(
    'unavailable',
    'All data keys were rotated, but the former key of some context variables is lost. Restore it or set the variables ' +
      `again, then repeat the rotation. ${named.join('; ')}${more}`,
  )
}

async function* projectsWithVariables({ views }: Deps, env_id: string): AsyncGenerator<Project> {
  await views.settled('projects', 'contextVariables')
  const projects = everyDoc(views.projects, { id: 'project_id', equal: { env_id }, sort: 'order' })
  for await (const { project_id, name } of projects) {
    const query = { equal: { project_id }, sort: 'order', limit: 0, offset: 0 }
    const { total } = await views.contextVariables.find(query)
    if (total > 0) yield { project_id, name }
  }
}

const rotateProject = async (
  deps: Deps,
  { project_id, name }: Project,
  cause: EnvCause,
): Promise<Rotated> => {
  const { aggregates, keyring, dataKeys } = deps
  const place = { env_id: cause.env_id, project_id }
  const current = await dataKeys.rotate(place, cause)
  const stream = streamOf.context(project_id)
  const variables = await aggregates.contexts.read(stream, ({ variables }) => [...variables])
  let resealed = 0
  const lost = new Map<string, LostKey>()
  for (const [key, { revision }] of variables) {
    const before = await sealedVariable(deps, project_id, revision)
    if (isSealedWith(current, before)) continue
    const value = await unsealVariable(keyring, place, key, before).catch(erasedOrLost)
    if (value instanceof LostKey) lost.set(key, value)
    if (value === null || value instanceof LostKey) continue
    const sealed = await sealVariable(keyring, place, key, value)
    const { events } = await aggregates.contexts.handle(
      stream,
      { type: 'ResealVariable', project_id, key, sealed, revision },
      cause,
    )
    resealed += events.length
  }
  return { name, resealed, lost }
}

/** Returns null for a variable whose data key was destroyed: it has no value to seal again. */
const erasedOrLost = (error: unknown): LostKey | null => {
  if (error instanceof LostKey) return error
  if (isAppError(error, 'not_found')) return null
  throw error
}
