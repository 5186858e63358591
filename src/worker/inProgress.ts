import { atMost } from '../loops/deadline.ts'

/** Counts the work in progress of a worker: its claims, and its runs until their ends are stored. */
export class InProgress {
  #count = 0
  #waiting: (() => void)[] = []

  get count(): number {
    return this.#count
  }

  begin(): void {
    this.#count++
  }

  end(): void {
    if (--this.#count === 0) for (const resolve of this.#waiting.splice(0)) resolve()
  }

  /** Resolves when nothing is in progress, also nothing that began meanwhile, or after `ms`. */
  async over(ms: number): Promise<void> {
    if (this.#count > 0) await atMost(ms, new Promise<void>((resolve) => this.#waiting.push(resolve)))
  }
}
