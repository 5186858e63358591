import { hostname } from 'node:os'
import type { CommandDeps } from '../commands/deps.ts'
import { startWorker } from '../commands/runs/startWorker.ts'
import { isAppError, messageOf } from '../errors.ts'
import { newId } from '../ids.ts'
import type { Logger } from '../logger.ts'
import { Backoff, type Pauses } from '../loops/backoff.ts'
import { whileStarting } from '../loops/patience.ts'

/** Pauses between attempts to register under a new id. */
const PAUSES: Pauses = { firstMs: 100, longestMs: 2000 }

/**
 * Receives an id before it is registered. Resolves when a heartbeat of it was stored; returns nothing if there are no
 * heartbeats.
 */
export type OnIdentity = (worker_id: string) => Promise<void> | void

/**
 * The id with which a worker claims. Before the first claim, a heartbeat of it is stored, then it is registered in the log
 * (W5). In this order, nobody sees a registered id without a heartbeat. An id without a registration owns no runs.
 */
export class Registration {
  readonly #deps: Pick<CommandDeps, 'aggregates'> & { readonly logger: Logger }
  readonly #onIdentity: OnIdentity
  #worker_id = newId()
  #isLost = false
  /** The id that is being registered, and whether the log says that it was declared lost meanwhile. */
  #next: { readonly worker_id: string; isLost: boolean } | undefined

  constructor(
    deps: Pick<CommandDeps, 'aggregates'> & { readonly logger: Logger },
    onIdentity: OnIdentity = () => {},
  ) {
    this.#deps = deps
    this.#onIdentity = onIdentity
  }

  get worker_id(): string {
    return this.#worker_id
  }

  /** The worker was declared lost, and its next id is not registered. */
  get isLost(): boolean {
    return this.#isLost
  }

  /** Whether runs that were claimed with this id belong to a worker that lives. */
  isCurrent(worker_id: string): boolean {
    return !this.#isLost && worker_id === this.#worker_id
  }

  /** The log says that a worker was declared lost. Returns whether it is this one under its current id. */
  lost(worker_id: string): boolean {
    if (worker_id === this.#next?.worker_id) this.#next.isLost = true
    return this.isCurrent(worker_id)
  }

  /**
   * Registers the id, or another one if it was declared lost before the reply arrived. Rejects with `unavailable` if the
   * signal aborts before a heartbeat is stored.
   */
  async register(signal: AbortSignal, worker_id = this.#worker_id): Promise<void> {
    for (let id = worker_id; !(await this.#tryRegister(id, signal)); id = newId());
  }

  /** Resolves with false if the id cannot be used: recovery ends the runs that are claimed with it. */
  async #tryRegister(worker_id: string, signal: AbortSignal): Promise<boolean> {
    const next = { worker_id, isLost: false }
    this.#next = next
    await whileStarting(signal, Promise.resolve(this.#onIdentity(worker_id)))
    try {
      await startWorker(this.#deps, { worker_id, node: `${hostname()}/${process.pid}` })
    } catch (error) {
      if (isAppError(error, 'not_found')) return false
      throw error
    }
    if (next.isLost) return false
    this.#next = undefined
    this.#worker_id = worker_id
    this.#isLost = false
    return true
  }

  /** The worker was declared lost: registers a new id until it succeeds or the signal aborts. */
  async renew(signal: AbortSignal): Promise<void> {
    const { logger } = this.#deps
    this.#isLost = true
    const worker_id = newId()
    const backoff = new Backoff(PAUSES)
    while (!signal.aborted) {
      try {
        return await this.register(signal, worker_id)
      } catch (error) {
        if (signal.aborted) return
        logger.warn('The worker could not register under its new id and tries again', {
          worker_id,
          error: messageOf(error),
        })
        await backoff.pause({ signal })
      }
    }
  }
}
