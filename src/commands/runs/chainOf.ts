import { MOST_ATTEMPTS, retryIdOf } from '../../domain/run.ts'
import type { RunDoc } from '../../projections/runs.ts'
import type { CommandDeps } from '../deps.ts'

/** The attempts of a run, the first one first, by the id of any of them. Their ids are derived, so no index is needed. */
export const chainOf = async (
  { runs }: Pick<CommandDeps['views'], 'runs'>,
  run_id: string,
): Promise<readonly RunDoc[]> => {
  const known = await runs.get(run_id)
  const ids = [known?.origin_run_id ?? run_id]
  while (ids.length < MOST_ATTEMPTS) ids.push(retryIdOf(ids.at(-1) ?? ''))
  const found = await runs.getMany(ids)
  return ids.flatMap((id) => found.get(id) ?? [])
}
