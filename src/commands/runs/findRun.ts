import type { RunDoc } from '../../projections/runs.ts'
import type { CommandDeps } from '../deps.ts'

/** The run with an id, if the environment has it (I7); every run that was stored before is known. */
export const findRun = async (
  { store, views }: Pick<CommandDeps, 'store' | 'views'>,
  run_id: unknown,
  env_id: string,
): Promise<RunDoc | null> => {
  if (typeof run_id !== 'string') return null
  await views.reach(await store.head())
  const run = await views.runs.get(run_id)
  return run?.env_id === env_id ? run : null
}
