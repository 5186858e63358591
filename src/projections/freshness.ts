import { type Instant, elapsedMs, instantNow } from '../clock.ts'
import { AppError } from '../errors.ts'
import { type Cursor, START } from '../events/event.ts'
import type { WritableCollection } from '../ports/readModels.ts'

/** The checkpoint is read again by a write so long after the last look, milliseconds. */
const LOOK_MS = 60_000
/** Documents are not sent if they may have been behind the checkpoint for this time, milliseconds. */
const LATE_MS = 10 * 60_000

/**
 * Refuses the writes of a projector that was stopped while another one brought the documents further: they would restore
 * documents whose removals are forgotten. A projector that is only a little behind another one continues.
 */
export class Freshness {
  readonly #now: () => Instant
  /** At this instant, the documents contained no events after the position. */
  #proven: Instant
  /** A later look, which found documents that were further. */
  #ahead: Look | null = null

  /** `begun`: before the checkpoint was read at which the projector begins. */
  constructor(begun: Instant, now = instantNow) {
    this.#proven = begun
    this.#now = now
  }

  get #ageMs(): number {
    const { monotonic, wall } = this.#now()
    return elapsedMs(this.#proven, monotonic, wall)
  }

  /** Looks at the checkpoint before a write, if it was not proven recently. `position`: of the events before those of the write. */
  async look(position: Cursor, checkpoint: () => Promise<Cursor | null>): Promise<void> {
    if (this.#ageMs >= LOOK_MS) {
      const at = this.#now()
      this.#note({ checkpoint: (await checkpoint()) ?? START, at }, position)
    }
    this.refuseLate()
  }

  /** Throws `unavailable` if the documents may have contained later events for too long. The projector begins again. */
  readonly refuseLate = (): void => {
    if (this.#ageMs < LATE_MS) return
    throw new AppError('unavailable', 'Another node may have continued the read model meanwhile')
  }

  #note(look: Look, position: Cursor): void {
    if (this.#ahead && this.#ahead.checkpoint <= position) {
      this.#proven = this.#ahead.at
      this.#ahead = null
    }
    if (look.checkpoint > position) this.#ahead ??= look
    else {
      this.#proven = look.at
      this.#ahead = null
    }
  }
}

/** The checkpoint that was found, and the instant before. */
interface Look {
  readonly checkpoint: Cursor
  readonly at: Instant
}

/** A collection of a server that receives no late writes. `position`: up to which the projector has folded the log. */
export const refusingLate = (
  collection: WritableCollection,
  { begun, position }: { readonly begun: Instant; readonly position: () => Cursor },
): WritableCollection => {
  const freshness = new Freshness(begun)
  const { refuseLate } = freshness
  let written = START
  return {
    ...collection,
    async write(writes, checkpoint, options) {
      const reached = position() > written ? position() : written
      await freshness.look(reached, () => collection.checkpoint())
      await collection.write(writes, checkpoint, { ...options, refuseLate })
      written = checkpoint
    },
  }
}
