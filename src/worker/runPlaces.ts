import { FairPlaces } from '../loops/fairPlaces.ts'
import { SLOTS_PER_FREE } from './capacity.ts'
import { isForChildren, type Line, orgOf } from './lines.ts'

/** A run from its claim to its terminal fact, as its place sees it. */
export interface Placed {
  readonly org_id: string
  readonly line: Line
  /** Its share of the memory for waiting runs: 1, and more for long evaluated code. */
  readonly weight: number
  readonly cancel: AbortController
  state: 'waiting' | 'started' | 'ended'
  /** Child runs that it waits for. */
  awaited: number
}

/**
 * The places of the runs that execute here. Organizations share the places for runs that a child has started, and the
 * memory for runs that wait (decision 0025). Child runs have as much of it for themselves, because the others may wait for them.
 */
export class RunPlaces {
  readonly #total: number
  readonly #slots: FairPlaces
  /** The weight of the waiting runs. */
  readonly #waiting = new Map<Line, number>()

  constructor(total: number) {
    this.#total = total
    this.#slots = new FairPlaces({ total, perFree: SLOTS_PER_FREE })
  }

  /** The organizations with waiting runs that are not child runs. */
  get waiting(): readonly string[] {
    return [...this.#waiting.keys()].filter((line) => !isForChildren(line)).map(orgOf)
  }

  /** The weight of the waiting runs of the line. */
  weightOf(line: Line): number {
    return this.#waiting.get(line) ?? 0
  }

  /** Whether one more run of the line may wait or begin here. */
  hasRoom(line: Line): boolean {
    return this.weightOf(line) < this.#mostWaiting(line) && this.#slots.hasPlaceFor(orgOf(line))
  }

  /** Adds weight to that of the waiting runs of the line. */
  wait(line: Line, weight: number): void {
    const sum = this.weightOf(line) + weight
    if (sum > 0) this.#waiting.set(line, sum)
    else this.#waiting.delete(line)
  }

  /** Takes a place for a waiting run, if one is free for it now. */
  tryTake(run: Placed): boolean {
    if (!this.#slots.tryTake(run.org_id)) return false
    this.#begin(run)
    return true
  }

  /** Takes a place for a waiting run, which may end meanwhile. */
  async take(run: Placed): Promise<void> {
    await this.#slots.take(run.org_id, run.cancel.signal)
    this.#begin(run)
  }

  /** Gives back the place of a run whose input could not be loaded: it waits again. */
  leave(run: Placed): void {
    if (run.state !== 'started') return
    run.state = 'waiting'
    this.#slots.giveBack(run.org_id)
    this.wait(run.line, run.weight)
  }

  /** A run that waits for its child run occupies no place, because the child may need it. */
  async whileAwaiting(run: Placed, ended: Promise<unknown>): Promise<unknown> {
    const { org_id } = run
    if (run.awaited++ === 0) this.#slots.giveBack(org_id)
    try {
      return await ended
    } finally {
      if (--run.awaited === 0 && run.state !== 'ended') this.#slots.retake(org_id)
    }
  }

  end(run: Placed): void {
    if (run.state === 'waiting') this.wait(run.line, -run.weight)
    else if (run.awaited === 0) this.#slots.giveBack(run.org_id)
    run.state = 'ended'
  }

  #begin(run: Placed): void {
    if (run.state === 'ended') return this.#slots.giveBack(run.org_id)
    run.state = 'started'
    this.wait(run.line, -run.weight)
  }

  /** Claimed runs of one line that may wait here. A dead worker loses them, so there are not many. */
  #mostWaiting(line: Line): number {
    let lines = 0
    for (const other of this.#waiting.keys()) if (isForChildren(other) === isForChildren(line)) lines++
    return Math.ceil(this.#total / Math.max(1, lines))
  }
}
