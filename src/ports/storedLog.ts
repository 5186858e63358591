/**
 * A row of the log as it is stored: consecutive events as one text that contains its checksum. It keeps its positions; its
 * text changes when expired events are removed.
 */
export interface StoredRow {
  /** The position of its first event; positions count from 1. */
  readonly first: number
  /** The number of its positions: of its events, and of those that were removed. */
  readonly count: number
  readonly text: string
}

/** A consumer group and the position up to which it has everything. */
export interface ConsumerPosition {
  readonly group: string
  readonly position: number
}

/**
 * The log up to a position, as it is stored. Until `release`, a scavenge leaves the newest fact of each stream up to the position,
 * or what was left of it. So a copy shows the end of each stream, and thereby that earlier facts of it were removed.
 */
export interface StoredLog {
  /** The last position. */
  readonly position: number
  /** The positions of consumer groups, none of them later than `position`. */
  readonly consumers: readonly ConsumerPosition[]
  /**
   * Returns complete rows up to `position`, from the one that contains the position after `after`; about `length`
   * characters. Throws an error that names the positions of damaged rows.
   */
  rowsAfter(after: number, length: number): readonly StoredRow[]
  release(): void
}

/** The gaps in the streams of a backup. A segment of it may contain facts from before the scavenge of later ones. */
export interface StreamGaps {
  /** Receives each row once, in the order of the log. */
  note(row: StoredRow): void
  /** Returns a row without the facts before the last gap of their stream: they are older than those that expired. */
  without(row: StoredRow): StoredRow
  /** Releases what only `note` needs. */
  close(): void
}
