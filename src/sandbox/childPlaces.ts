import { FairPlaces } from '../loops/fairPlaces.ts'
import type { Lane } from './lane.ts'
import type { SandboxOptions } from './limits.ts'
import type { SupervisedChild } from './supervisedChild.ts'

/** An organization has at most this many children for each free place, so it leaves some to the others. */
const PLACES_PER_FREE = 2

/** A lane that waits for a place. */
interface Wait {
  readonly lane: Lane
  /** Monotonic milliseconds. */
  readonly since: number
  readonly leave: AbortController
  /** True when it was given a place beyond the limit. */
  isBeyond: boolean
}

/**
 * The places for children, which organizations share (decision 0025). P1: at most `maxChildren` are taken, and as many more
 * by P2. P2: a lane with a child run gets a place beyond the limit when all children of its organization only wait for
 * child runs: it may be the one that they wait for. P3: a lane that has waited for `shareAfterMs` gets the place of a child
 * that has taken runs for as long, after the runs of that child have ended.
 */
export class ChildPlaces {
  readonly #shareAfterMs: number
  readonly #places: FairPlaces
  readonly #beyond: FairPlaces
  /** In order of arrival. */
  readonly #waits = new Set<Wait>()

  constructor({ maxChildren, shareAfterMs }: Pick<SandboxOptions, 'maxChildren' | 'shareAfterMs'>) {
    this.#shareAfterMs = shareAfterMs
    const size = { total: maxChildren, perFree: PLACES_PER_FREE }
    this.#places = new FairPlaces(size)
    this.#beyond = new FairPlaces(size)
  }

  get taken(): number {
    return this.#places.taken + this.#beyond.taken
  }

  takenBy(org_id: string): number {
    return this.#places.takenBy(org_id) + this.#beyond.takenBy(org_id)
  }

  /** The organization whose turn is next. */
  get next(): string | undefined {
    return this.#places.waiting[0]
  }

  waitsFor(org_id: string): boolean {
    return this.#places.waitsFor(org_id)
  }

  hasPlaceFor(org_id: string): boolean {
    return this.#places.hasPlaceFor(org_id)
  }

  /** Takes a place even if none is free, because the pool is closing. */
  force(org_id: string): void {
    this.#places.retake(org_id)
  }

  tryTake(org_id: string): boolean {
    return this.#places.tryTake(org_id)
  }

  async take(lane: Lane, now: number): Promise<void> {
    const wait: Wait = { lane, since: now, leave: new AbortController(), isBeyond: false }
    this.#waits.add(wait)
    try {
      await this.#places.take(lane.org_id, wait.leave.signal)
    } catch (error) {
      if (!wait.isBeyond) throw error
    } finally {
      this.#waits.delete(wait)
    }
  }

  /** Those beyond the limit are given back first, so that no more remain than are needed. */
  giveBack(org_id: string): void {
    const places = this.#beyond.takenBy(org_id) > 0 ? this.#beyond : this.#places
    places.giveBack(org_id)
  }

  openAll(): void {
    this.#places.openAll()
  }

  /** Helps lanes that would wait for too long. The pool calls it each tick with all lanes. */
  tick(now: number, lanes: Iterable<Lane>): void {
    if (this.#waits.size === 0) return
    const byOrg = Map.groupBy(lanes, ({ org_id }) => org_id)
    const helped = new Set<string>()
    for (const wait of this.#waits) {
      const { org_id } = wait.lane
      const ofOrg = byOrg.get(org_id) ?? []
      if (!helped.has(org_id) && this.#goBeyond(wait, ofOrg)) helped.add(org_id)
      else if (now - wait.since >= this.#shareAfterMs) this.#free(wait, ofOrg, now)
    }
  }

  /** P2. */
  #goBeyond(wait: Wait, lanes: readonly Lane[]): boolean {
    const { lane } = wait
    if (!lane.hasChildRun || !lanes.every(({ all }) => all.every(({ onlyAwaits }) => onlyAwaits)))
      return false
    if (!this.#beyond.tryTake(lane.org_id)) return false
    wait.isBeyond = true
    wait.leave.abort()
    return true
  }

  /** P3. One child of an organization ends at a time: its lane may wait next, and would take the place of a further one. */
  #free(wait: Wait, lanes: readonly Lane[], now: number): void {
    const all = lanes.flatMap(({ all }) => all)
    if (all.some(({ isYielding, size, idle }) => isYielding || (size === 0 && !idle))) return
    const [idle] = lanes.flatMap(({ idle }) => idle)
    const others = lanes.filter((lane) => lane !== wait.lane)
    if (idle) idle.retire()
    else if (all.every(({ size }) => size > 0)) this.#yieldOne(others, now)
  }

  /** The best child yields, or none does until that one has taken runs for long enough. */
  #yieldOne(lanes: readonly Lane[], now: number): void {
    const [best] = lanes
      .flatMap((lane) => [...lane.taking].map((child) => ({ lane, child, rank: rankOf(lane, child) })))
      .sort((a, b) => a.rank - b.rank || a.child.readyAt - b.child.readyAt)
    if (best && now - best.child.readyAt >= this.#shareAfterMs) best.lane.yield(best.child)
  }
}

/** Children with lower ranks give up their places first: those that are missed least, and that end soonest. */
const rankOf = ({ taking, isForEvaluator }: Lane, child: SupervisedChild): number => {
  if (!child.hasOthers) return 4 // child runs of other lanes may arrive for ever
  if (isForEvaluator) return 3 // its sessions would be lost
  if (child.awaits) return 2
  return taking.size > 1 ? 0 : 1
}
