import { setTimeout as delay } from 'node:timers/promises'
import { isOfFullDisk } from '../disk/fullDisk.ts'
import type { ReadModels } from '../ports/readModels.ts'

const MIB = 1 << 20
/** The bytes of the disk that a rebuild leaves to the log. */
export const RESERVED_BYTES = 128 * MIB
/** The bytes that must be added before a rebuild that was stopped continues: else it would stop again at once. */
const ADDED_BYTES = 32 * MIB

/** The pause between two looks at the room while a rebuild works, milliseconds: it may write 40 MB in a second. */
const LOOK_MS = 50

const mib = (bytes: number): string => `${Math.ceil(bytes / MIB)} MiB`

/** Stops a rebuild while the disk, which it shares with the log, has only the reserve left. */
export class RebuildRoom {
  readonly #free: () => number
  readonly #lookMs: number
  #least = RESERVED_BYTES
  #stop = new AbortController()
  #lacking: string | null = null

  /** Null if the read models do not share the disk of the log. */
  static of({ freeBytes }: Pick<ReadModels, 'freeBytes'>, lookMs: number): RebuildRoom | null {
    return freeBytes ? new RebuildRoom(freeBytes, lookMs) : null
  }

  private constructor(free: () => number, lookMs: number) {
    this.#free = free
    this.#lookMs = lookMs
  }

  /** Why the rebuild waits; null while it works. */
  get lacking(): string | null {
    return this.#lacking
  }

  /** Ends the present work. It begins again when there is more room than now. */
  stop(): void {
    this.#least = Math.max(this.#free(), RESERVED_BYTES) + ADDED_BYTES
    this.#stop.abort()
  }

  /** Waits for room, then runs work until it ends, the signal aborts or the room is used. */
  async run(work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    await this.#wait(signal)
    if (signal.aborted) return
    this.#stop = new AbortController()
    const ended = new AbortController()
    const watching = this.#watch(ended.signal)
    try {
      await work(AbortSignal.any([signal, this.#stop.signal]))
    } catch (error) {
      if (!isOfFullDisk(error)) throw error
      this.stop()
    } finally {
      ended.abort()
      await watching
    }
  }

  async #wait(signal: AbortSignal): Promise<void> {
    for (let free = this.#free(); free < this.#least && !signal.aborted; free = this.#free()) {
      this.#lacking = `The disk has ${mib(free)} free; the rebuild waits for ${mib(this.#least)} and leaves ${mib(RESERVED_BYTES)} to the log. Free some space`
      await delay(this.#lookMs, undefined, { signal }).catch(() => {})
    }
    this.#lacking = null
  }

  async #watch(ended: AbortSignal): Promise<void> {
    while (!ended.aborted && !this.#stop.signal.aborted) {
      if (this.#free() < RESERVED_BYTES) this.stop()
      else await delay(Math.min(LOOK_MS, this.#lookMs), undefined, { signal: ended }).catch(() => {})
    }
  }
}
