import { FairPlaces } from '../loops/fairPlaces.ts'
import { SLOTS_PER_FREE } from './capacity.ts'

/** A run from its claim to its terminal fact, as its place sees it. */
export interface Placed {
  readonly org_id: string
  /** Its share of the memory for waiting runs: 1, and more for long evaluated code. */
  readonly weight: number
  readonly cancel: AbortController
  state: 'waiting' | 'started' | 'ended'
  /** Child runs that it waits for. */
  awaited: number
}

/**
 * The places of the runs that execute here. Organizations share the places for runs that a child has started, and the
 * memory for runs that wait (decision 0025).
 */
export class RunPlaces {
  readonly #total: number
  readonly #slots: FairPlaces
  /** The weight of the waiting runs, by organization. */
  readonly #waiting = new Map<string, number>()

  constructor(total: number) {
    this.#total = total
    this.#slots = new FairPlaces({ total, perFree: SLOTS_PER_FREE })
  }

  /** The organizations with waiting runs. */
  get waiting(): readonly string[] {
    return [...this.#waiting.keys()]
  }

  /** The weight of the waiting runs of the organization. */
  weightOf(org_id: string): number {
    return this.#waiting.get(org_id) ?? 0
  }

  /** Whether one more run of the organization may wait or begin here. */
  hasRoom(org_id: string): boolean {
    return this.weightOf(org_id) < this.#mostWaiting() && this.#slots.hasPlaceFor(org_id)
  }

  /** Adds weight of the organization to that of its waiting runs. */
  wait(org_id: string, weight: number): void {
    const sum = this.weightOf(org_id) + weight
    if (sum > 0) this.#waiting.set(org_id, sum)
    else this.#waiting.delete(org_id)
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
    this.wait(run.org_id, run.weight)
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
    if (run.state === 'waiting') this.wait(run.org_id, -run.weight)
    else if (run.awaited === 0) this.#slots.giveBack(run.org_id)
    run.state = 'ended'
  }

  #begin(run: Placed): void {
    if (run.state === 'ended') return this.#slots.giveBack(run.org_id)
    run.state = 'started'
    this.wait(run.org_id, -run.weight)
  }

  /** Claimed runs of one organization that may wait here. A dead worker loses them, so there are not many. */
  #mostWaiting(): number {
    return Math.ceil(this.#total / Math.max(1, this.#waiting.size))
  }
}
