import { AppError } from '../../errors.ts'
import type { Cause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import { derivedId } from '../../ids.ts'
import type { CommandDeps } from '../deps.ts'
import { findOrg } from './findTenant.ts'
import { checkLabel } from './label.ts'

/** The id of an environment derives from its names, so the first fact of its stream reserves the name. */
export const envIdAt = (org_slug: string, name: string): string => derivedId('env', org_slug, name)

/**
 * Creates an environment of an organization, given by slug or id (DESIGN.md, Start and configure). `name` is a DNS
 * label. Resolves with its id. Rejects with `bad_request`, `not_found` or `conflict`.
 */
export const createEnv = async (
  deps: Pick<CommandDeps, 'aggregates' | 'views'>,
  { org, name }: { org: string; name: string },
  cause: Cause,
): Promise<{ env_id: string }> => {
  checkLabel('name', name)
  const { org_id, slug } = await findOrg(deps, org)
  const env_id = envIdAt(slug, name)
  const { events } = await deps.aggregates.envs.handle(
    streamOf.env(env_id),
    { type: 'CreateEnv', env_id, org_id, name },
    { ...cause, env_id },
  )
  if (events.length === 0) throw new AppError('conflict', `name: "${name}" is taken`)
  return { env_id }
}
