import { AppError } from '../errors.ts'
import type { EventOf } from '../events/index.ts'
import { type Decider, type Folded, foreign } from './decider.ts'
import { changesOf } from './changesOf.ts'

type Changeable = Pick<EventOf<'OrgChanged'>, 'name' | 'plan' | 'team_members'>
/** `creation_id`: of the request that created it; undefined in facts without one. */
type Org = { readonly creation_id?: string | undefined } & (
  | { readonly status: 'absent' | 'deleted' }
  | ({ readonly status: 'active' } & Required<Changeable>)
)

export type OrgCommand =
  | ({ readonly type: 'CreateOrg' } & Omit<EventOf<'OrgCreated'>, 'type'>)
  | { readonly type: 'ChangeOrg'; readonly org_id: string; readonly changes: Changeable }
  | ({ readonly type: 'DeleteOrg' } & Omit<EventOf<'OrgDeleted'>, 'type'>)

/** A new organization has one team member: its creator. */
const TEAM_OF_ONE = 1

type OrgEvent = EventOf<'OrgCreated' | 'OrgChanged' | 'OrgDeleted'>

/**
 * The rules of an organization. A second creation is a no-op, also after the deletion, so every node may create the first
 * organization. So is a second deletion.
 */
export const org: Decider<Org, OrgCommand, OrgEvent> = {
  initial: () => ({ status: 'absent' }),

  decide(command, org) {
    if (command.type === 'CreateOrg') {
      const { type: _, ...created } = command
      return org.status === 'absent' ? [{ type: 'OrgCreated', ...created }] : []
    }
    const { type, org_id } = command
    if (type === 'DeleteOrg' && org.status === 'deleted') return []
    if (org.status !== 'active') throw new AppError('not_found', 'No such organization')
    switch (type) {
      case 'ChangeOrg': {
        const changed = changesOf(org, command.changes)
        return changed ? [{ type: 'OrgChanged', org_id, ...changed }] : []
      }
      case 'DeleteOrg':
        return [{ type: 'OrgDeleted', org_id, env_ids: command.env_ids }]
      default:
        return type satisfies never
    }
  },

  evolve(org, { event }: Folded<OrgEvent>) {
    switch (event.type) {
      case 'OrgCreated':
        return {
          status: 'active',
          name: event.name,
          plan: event.plan,
          team_members: TEAM_OF_ONE,
          creation_id: event.creation_id,
        }
      case 'OrgChanged': {
        if (org.status !== 'active') return org
        const { type: _, org_id: __, ...changed } = event
        return { ...org, ...changed }
      }
      case 'OrgDeleted':
        return { status: 'deleted', creation_id: org.creation_id }
      default:
        return foreign(event)
    }
  },
}
