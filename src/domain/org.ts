import { AppError } from '../errors.ts'
import type { EventOf } from '../events/index.ts'
import type { Decider } from './decider.ts'

type Changeable = Pick<EventOf<'OrgChanged'>, 'name' | 'plan' | 'team_members'>
type Org = { readonly status: 'absent' } | ({ readonly status: 'active' } & Required<Changeable>)

export type OrgCommand = { readonly type: 'ChangeOrg'; readonly org_id: string; readonly changes: Changeable }

/** As many as made the organization. */
const TEAM_OF_ONE = 1

/** The rules of an organization after it was created. */
export const org: Decider<Org, OrgCommand, EventOf<'OrgChanged'>> = {
  initial: () => ({ status: 'absent' }),

  decide({ org_id, changes }, org) {
    if (org.status === 'absent') throw new AppError('not_found', 'No such organization')
    const changed = Object.fromEntries(
      Object.entries(changes).filter(([field, value]) => org[field as keyof Changeable] !== value),
    ) as Changeable
    return Object.keys(changed).length > 0 ? [{ type: 'OrgChanged', org_id, ...changed }] : []
  },

  evolve(org, { event }) {
    if (event.type === 'OrgCreated') {
      return { status: 'active', name: event.name, plan: event.plan, team_members: TEAM_OF_ONE }
    }
    if (event.type !== 'OrgChanged' || org.status === 'absent') return org
    const { type: _, org_id: __, ...changed } = event
    return { ...org, ...changed }
  },
}
