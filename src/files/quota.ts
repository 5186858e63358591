import { termsOf } from '../plans.ts'
import type { Directory } from '../projections/directory.ts'

/** What an environment may keep, by the plan of its organization. */
export interface Quota {
  /** Bytes one file may have. */
  maxFileBytes(env_id: string): number
  /** Rejects with `quota_exceeded` when there is no room for so many bytes more (fewer, when negative). */
  checkRoom(env_id: string, bytes: number): Promise<void>
}

/** Knows how large one file may be, and nothing of what is kept already. */
export const openFileQuota = (directory: Pick<Directory, 'env'>): Quota => ({
  maxFileBytes: (env_id) => termsOf[directory.env(env_id)?.plan ?? 'free'].maxFileBytes,
  checkRoom: () => Promise.resolve(),
})
