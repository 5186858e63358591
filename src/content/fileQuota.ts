/** What an environment may keep, by the plan of its organization. */
export interface Quota {
  /** Bytes one file may have. */
  maxFileBytes(env_id: string): number
  /** Rejects with `quota_exceeded` when there is no room for so many bytes more (fewer, when negative). */
  checkRoom(env_id: string, bytes: number): Promise<void>
}
