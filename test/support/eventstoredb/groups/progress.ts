import { clock } from '../../../../src/clock.ts'
import type { Checkpoints } from './checkpoints.ts'
import type { Settings } from './definition.ts'

/**
 * The events that a group has taken from its source and not handled yet, by place. Stores checkpoints
 * according to the settings.
 */
export class Progress {
  readonly #checkpoints: Checkpoints
  readonly #settings: Settings
  /** Whether checkpoints are held back now. */
  readonly #held: () => boolean
  /** For each open event, in the order of the source: the place before it, and its number. */
  readonly #open = new Map<number, { readonly before: number; readonly sequence: number }>()
  #read: number
  #sequence = 0
  #storedSequence = 0
  #storedAt = clock.monotonic()
  #due: NodeJS.Timeout | undefined
  #stopped = false

  constructor(checkpoints: Checkpoints, settings: Settings, held: () => boolean) {
    this.#checkpoints = checkpoints
    this.#settings = settings
    this.#held = held
    this.#read = checkpoints.last ?? -1
  }

  /** The source was read up to this place without an event for the group. */
  pass(place: number): void {
    this.#read = place
  }

  take(place: number): void {
    this.#open.set(place, { before: this.#read, sequence: this.#sequence++ })
    this.#read = place
  }

  done(place: number): void {
    this.#open.delete(place)
    if (this.#unstored >= this.#settings.maxCheckpointCount) return this.#store()
    const waitMs = Math.max(0, this.#storedAt + this.#settings.checkpointAfterMs - clock.monotonic())
    this.#due ??= setTimeout(() => this.#storeInTime(), waitMs).unref()
  }

  /** Stores no more checkpoints. */
  stop(): void {
    this.#stopped = true
    clearTimeout(this.#due)
  }

  /** The number of events handled since the last checkpoint. */
  get #unstored(): number {
    const [lowest] = this.#open.values()
    return (lowest?.sequence ?? this.#sequence) - this.#storedSequence
  }

  #storeInTime(): void {
    this.#due = undefined
    if (this.#unstored >= this.#settings.minCheckpointCount) this.#store()
  }

  #store(): void {
    if (this.#stopped || this.#held() || this.#unstored === 0) return
    const [lowest] = this.#open.values()
    this.#storedSequence += this.#unstored
    this.#storedAt = clock.monotonic()
    this.#checkpoints.store(lowest?.before ?? this.#read)
  }
}
