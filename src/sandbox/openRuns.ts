import { ProtocolViolation } from './frames.ts'
import type { OpenRun } from './openRun.ts'
import { isChildRun } from './runQueue.ts'

/** The runs in one child, by id, and how many of them wait for child runs. */
export class OpenRuns {
  readonly #byId = new Map<number, OpenRun>()
  #awaiting = 0

  get size(): number {
    return this.#byId.size
  }

  /** The number of those that wait for no child run. */
  get working(): number {
    return this.#byId.size - this.#awaiting
  }

  /** Whether a run waits for a child run. */
  get awaits(): boolean {
    return this.#awaiting > 0
  }

  /** Whether there are runs, and all of them wait for child runs. */
  get onlyAwaits(): boolean {
    return this.awaits && this.working === 0
  }

  /** Whether there are runs for which no other run waits. */
  get hasOthers(): boolean {
    return [...this.#byId.values()].some(({ job }) => !isChildRun(job))
  }

  add(id: number, run: OpenRun): void {
    this.#byId.set(id, run)
  }

  get(id: number): OpenRun | undefined {
    return this.#byId.get(id)
  }

  has(id: number): boolean {
    return this.#byId.has(id)
  }

  /** Throws `ProtocolViolation` if there is no such run: only a forged frame names one (C3). */
  demand(id: number): OpenRun {
    const run = this.#byId.get(id)
    if (run) return run
    throw new ProtocolViolation(`Expected the id of a live run, got ${id}`)
  }

  remove(id: number): void {
    if (this.#byId.get(id)?.awaited) this.#awaiting--
    this.#byId.delete(id)
  }

  /** Removes all of them, and returns them. */
  clear(): ReadonlyMap<number, OpenRun> {
    const all = new Map(this.#byId)
    this.#byId.clear()
    this.#awaiting = 0
    return all
  }

  /** Counts a child run that a run waits for, or no longer waits for. Returns whether the run has begun to wait. */
  await(run: OpenRun, more: 1 | -1): boolean {
    const before = run.awaited > 0
    run.awaited += more
    const after = run.awaited > 0
    if (before === after) return false
    this.#awaiting += after ? 1 : -1
    return after
  }

  entries(): Iterable<[id: number, run: OpenRun]> {
    return this.#byId
  }

  values(): Iterable<OpenRun> {
    return this.#byId.values()
  }
}
