import { AppError } from '../../errors.ts'
import type { Cause } from '../../events/event.ts'
import type { Plan } from '../../events/org.ts'
import { streamOf } from '../../events/streams.ts'
import { derivedId } from '../../ids.ts'
import type { CommandDeps } from '../deps.ts'
import { checkLabel } from './label.ts'

/** The id of an organization derives from its slug, so the first fact of its stream reserves the slug. */
export const orgIdOf = (slug: string): string => derivedId('org', slug)

/**
 * Creates an organization (DESIGN.md, Start and configure). `slug` is a DNS label. Resolves with its id. Rejects with
 * `bad_request`, or with `conflict` for a taken slug.
 */
export const createOrg = async (
  { aggregates }: Pick<CommandDeps, 'aggregates'>,
  { slug, name = slug, plan }: { slug: string; name?: string | undefined; plan: Plan },
  cause: Cause,
): Promise<{ org_id: string }> => {
  checkLabel('slug', slug)
  const org_id = orgIdOf(slug)
  const { events } = await aggregates.orgs.handle(
    streamOf.org(org_id),
    { type: 'CreateOrg', org_id, slug, name, plan },
    cause,
  )
  if (events.length === 0) throw new AppError('conflict', `slug: "${slug}" is taken`)
  return { org_id }
}
