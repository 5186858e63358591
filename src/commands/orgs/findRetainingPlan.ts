import type { Plan } from '../../events/org.ts'
import { streamOf } from '../../events/streams.ts'
import type { Directory } from '../../projections/directory.ts'
import type { CommandDeps } from '../deps.ts'

/** That with the shortest retention: nothing shows or counts what a deleted organization had. */
const PLAN_WITHOUT_ORG: Plan = 'free'

interface Deps {
  readonly aggregates: Pick<CommandDeps['aggregates'], 'envs'>
  readonly directory: Pick<Directory, 'env' | 'isImporting' | 'planOfDeleted'>
}

/**
 * Finds the plan by which the event store keeps the facts of an environment. They may come after its deletion, for example when
 * a log was restored. Undefined before an environment exists and during an import into it, which sets the retentions at its end.
 */
export const findRetainingPlan = async (
  { aggregates, directory }: Deps,
  env_id: string,
): Promise<Plan | undefined> => {
  const plan = directory.env(env_id)?.plan ?? directory.planOfDeleted(env_id)
  if (plan || directory.isImporting(env_id)) return plan
  const status = await aggregates.envs.read(streamOf.env(env_id), (env) => env.status)
  return status === 'deleted' ? PLAN_WITHOUT_ORG : undefined
}
