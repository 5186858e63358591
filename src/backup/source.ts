import type { ConsumerPosition } from '../ports/storedLog.ts'
import type { RowFrame } from './rowFrames.ts'

/** A position of a running service that is being backed up. */
export interface BackupStart {
  readonly backup_id: string
  readonly log_id: string
  readonly position: number
  readonly master_key_id: string
  readonly canary: string
  readonly consumers: readonly ConsumerPosition[]
}

/** A blob as the service lists it. Size in bytes. */
export interface ListedBlob {
  readonly key: string
  readonly size: number
}

/** A running service, as the source of a backup. Its errors are `AppError`. */
export interface BackupSource {
  begin(): Promise<BackupStart>
  /** Rows from the one that contains the position after `after`, up to the end of the backup. */
  rows(backup_id: string, after: number): AsyncIterable<RowFrame>
  blobs(backup_id: string): AsyncIterable<ListedBlob>
  /** Rejects with `not_found` for a blob that does not exist. */
  blob(backup_id: string, key: string, from: number): AsyncIterable<Uint8Array>
  /** Rejects with `conflict` if the keys that were read do not belong to the position. */
  complete(backup_id: string): Promise<void>
  /** Gives the backup up. Never rejects. */
  end(backup_id: string): Promise<void>
}
