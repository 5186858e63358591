import { AppError } from '../../errors.ts'
import type { Cause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import { derivedId } from '../../ids.ts'
import type { CommandDeps } from '../deps.ts'
import { findOrg } from './findTenant.ts'
import { checkLabel } from './label.ts'

/**
 * The id of an environment derives from its names, so the first fact of its stream reserves the name. `deleted`: the number
 * of deleted environments that had the names before.
 */
export const envIdAt = (org_slug: string, name: string, deleted = 0): string =>
  deleted === 0 ? derivedId('env', org_slug, name) : derivedId('env', org_slug, name, deleted)

/**
 * Creates an environment of an organization, given by slug or id (DESIGN.md, Start and configure). `name` is a DNS
 * label. With the `creation_id` of an earlier attempt, it only completes that. Resolves with its id. Rejects with
 * `bad_request`, `not_found` or `conflict`.
 */
export const createEnv = async (
  deps: Pick<CommandDeps, 'aggregates' | 'views'>,
  { org, name, creation_id }: { org: string; name: string; creation_id?: string },
  cause: Cause,
): Promise<{ env_id: string }> => {
  const { envs, orgs } = deps.aggregates
  checkLabel('name', name)
  const { org_id, slug } = await findOrg(deps, org)
  for (let deleted = 0; ; deleted++) {
    const env_id = envIdAt(slug, name, deleted)
    const stream = streamOf.env(env_id)
    const inEnv = { ...cause, env_id }
    const created = { env_id, org_id, name, ...(creation_id !== undefined && { creation_id }) }
    const { events } = await envs.handle(stream, { type: 'CreateEnv', ...created }, inEnv)
    const found = await envs.read(stream, ({ status, creation_id }) => ({ status, creation_id }))
    const isOwn = events.length > 0 || (creation_id !== undefined && found.creation_id === creation_id)
    if (!isOwn) {
      if (found.status === 'deleted') continue
      throw new AppError('conflict', `name: "${name}" is taken`)
    }
    if ((await orgs.read(streamOf.org(org_id), ({ status }) => status)) === 'active') return { env_id }
    // The organization was deleted meanwhile, and its deletion does not know this environment.
    await envs.handle(stream, { type: 'DeleteEnv', env_id }, inEnv)
    throw new AppError('not_found', `No organization "${org}"`)
  }
}
