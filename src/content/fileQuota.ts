/** The limits of an organization's plan on the files of its environments. */
export interface FileQuota {
  /** Maximum bytes of one file. */
  maxFileBytes(env_id: string): number
  /** Rejects with `quota_exceeded` when the plan has no room for `bytes` more; a negative number always passes. */
  checkRoom(env_id: string, bytes: number): Promise<void>
}
