import { AppError } from '../errors.ts'
import type { EventOf } from '../events/index.ts'
import { type Decider, type Folded, foreign } from './decider.ts'
import { changesOf } from './changesOf.ts'

type Changeable = Pick<EventOf<'OrgChanged'>, 'name' | 'plan' | 'team_members'>
type Org = { readonly status: 'absent' } | ({ readonly status: 'active' } & Required<Changeable>)

export type OrgCommand =
  | ({ readonly type: 'CreateOrg' } & Omit<EventOf<'OrgCreated'>, 'type'>)
  | { readonly type: 'ChangeOrg'; readonly org_id: string; readonly changes: Changeable }

/** A new organization has one team member: its creator. */
const TEAM_OF_ONE = 1

type OrgEvent = EventOf<'OrgCreated' | 'OrgChanged'>

/** The rules of an organization. A second creation is a no-op, so every node may create the first organization. */
export const org: Decider<Org, OrgCommand, OrgEvent> = {
  initial: () => ({ status: 'absent' }),

  decide(command, org) {
    switch (command.type) {
      case 'CreateOrg': {
        const { type: _, ...created } = command
        return org.status === 'absent' ? [{ type: 'OrgCreated', ...created }] : []
      }
      case 'ChangeOrg': {
        if (org.status === 'absent') throw new AppError('not_found', 'No such organization')
        const changed = changesOf(org, command.changes)
        return changed ? [{ type: 'OrgChanged', org_id: command.org_id, ...changed }] : []
      }
      default:
        return command satisfies never
    }
  },

  evolve(org, { event }: Folded<OrgEvent>) {
    switch (event.type) {
      case 'OrgCreated':
        return { status: 'active', name: event.name, plan: event.plan, team_members: TEAM_OF_ONE }
      case 'OrgChanged': {
        if (org.status === 'absent') return org
        const { type: _, org_id: __, ...changed } = event
        return { ...org, ...changed }
      }
      default:
        return foreign(event)
    }
  },
}
