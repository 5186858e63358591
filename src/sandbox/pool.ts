import { clock } from '../clock.ts'
import { BoundedMap } from '../boundedMap.ts'
import { ChildPlaces } from './childPlaces.ts'
import type { Job } from './openRun.ts'
import { closed, Lane, laneKeyOf, type LanePool, unavailable } from './lane.ts'
import type { SandboxOptions } from './limits.ts'
import type { ChildCode } from './childCode.ts'
import type { SupervisedChild } from './supervisedChild.ts'
import type { BuildRef, Invocation, LaneRef, Outcome, PoolReading } from '../ports/runtime.ts'

export interface PoolDeps {
  readonly options: SandboxOptions
  readonly code: ChildCode
  /** Returns the real path of the unpacked build. */
  readonly unpacked: (build: BuildRef) => Promise<string>
}

interface IdleChild {
  readonly org_id: string
  readonly child: SupervisedChild
}

/** Chains of runs that are remembered as suspects. */
const SUSPECTS = 4096

/**
 * Owns the lanes, so that no child serves two environments, projects or sets of rights. Organizations share the places for
 * children (`ChildPlaces`); one timer checks all deadlines.
 */
export class Pool implements LanePool {
  readonly options: SandboxOptions
  readonly code: ChildCode
  readonly unpacked: PoolDeps['unpacked']
  readonly #lanes = new Map<string, Lane>()
  readonly #places: ChildPlaces
  /** The chains of runs that may have ended their process. */
  readonly #suspects = new BoundedMap<string, true>(SUSPECTS)
  #timer: NodeJS.Timeout | undefined
  #lastTick = 0
  #closed = false
  #onEmpty: (() => void) | undefined
  readonly #counted = { starts: 0, crashes: 0 }

  constructor({ options, code, unpacked }: PoolDeps) {
    this.options = options
    this.code = code
    this.unpacked = unpacked
    this.#places = new ChildPlaces(options)
  }

  get children(): number {
    let children = 0
    for (const lane of this.#lanes.values()) children += lane.children
    return children
  }

  get reading(): PoolReading {
    let busy = 0
    let waitingRuns = 0
    for (const lane of this.#lanes.values()) {
      busy += lane.busy
      waitingRuns += lane.waiting
    }
    const { children } = this
    const { maxChildren } = this.options
    return { children, busy, waitingRuns, maxChildren, ...this.#counted }
  }

  invoke(invocation: Invocation): Promise<Outcome> {
    if (this.#closed) return Promise.reject(closed())
    return new Promise((resolve, reject) => {
      const { signal, run, build } = invocation
      const chain = run.origin_run_id ?? run.run_id
      const job: Job = {
        invocation,
        settled: false,
        started: false,
        suspect: false,
        settle: (outcome) => {
          if (job.settled) return
          job.settled = true
          if (job.suspect) this.#suspects.set(chain, true)
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
      const isAlone = invocation.alone === true || this.#suspects.get(chain) === true
      this.#laneOf(build, isAlone ? run.run_id : undefined).submit(job, (error) => {
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

  /** Ends the children of a build that are idle. */
  retire(hash: string): void {
    for (const [key, lane] of this.#lanes)
      if (key.includes(`/${hash}/`)) for (const child of lane.idle) child.retire()
  }

  prewarm(build: LaneRef): void {
    if (!this.#closed && this.hasPlaceFor(build.org_id)) this.#laneOf(build).warm()
  }

  /** Resolves when every child has ended. */
  async close(): Promise<void> {
    this.#closed = true
    const emptied = new Promise<void>((resolve) => {
      this.#onEmpty = resolve
    })
    for (const lane of this.#lanes.values()) lane.close()
    this.#places.openAll()
    if (this.#places.taken > 0) await emptied
    clearInterval(this.#timer)
  }

  now(): number {
    return clock.monotonic()
  }

  isFullFor(org_id: string): boolean {
    return this.#places.waitsFor(org_id)
  }

  async takePlace(lane: Lane): Promise<void> {
    if (this.#closed) return this.#places.force(lane.org_id)
    if (this.#places.tryTake(lane.org_id)) return
    const placed = this.#places.take(lane, this.now())
    this.#makeRoom()
    await placed
  }

  givePlaceBack(org_id: string): void {
    this.#places.giveBack(org_id)
    if (this.#places.taken === 0) this.#onEmpty?.()
  }

  hasPlaceFor(org_id: string): boolean {
    return this.#places.hasPlaceFor(org_id)
  }

  placesOf(org_id: string): number {
    return this.#places.takenBy(org_id)
  }

  onStart(): void {
    this.#counted.starts++
  }

  onCrash(): void {
    this.#counted.crashes++
  }

  onIdle(): void {
    this.#makeRoom()
  }

  /** With the id of a run, the lane is for this run alone. */
  #laneOf(build: LaneRef, aloneFor?: string): Lane {
    this.#timer ??= this.#startTimer()
    const key = aloneFor === undefined ? laneKeyOf(build) : `${laneKeyOf(build)}/${aloneFor}`
    const known = this.#lanes.get(key)
    if (known) return known
    const lane = new Lane(this, build, aloneFor === undefined ? {} : { runsPerLife: 1 })
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
    this.#places.tick(now, this.#lanes.values())
    this.#coolDown(now)
  }

  /** Ends children that were idle for too long and, if too many are idle, those of the organization with the most. */
  #coolDown(now: number): void {
    const idle = this.#idle()
    for (const { child } of idle) if (now - child.idleSince >= this.options.idleMs) child.retire()
    let surplus = idle.length - this.options.maxIdle
    if (surplus <= 0) return
    const byOrg = Object.values(Object.groupBy(idle, ({ org_id }) => org_id)).map((children = []) => children)
    for (; surplus > 0; surplus--) {
      const most = byOrg.reduce((a, b) => (b.length > a.length ? b : a))
      most.shift()?.child.retire()
    }
  }

  /**
   * Ends an idle child for the organization whose turn is next: of the one with the most children, and of none with fewer
   * than the waiting one has.
   */
  #makeRoom(): void {
    const waiting = this.#places.next
    if (waiting === undefined) return
    const least = this.#places.takenBy(waiting)
    let found: IdleChild | undefined
    for (const idle of this.#idle()) {
      const taken = this.#places.takenBy(idle.org_id)
      if (taken >= least && (!found || taken > this.#places.takenBy(found.org_id))) found = idle
    }
    found?.child.retire()
  }

  /** Longest idle first. */
  #idle(): IdleChild[] {
    const idle = [...this.#lanes.values()].flatMap(({ org_id, idle }) =>
      idle.map((child) => ({ org_id, child })),
    )
    return idle.sort((a, b) => a.child.idleSince - b.child.idleSince)
  }
}
