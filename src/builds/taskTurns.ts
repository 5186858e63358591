import { AppError } from '../errors.ts'

interface Waiting {
  readonly forRun: boolean
  readonly begin: () => void
}

interface Owner {
  running: number
  readonly waiting: Waiting[]
}

export interface TurnLimits {
  /** Tasks at the same time. */
  readonly places: number
  /** Tasks that may wait for a place. */
  readonly waiting: number
}

/** A refused caller may come back after this time, when some tasks have ended. */
const RETRY_AFTER_S = 5

/**
 * Places for the tasks of builds, shared by organizations.
 * T1: at most `places` tasks run. T2: a free place goes to the organization with the fewest running tasks; between
 * equals, to the one that waited longest for its turn. T3: at most `waiting` tasks wait, except those of runs.
 */
export class TaskTurns {
  readonly #limits: TurnLimits
  /** Organizations with tasks, in the order of their turns. */
  readonly #owners = new Map<string, Owner>()
  #running = 0
  /** Those that T3 counts. */
  #waiting = 0
  #onIdle: (() => void) | undefined

  constructor(limits: TurnLimits) {
    this.#limits = limits
  }

  get running(): number {
    return this.#running
  }

  /** Resolves when no task runs. */
  async idle(): Promise<void> {
    if (this.#running > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve))
  }

  /**
   * Runs the task when it is its turn. Rejects with `unavailable` if too many wait already, or with the reason of the
   * signal if that aborts first. `forRun`: the task is needed by a run, which was accepted and is not refused here.
   */
  async run<T>(
    owner: string,
    task: () => Promise<T>,
    { signal, forRun = false }: { signal?: AbortSignal | undefined; forRun?: boolean } = {},
  ): Promise<T> {
    signal?.throwIfAborted()
    await this.#place(owner, signal, forRun)
    try {
      return await task()
    } finally {
      this.#leave(owner)
    }
  }

  async #place(owner: string, signal: AbortSignal | undefined, forRun: boolean): Promise<void> {
    const own = this.#ownerOf(owner)
    if (this.#running < this.#limits.places) return this.#begin(own)
    if (!forRun && this.#waiting >= this.#limits.waiting) {
      throw new AppError(
        'unavailable',
        `${this.#waiting} builds are waiting for their inspection; upload the build again later`,
        { data: { retryAfter: RETRY_AFTER_S } },
      )
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiting: Waiting = { forRun, begin: resolve }
    own.waiting.push(waiting)
    this.#count(waiting, 1)
    const giveUp = () => {
      const at = own.waiting.indexOf(waiting)
      if (at < 0) return // it has its place
      own.waiting.splice(at, 1)
      this.#count(waiting, -1)
      this.#forget(owner)
      reject(signal?.reason)
    }
    signal?.addEventListener('abort', giveUp, { once: true })
    try {
      await promise
    } finally {
      signal?.removeEventListener('abort', giveUp)
    }
  }

  #begin(owner: Owner): void {
    owner.running++
    this.#running++
  }

  #leave(owner: string): void {
    this.#running--
    const own = this.#ownerOf(owner)
    own.running--
    this.#forget(owner)
    const next = this.#next()
    if (!next) {
      if (this.#running === 0) this.#onIdle?.()
      return
    }
    const [name, turn] = next
    this.#owners.delete(name)
    this.#owners.set(name, turn) // T2: its next turn is after all others
    this.#begin(turn)
    const waiting = turn.waiting.shift()
    if (!waiting) return
    this.#count(waiting, -1)
    waiting.begin()
  }

  #count({ forRun }: Waiting, more: 1 | -1): void {
    if (!forRun) this.#waiting += more // T3
  }

  #next(): [string, Owner] | undefined {
    let next: [string, Owner] | undefined
    for (const [name, owner] of this.#owners)
      if (owner.waiting.length > 0 && (!next || owner.running < next[1].running)) next = [name, owner]
    return next
  }

  #ownerOf(owner: string): Owner {
    const known = this.#owners.get(owner)
    if (known) return known
    const own: Owner = { running: 0, waiting: [] }
    this.#owners.set(owner, own)
    return own
  }

  #forget(owner: string): void {
    const own = this.#owners.get(owner)
    if (own && own.running === 0 && own.waiting.length === 0) this.#owners.delete(owner)
  }
}
