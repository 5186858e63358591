import { cpus } from 'node:os'
import type { SandboxLimits } from './limits.ts'

/** Milliseconds in which processors of this machine were idle, all of them added up. */
const idleMsOfMachine = (): number => cpus().reduce((sum, { times }) => sum + times.idle, 0)

/**
 * Decides when a lane gets one more child: after runs have waited for `growAfterMs` because all of its children were full,
 * although processors were idle. Otherwise one more process would only slow the others down.
 */
export class Growth {
  readonly #limits: Pick<SandboxLimits, 'growAfterMs' | 'growIdle'>
  readonly #idleMs: () => number
  #full: { readonly since: number; readonly idleMs: number } | undefined

  constructor(limits: Pick<SandboxLimits, 'growAfterMs' | 'growIdle'>, idleMs = idleMsOfMachine) {
    this.#limits = limits
    this.#idleMs = idleMs
  }

  /** Takes the state of the lane at a tick, with monotonic milliseconds. Returns whether one more child is of use. */
  isDue(now: number, isFull: boolean): boolean {
    if (!isFull) {
      this.#full = undefined
      return false
    }
    this.#full ??= { since: now, idleMs: this.#idleMs() }
    const fullMs = now - this.#full.since
    if (fullMs < this.#limits.growAfterMs) return false
    const idleMs = this.#idleMs() - this.#full.idleMs
    this.#full = undefined // the next decision needs as much time
    return idleMs >= fullMs * this.#limits.growIdle
  }
}
