import type { Cause } from '../../events/event.ts'
import type { Plan } from '../../events/org.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'
import { findOrg } from './findTenant.ts'

/**
 * Changes the plan, name or team size of an organization, given by slug or id (DESIGN.md, Start and configure).
 * Resolves with its id. Rejects with `not_found`.
 */
export const changeOrg = async (
  deps: Pick<CommandDeps, 'aggregates' | 'views'>,
  { org, plan, name, team_members }: { org: string; plan?: Plan; name?: string; team_members?: number },
  cause: Cause,
): Promise<{ org_id: string }> => {
  const changes = {
    ...(plan !== undefined && { plan }),
    ...(name !== undefined && { name }),
    ...(team_members !== undefined && { team_members }),
  }
  const { org_id } = await findOrg(deps, org)
  await deps.aggregates.orgs.handle(streamOf.org(org_id), { type: 'ChangeOrg', org_id, changes }, cause)
  return { org_id }
}
