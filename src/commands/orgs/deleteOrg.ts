import { AppError, isAppError } from '../../errors.ts'
import type { Cause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import { isId } from '../../ids.ts'
import { everyDoc } from '../../loops/everyDoc.ts'
import type { CommandDeps } from '../deps.ts'
import { orgIdOf } from './createOrg.ts'
import { deleteEnv } from './deleteEnv.ts'
import { findOrg } from './findTenant.ts'

type Deps = Pick<CommandDeps, 'aggregates' | 'views' | 'authenticator'>

/** Names of environments in one error. */
const NAMED = 5

/**
 * Deletes an organization, given by slug or id. A repetition only completes it. Rejects with `not_found`, and with `conflict`
 * while it has environments. One that is created at the same time is deleted with it; after a crash, `deleteOrphanEnvs` does that.
 */
export const deleteOrg = async (deps: Deps, { org }: { org: string }, cause: Cause): Promise<void> => {
  const { aggregates, views } = deps
  const org_id = await idOf(deps, org)
  const stream = streamOf.org(org_id)
  await views.settled('envs')
  const env_ids: string[] = []
  const active: string[] = []
  for await (const env of everyDoc(views.envs, { id: 'env_id', equal: { org_id }, sort: 'order' })) {
    env_ids.push(env.env_id)
    if (env.active) active.push(`"${env.name}" (${env.env_id})`)
  }
  if (active.length > 0 && (await aggregates.orgs.read(stream, isActive))) {
    const named = active.slice(0, NAMED).join(', ') + (active.length > NAMED ? ', …' : '')
    throw new AppError(
      'conflict',
      `org: "${org}" has environments (${active.length}): ${named}; delete each with svc envs delete or DELETE /operator/envs/{env_id} first`,
    )
  }
  await aggregates.orgs.handle(stream, { type: 'DeleteOrg', org_id, env_ids }, cause)
  // From here on `createEnv` finds the organization deleted, so no environment follows these.
  await views.settled('envs')
  const late = { id: 'env_id', equal: { org_id, active: true }, sort: 'order' } as const
  for await (const { env_id } of everyDoc(views.envs, late)) await deleteEnv(deps, { env_id }, cause)
}

const isActive = ({ status }: { readonly status: string }): boolean => status === 'active'

/** Finds an organization that exists, or one that was deleted. */
const idOf = async (deps: Deps, org: string): Promise<string> => {
  try {
    return (await findOrg(deps, org)).org_id
  } catch (error) {
    const former = isId(org) ? org : orgIdOf(org)
    const isGone = await deps.aggregates.orgs.read(streamOf.org(former), ({ status }) => status === 'deleted')
    if (isAppError(error, 'not_found') && isGone) return former
    throw error
  }
}
