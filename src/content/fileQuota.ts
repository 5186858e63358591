/** Content of unknown size is reserved in steps. */
export const AHEAD_BYTES = 8 << 20

/** Bytes that are being stored and already count. */
export interface Reservation {
  /**
   * Reserves as much as the content needs so far, and up to `ahead` bytes more. Rejects with `quota_exceeded` when the
   * plan has no room for `bytes`.
   */
  cover(bytes: number, ahead?: number): Promise<void>
  /** Call this when the fact is stored, or when nothing was stored. */
  release(): void
}

/** Returns a reservation that covers nothing before the check has passed: a command that is refused stores no content. */
export const roomAfter = (check: () => Promise<void>, room: Reservation): Reservation => ({
  ...room,
  async cover(bytes, ahead) {
    await check()
    await room.cover(bytes, ahead)
  },
})

/** Stored bytes that new content will replace: they make room for it, but for one writer at a time. */
export interface Replaced {
  readonly id: string
  readonly bytes: number
}

/** The limits of an organization's plan on the files of its environments. */
export interface FileQuota {
  /** Maximum bytes of one file. */
  maxFileBytes(env_id: string): number
  /** Rejects with `quota_exceeded` when the plan has no room for `bytes` more; a negative number always passes. */
  checkRoom(env_id: string, bytes: number): Promise<void>
  /** Begins an upload in parts. Rejects with `quota_exceeded` when the plan allows no further one in progress. */
  admitUpload<T>(env_id: string, begin: () => Promise<T>): Promise<T>
  /** Begins a reservation of room, which covers nothing yet. */
  roomFor(env_id: string, replaced?: Replaced): Reservation
}
