import { clock } from '../clock.ts'
import type { Step } from './fairTurns.ts'

/** The time that background work takes in one turn of the event loop, milliseconds. */
const SLICE_MS = 1

/** Slices of other work between two of background work, so that this takes a fifth of the loop while others need it. */
const REST_SLICES = 4

/** A turn in which other work takes less than this is idle, milliseconds. */
const IDLE_MS = 0.25

/** Items between two looks at the clock. */
const ITEMS_PER_LOOK = 16

/**
 * Shares the event loop between requests and background work, such as read models. S1: all background work together
 * takes little more than `SLICE_MS` in a turn. S2: it continues in the order in which it began to wait. S3: if it may rest,
 * other work gets `REST_SLICES` times as long after each slice, unless the loop is idle or a reader waits for the result.
 */
export class Slices {
  readonly #waiting: (() => void)[] = []
  /** Monotonic milliseconds until which background work may continue in this turn. */
  #until = 0
  #isTurning = false
  #sliceMs = SLICE_MS
  #restSlices: number
  /** Readers that wait for the result. */
  #readers = 0
  /** Calls a step in the next turn. */
  #inNextTurn: (step: Step) => void = setImmediate

  /** `rests`: the work leaves time to other work (S3), and therefore ends later. */
  constructor({ rests = false }: { readonly rests?: boolean } = {}) {
    this.#restSlices = rests ? REST_SLICES : 0
  }

  /** For a thread without requests, in which no other work needs a rest. */
  lengthen(ms: number): void {
    this.#sliceMs = ms
    this.#restSlices = 0
  }

  /** Slices begin in turns of `turns`, which begin less other work beside them. */
  join(turns: { step(step: Step): void }): void {
    this.#inNextTurn = (step) => turns.step(step)
  }

  /** The milliseconds that are left in this turn. */
  get left(): number {
    return Math.max(0, this.#until - clock.monotonic())
  }

  /** Returns null if work may continue in this turn: a promise for each step would cost time. */
  take(): Promise<void> | null {
    if (!this.#isTurning) this.#turn()
    else if (this.#waiting.length > 0 || this.left === 0)
      return new Promise((resolve) => this.#waiting.push(resolve))
    return null
  }

  /** Calls `work` for each item. Other work continues between them. */
  async each<T>(items: Iterable<T>, work: (item: T) => void): Promise<void> {
    let n = 0
    for (const item of items) {
      const wait = n++ % ITEMS_PER_LOOK === 0 ? this.take() : null
      if (wait) await wait
      work(item)
    }
  }

  /** Completes work in steps. Other work continues between them. */
  async complete<T>(steps: Iterator<void, T>): Promise<T> {
    for (;;) {
      const { done, value } = steps.next()
      if (done) return value
      const wait = this.take()
      if (wait) await wait
    }
  }

  /** Background work does not rest while a reader waits for its result (S3). */
  async readerOf<T>(result: Promise<T>): Promise<T> {
    this.#readers++
    try {
      return await result
    } finally {
      this.#readers--
    }
  }

  #turn(): void {
    this.#isTurning = true
    this.#until = clock.monotonic() + this.#sliceMs
    this.#rest(this.#sliceMs * this.#restSlices, this.#until)
  }

  /** Lets other work take `milliseconds` of the turns that end after `since`. */
  #rest(milliseconds: number, since: number): void {
    this.#inNextTurn(() => {
      const now = clock.monotonic()
      const others = now - since
      const isDue = others < IDLE_MS || others >= milliseconds || this.#readers > 0
      if (!isDue) this.#rest(milliseconds - others, now)
      const isLong = isDue && this.#waiting.length > 0
      if (isDue) void this.#next()
      return isLong
    })
  }

  async #next(): Promise<void> {
    this.#isTurning = false
    if (this.#waiting.length === 0) return
    this.#turn()
    do {
      this.#waiting.shift()?.()
      await Promise.resolve() // the work continues now, until it waits again
    } while (this.#waiting.length > 0 && this.left > 0)
  }
}

/** Those of this process: there is one event loop. */
export const slices = new Slices({ rests: true })

/**
 * Those of requests that read many documents or facts. They have a budget of their own, so that the read models, for which
 * all requests wait, do not wait for them.
 */
export const reads = new Slices()

/** Those of requests that arrive. Node parses all that clients have sent since the last turn. */
export const arrivals = new Slices()

/** Those of large values: functions return them, and requests read them. */
export const values = new Slices()
