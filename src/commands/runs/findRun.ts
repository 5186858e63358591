import type { RunDoc } from '../../projections/runs.ts'
import type { CommandDeps } from '../deps.ts'

/**
 * Finds a run of the environment, among all that are stored at the time of the call; null for any other (I7). Throws
 * `unavailable` if the read model is too far behind the log.
 */
export const findRun = async (
  { views }: Pick<CommandDeps, 'views'>,
  run_id: unknown,
  env_id: string,
): Promise<RunDoc | null> => {
  if (typeof run_id !== 'string') return null
  await views.settled('runs')
  const run = await views.runs.get(run_id)
  return run?.env_id === env_id ? run : null
}
