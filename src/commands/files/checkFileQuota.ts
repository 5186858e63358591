import type { FileQuota } from '../../content/fileQuota.ts'
import { AppError } from '../../errors.ts'
import type { CommandDeps } from '../deps.ts'
import { fileAt } from './fileAt.ts'

/** Throws `quota_exceeded` when the plan allows no file of `size` bytes (SPEC.md, Limits). */
export const checkFileSize = (quotas: FileQuota, env_id: string, size: number): void => {
  const most = quotas.maxFileBytes(env_id)
  if (size > most) throw beyondPlan(most, String(size))
}

/** The refusal of a file that is larger than the plan allows. */
export const beyondPlan = (most: number, got: string): AppError =>
  new AppError('quota_exceeded', `The plan allows at most ${most} bytes per file, got ${got}`)

/** Rejects with `quota_exceeded` when the plan does not allow a file of `size` bytes at the path (SPEC.md, Limits). */
export const checkFileQuota = async (
  deps: Pick<CommandDeps, 'aggregates'> & { readonly quotas: FileQuota },
  env_id: string,
  { path, size }: { path: string; size: number },
): Promise<void> => {
  checkFileSize(deps.quotas, env_id, size)
  const former = await fileAt(deps, env_id, path)
  await deps.quotas.checkRoom(env_id, size - (former?.size ?? 0))
}
