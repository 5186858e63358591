import type { Cursor } from '../events/event.ts'
import type { Projection } from './projection.ts'

export interface Filling {
  readonly signal: AbortSignal
  /** Called with each position up to which the read model is built. */
  readonly onPosition: (position: Cursor) => void
  /** Called with a text that names a fact of the log which this build cannot read, although no read model needs it. */
  readonly onUnreadable?: (reason: string) => void
  /** Called when it ends because the disk has only the reserve of the log left. Absent: it may use all of the disk. */
  readonly onNoRoom?: () => void
}

/** Builds a new read model from the log apart from this process. Does nothing where that does not help. */
export type Fill = (projection: Projection, filling: Filling) => Promise<void>
