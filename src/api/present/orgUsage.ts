import { clock } from '../../clock.ts'
import type { Plan } from '../../events/org.ts'
import { termsOf } from '../../plans/plans.ts'
import { percentOf, periodOf, usageOf } from '../../plans/usage.ts'
import type { ApiDeps } from '../deps.ts'

interface Asked {
  readonly org_id: string
  readonly plan: Plan
  /** The environment of the caller; null for the operator. */
  readonly env_id: string | null
}

/**
 * Resolves with the usage of an organization against its plan, and with its open live streams on this node. The caller has
 * settled `usageModels`.
 */
export const presentOrgUsage = async (
  { views, openCounts }: Pick<ApiDeps, 'views' | 'openCounts'>,
  { org_id, plan, env_id }: Asked,
) => {
  const { limits, counts } = termsOf[plan]
  const nowMs = clock.now()
  const usage = await usageOf(views, { org_id, limits, nowMs })
  return {
    org_id,
    usage,
    limits,
    usage_percent: percentOf(usage, limits),
    plan: { name: plan, ...periodOf(nowMs) },
    live_streams: {
      in_env: env_id === null ? null : openCounts.inEnv(env_id, 'streams'),
      in_org: openCounts.inOrg(org_id, 'streams'),
      limit: counts.streams,
    },
  }
}
