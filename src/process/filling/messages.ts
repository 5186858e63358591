import type { Version } from '../../ports/readModels.ts'
import type { SkippedFactDoc } from '../../projections/skippedFacts.ts'

/** A read model that a thread fills. */
export interface Member extends Version {
  /** The folder of its file. */
  readonly dir: string
  /** The bytes of the disk that it leaves to the log; null: it may use all. */
  readonly leaves: number | null
}

export interface ToThread {
  readonly dataDir: string
  readonly members: readonly Member[]
}

/** The name of a read model whose signal has aborted. */
export interface Stop {
  readonly stop: string
}

/**
 * About one read model: its position; or when its file is closed: that it is complete, without some facts; that it was stopped; or why
 * it was given up. `isFull`: it may continue when there is room.
 */
export type AboutMember = { readonly name: string } & (
  | { readonly position: string }
  | { readonly skipped: readonly SkippedFactDoc[] }
  | { readonly stopped: true }
  | { readonly failure: string; readonly isFull?: boolean }
)

/** `unreadable`: a text that names a fact which this build cannot read. */
export type FromThread = AboutMember | { readonly unreadable: string }
