import { AppError } from '../../errors.ts'
import type { Cause } from '../../events/event.ts'
import type { Plan } from '../../events/org.ts'
import { streamOf } from '../../events/streams.ts'
import { derivedId } from '../../ids.ts'
import type { CommandDeps } from '../deps.ts'
import { checkLabel } from './label.ts'

/**
 * The id of an organization derives from its slug, so the first fact of its stream reserves the slug. `deleted`: the number
 * of deleted organizations that had the slug before.
 */
export const orgIdOf = (slug: string, deleted = 0): string =>
  deleted === 0 ? derivedId('org', slug) : derivedId('org', slug, deleted)

/**
 * Creates an organization (DESIGN.md, Start and configure). `slug` is a DNS label. With the `creation_id` of an earlier attempt,
 * it only completes that. Resolves with its id. Rejects with `bad_request`, or with `conflict` for a taken slug.
 */
export const createOrg = async (
  { aggregates: { orgs } }: Pick<CommandDeps, 'aggregates'>,
  {
    slug,
    name = slug,
    plan,
    creation_id,
  }: { slug: string; name?: string | undefined; plan: Plan; creation_id?: string },
  cause: Cause,
): Promise<{ org_id: string }> => {
  checkLabel('slug', slug)
  for (let deleted = 0; ; deleted++) {
    const org_id = orgIdOf(slug, deleted)
    const stream = streamOf.org(org_id)
    const created = { org_id, slug, name, plan, ...(creation_id !== undefined && { creation_id }) }
    const { events } = await orgs.handle(stream, { type: 'CreateOrg', ...created }, cause)
    if (events.length > 0) return { org_id }
    const found = await orgs.read(stream, (state) => ({ ...state }))
    if (creation_id !== undefined && found.creation_id === creation_id) return { org_id }
    if (found.status !== 'deleted') throw new AppError('conflict', `slug: "${slug}" is taken`)
  }
}
