import type { OrgUsage } from '../../../client/index.ts'

export interface Org {
  readonly org_id: string
  readonly slug: string
  readonly name: string
  readonly plan: OrgUsage['plan']['name']
  readonly team_members: number
  readonly created_at: string
}
