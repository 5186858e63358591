import type { Socket } from 'node:net'
import { AppError, messageOf } from '../errors.ts'
import { pauseAfter } from '../loops/backoff.ts'
import { Growth } from './growth.ts'
import type { Job } from './openRun.ts'
import { isChildRun, RunQueue, type Waiting } from './runQueue.ts'
import { SupervisedChild } from './supervisedChild.ts'
import type { SandboxOptions } from './limits.ts'
import type { ChildCode } from './childCode.ts'
import type { Input, LaneRef } from '../ports/runtime.ts'

/** The key of the lane of a run: equal exactly for runs that may share a child. */
export const laneKeyOf = ({ env_id, project_id, hash, rights }: LaneRef): string => {
  const context = rights.context ? JSON.stringify([...new Set(rights.context)].sort()) : '*'
  return [env_id, project_id, hash, rights.evaluator ?? '', context].join('/')
}

export interface LanePool {
  readonly options: SandboxOptions
  readonly code: ChildCode
  /** Returns the real path of the unpacked build. */
  readonly unpacked: (build: LaneRef) => Promise<string>
  now(): number
  /** Resolves when one more child of the organization may start. The lane frees the place when the child has ended. */
  takePlace(lane: Lane): Promise<void>
  givePlaceBack(org_id: string): void
  /** Whether one more child of the organization may start now. */
  hasPlaceFor(org_id: string): boolean
  /** The places that an organization has. */
  placesOf(org_id: string): number
  /** A child of the lane was started. */
  onStart(): void
  /** A child of the lane ended, and the service had not ended it. */
  onCrash(): void
  /** A child of the lane has become idle. */
  onIdle(): void
}

/** Consecutive starts of a child that may fail before the runs that wait for it are rejected. */
const MAX_STARTS = 8

/**
 * Owns the runs of one lane (environment, project, build and rights): the queue, the children that take runs, and draining ones.
 * L1: at most one child starts at a time. L2: child runs go before the runs that may wait for them, also into children that
 * are full for the others, so parents never block their child runs. L3: a child that did not become ready fails no run, because it ran no user code: the queue waits for the next one.
 * L4: a lane has one child that takes runs until that is full; the oldest child with room takes the next run, so that the
 * others become idle. Evaluated code has only one, which keeps its sessions. L5: a child that gives up its place takes only child
 * runs, which its runs may wait for, if no other child takes them; another one starts for the other runs when there is a place.
 */
export class Lane {
  readonly #pool: LanePool
  readonly #build: LaneRef
  readonly #options: SandboxOptions
  readonly #draining = new Set<SupervisedChild>()
  /** Those that give up their places (L5). */
  readonly #yielding = new Set<SupervisedChild>()
  /** The oldest first. */
  readonly #taking = new Set<SupervisedChild>()
  readonly #growth: Growth | null
  #starting = false
  readonly #queue = new RunQueue()
  /** Jobs with a place in a child whose input is being loaded. */
  #loading = 0
  /** Consecutive crashes without a completed run between them. */
  #crashes = 0
  #crashedAt = 0
  /** Consecutive children that did not become ready. */
  #failedStarts = 0
  #wakeUp: NodeJS.Timeout | undefined
  #closed = false

  /** With `runsPerLife`, each child is replaced after that many runs. */
  constructor(pool: LanePool, build: LaneRef, { runsPerLife }: { readonly runsPerLife?: number } = {}) {
    this.#pool = pool
    this.#build = build
    this.#options =
      runsPerLife === undefined ? pool.options : { ...pool.options, replaceAfterRuns: runsPerLife }
    const isOne = runsPerLife !== undefined || build.rights.evaluator !== undefined
    this.#growth = isOne ? null : new Growth(pool.options)
  }

  get org_id(): string {
    return this.#build.org_id
  }

  get isForEvaluator(): boolean {
    return this.#build.rights.evaluator !== undefined
  }

  /** Whether a child run waits for room. */
  get hasChildRun(): boolean {
    return this.#queue.hasChildRun
  }

  get all(): readonly SupervisedChild[] {
    return [...this.#taking, ...this.#yielding, ...this.#draining]
  }

  /** Those that take all runs, the oldest first. */
  get taking(): ReadonlySet<SupervisedChild> {
    return this.#taking
  }

  get children(): number {
    return this.all.length
  }

  /** The children with runs. */
  get busy(): number {
    return this.all.filter(({ size }) => size > 0).length
  }

  /** The runs that wait for a child or for room in it. */
  get waiting(): number {
    return this.#loading + this.#queue.waiting().length
  }

  /** Whether the pool may drop this lane: it has no child and no queue, and its backoff is over. */
  isEmpty(now: number): boolean {
    if (this.children > 0 || this.#starting || this.#loading > 0 || !this.#queue.isEmpty) return false
    return this.#crashes === 0 || now - this.#crashedAt > this.#pool.options.maxBackoffMs
  }

  /** The warm children without runs. */
  get idle(): readonly SupervisedChild[] {
    return this.#loading > 0 ? [] : [...this.#taking].filter(({ idle }) => idle)
  }

  /** `reject` receives failures that user code did not cause: a missing build, or a process that cannot start. */
  submit(job: Job, reject: (error: unknown) => void): void {
    this.#queue.add({ job, reject })
    this.#pump()
  }

  /** Starts a child unless there is one. */
  warm(): void {
    if (this.#taking.size === 0 && !this.#starting) void this.#start()
  }

  tick(now: number, elapsedMs: number): void {
    for (const child of this.all) child.tick(now, elapsedMs)
    if (this.#growth?.isDue(now, this.#isFull) && this.#pool.hasPlaceFor(this.org_id)) void this.#start()
  }

  /** Makes a child give up its place (L5). */
  yield(child: SupervisedChild): void {
    if (!this.#taking.delete(child)) return
    this.#yielding.add(child)
    child.yield()
    this.#pump()
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#wakeUp)
    for (const child of this.all) child.retire()
    this.#rejectAll(closed())
  }

  #pump(): void {
    for (let waiting = this.#queue.first; waiting; waiting = this.#queue.first) {
      const { settled } = waiting.job
      if (!settled && this.#roomFor(waiting) <= this.#loading)
        return this.#taking.size === 0 ? this.warm() : this.#wakeOne()
      this.#queue.shift()
      if (!settled) void this.#begin(waiting) // last, because a child that starts to drain calls this method again
    }
  }

  /** The room in all children. A job with its input holds a place, so it has as much room as a child run. */
  #roomFor(waiting: Waiting): number {
    const isOther = waiting.input === undefined && !isChildRun(waiting.job)
    let sum = 0
    for (const child of this.#taking) sum += Math.max(0, isOther ? child.roomForOthers : child.room)
    if (!isOther) for (const child of this.#yielding) sum += Math.max(0, child.room)
    return sum
  }

  /** The child that takes the run now. */
  #childFor(job: Job): SupervisedChild | undefined {
    const taking = [...this.#taking] // L4
    const first = isChildRun(job) ? undefined : taking.find(({ roomForOthers }) => roomForOthers > 0)
    return first ?? [...taking, ...this.#yielding].find(({ room }) => room > 0) // L5
  }

  /** Whether runs wait because each child has as many as it may have. */
  get #isFull(): boolean {
    if (this.#starting || this.#queue.isEmpty || this.#taking.size === 0) return false
    for (const child of this.#taking) if (!child.isFull) return false
    return true
  }

  #wakeOne(): void {
    for (const child of this.#taking) if (child.wake(this.#pool.now())) return
  }

  /** Sends the job to a child that has room for it, or puts it back if no child has room any more. */
  async #begin(waiting: Waiting): Promise<void> {
    const { job, reject, input: loaded } = waiting
    this.#loading++
    let input: Input
    try {
      input = loaded ?? (await job.invocation.loadInput())
    } catch (error) {
      this.#loading--
      if (!job.settled) reject(error)
      return this.#pump()
    }
    this.#loading--
    if (job.settled) return this.#pump()
    const child = this.#childFor(job)
    if (child) child.invoke(job, input, this.#pool.now())
    else if (this.#closed) reject(closed())
    else {
      this.#queue.putBack({ job, reject, input })
      this.#pump()
    }
  }

  async #start(): Promise<void> {
    this.#starting = true // L1
    let placed = false
    try {
      await this.#backOff()
      const dir = await this.#pool.unpacked(this.#build)
      await this.#pool.takePlace(this)
      placed = true
      if (this.#closed) throw closed()
      const { code } = this.#pool
      const options = this.#options
      const { egress } = options
      const siblings = this.#pool.placesOf(this.org_id) - 1
      const openEgress = egress && ((pipe: Socket) => egress(this.#build, pipe))
      const child = new SupervisedChild({ dir, code, options, siblings, openEgress }, this.#pool.now(), {
        onReady: () => {
          this.#failedStarts = 0
          this.#pump()
        },
        onFreed: (child) => this.#onFreed(child),
        onDraining: (child) => this.#onDraining(child),
        onEnd: (child) => this.#onEnd(child),
      })
      this.#taking.add(child)
      this.#pool.onStart()
    } catch (error) {
      if (placed) this.#pool.givePlaceBack(this.org_id)
      if (this.#taking.size === 0 || this.#closed) this.#rejectAll(error)
    } finally {
      this.#starting = false
    }
  }

  /** Limits the rate of starts, because a build with crashing children would occupy the machine. */
  async #backOff(): Promise<void> {
    const { backoffMs, maxBackoffMs } = this.#pool.options
    if (this.#crashes < 2) return // no backoff after a single crash
    const backoff = pauseAfter(this.#crashes - 2, { firstMs: backoffMs, longestMs: maxBackoffMs })
    const ms = this.#crashedAt + backoff - this.#pool.now()
    if (ms <= 0) return
    await new Promise<void>((resolve) => {
      this.#wakeUp = setTimeout(resolve, ms)
    })
  }

  #onFreed(child: SupervisedChild): void {
    if (child.proven) this.#crashes = 0
    if (!this.#taking.has(child) && !this.#yielding.has(child)) return
    this.#pump()
    if (child.idle && this.#loading === 0) this.#pool.onIdle()
  }

  #onDraining(child: SupervisedChild): void {
    if (!this.#taking.delete(child) && !this.#yielding.delete(child)) return
    this.#draining.add(child)
    this.#pump()
  }

  #onEnd(child: SupervisedChild): void {
    if (!child.retired) {
      this.#pool.onCrash()
      this.#crashes++
      this.#crashedAt = this.#pool.now()
    }
    this.#taking.delete(child)
    this.#yielding.delete(child)
    this.#draining.delete(child)
    this.#pool.givePlaceBack(this.org_id)
    if (!child.wasReady && !this.#closed && this.#taking.size === 0 && ++this.#failedStarts >= MAX_STARTS)
      this.#giveUpStarting(child)
    this.#pump() // L3
  }

  #giveUpStarting({ ending }: SupervisedChild): void {
    const text = `The process of the build did not start in ${this.#failedStarts} attempts: ${ending}`
    this.#failedStarts = 0
    this.#rejectAll(new AppError('unavailable', text))
  }

  #rejectAll(error: unknown): void {
    for (const { reject } of this.#queue.takeAll()) reject(error)
  }
}

/** The error of a run that no child had received when the runtime was closed. */
export const closed = (): AppError => new AppError('unavailable', 'The runtime was closed')

export const unavailable = (error: unknown): AppError =>
  error instanceof AppError
    ? error
    : new AppError('unavailable', `The build could not be loaded: ${messageOf(error)}`, { cause: error })
