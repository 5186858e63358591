import { clock } from '../clock.ts'
import type { Job } from './supervisedChild.ts'
import { Lane, laneKeyOf, type LanePool, unavailable } from './lane.ts'
import type { SandboxOptions } from './limits.ts'
import type { ChildCode } from './childCode.ts'
import type { BuildRef, Invocation, LaneRef, Outcome } from '../ports/runtime.ts'

export interface PoolDeps {
  readonly options: SandboxOptions
  readonly code: ChildCode
  /** Returns the real path of the unpacked build. */
  readonly unpacked: (build: BuildRef) => Promise<string>
}

/**
 * Owns the lanes, so that no child serves two environments, projects or sets of rights. At most
 * `maxChildren` children exist at a time; one timer checks all deadlines.
 */
export class Pool implements LanePool {
  readonly options: SandboxOptions
  readonly code: ChildCode
  readonly unpacked: PoolDeps['unpacked']
  readonly #lanes = new Map<string, Lane>()
  readonly #waiting: (() => void)[] = []
  #places: number
  #timer: NodeJS.Timeout | undefined
  #lastTick = 0
  #closed = false
  #onEmpty: (() => void) | undefined

  constructor({ options, code, unpacked }: PoolDeps) {
    this.options = options
    this.code = code
    this.unpacked = unpacked
    this.#places = options.maxChildren
  }

  get children(): number {
    let children = 0
    for (const lane of this.#lanes.values()) children += lane.children
    return children
  }

  invoke(invocation: Invocation): Promise<Outcome> {
    if (this.#closed) return Promise.resolve(lost)
    return new Promise((resolve, reject) => {
      const { signal } = invocation
      const job: Job = {
        invocation,
        settled: false,
        started: false,
        settle: (outcome) => {
          if (job.settled) return
          job.settled = true
          signal.removeEventListener('abort', onAbort)
          resolve(outcome)
        },
      }
      // A queued run ends here; a started run is stopped by its child.
      const onAbort = () => {
        if (!job.started)
          job.settle({ status: 'failed', error: { code: 'cancelled', message: 'The run was cancelled' } })
      }
      if (signal.aborted) return onAbort()
      signal.addEventListener('abort', onAbort)
      this.#laneOf(invocation.build).submit(job, (error) => {
        signal.removeEventListener('abort', onAbort)
        job.settled = true
        reject(unavailable(error))
      })
    })
  }

  /** Whether a child runs the build or is about to start. */
  uses(hash: string): boolean {
    for (const key of this.#lanes.keys()) if (key.includes(`/${hash}/`)) return true
    return false
  }

  prewarm(build: LaneRef): void {
    if (!this.#closed) this.#laneOf(build).warm()
  }

  /** Resolves when every child has ended. */
  async close(): Promise<void> {
    this.#closed = true
    const emptied = new Promise<void>((resolve) => {
      this.#onEmpty = resolve
    })
    for (const lane of this.#lanes.values()) lane.close()
    for (const proceed of this.#waiting.splice(0)) proceed()
    if (this.#places < this.options.maxChildren) await emptied
    clearInterval(this.#timer)
  }

  now(): number {
    return clock.monotonic()
  }

  async takePlace(): Promise<void> {
    this.#places--
    if (this.#places >= 0 || this.#closed) return
    this.#makeRoom()
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve)
    })
  }

  givePlaceBack(): void {
    this.#places++
    this.#waiting.shift()?.()
    if (this.#places >= this.options.maxChildren) this.#onEmpty?.()
  }

  onIdle(): void {
    if (this.#waiting.length > 0) this.#makeRoom()
  }

  #laneOf(build: LaneRef): Lane {
    this.#timer ??= this.#startTimer()
    const key = laneKeyOf(build)
    const known = this.#lanes.get(key)
    if (known) return known
    const lane = new Lane(this, build)
    this.#lanes.set(key, lane)
    return lane
  }

  #startTimer(): NodeJS.Timeout {
    this.#lastTick = clock.monotonic()
    return setInterval(() => this.#tick(), this.options.tickMs).unref()
  }

  #tick(): void {
    const now = clock.monotonic()
    const elapsedMs = now - this.#lastTick
    this.#lastTick = now
    for (const [key, lane] of this.#lanes) {
      lane.tick(now, elapsedMs)
      if (lane.isEmpty(now)) this.#lanes.delete(key)
    }
    this.#coolDown(now)
  }

  /** Ends children that were idle for too long and, if too many are idle, the ones with the longest idle time. */
  #coolDown(now: number): void {
    const idle = this.#idleLanes()
    const surplus = idle.length - this.options.maxIdle
    idle.forEach(([lane, since], index) => {
      if (index < surplus || now - since >= this.options.idleMs) lane.retireIdle()
    })
  }

  #makeRoom(): void {
    this.#idleLanes()[0]?.[0].retireIdle()
  }

  /** Longest idle first. */
  #idleLanes(): [Lane, number][] {
    const idle: [Lane, number][] = []
    for (const lane of this.#lanes.values())
      if (lane.idleSince !== undefined) idle.push([lane, lane.idleSince])
    return idle.sort((a, b) => a[1] - b[1])
  }
}

const lost: Outcome = { status: 'failed', error: { code: 'worker_lost', message: 'The runtime was closed' } }
