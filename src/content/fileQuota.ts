/** The files that the plan of an organization allows its environments. */
export interface FileQuota {
  /** The most bytes of one file. */
  maxFileBytes(env_id: string): number
  /** Rejects with `quota_exceeded` when there is no room for this many more bytes; a negative number frees room. */
  checkRoom(env_id: string, bytes: number): Promise<void>
}
