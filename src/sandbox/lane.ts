import type { Socket } from 'node:net'
import { AppError, messageOf } from '../errors.ts'
import { pauseAfter } from '../loops/backoff.ts'
import type { Job } from './openRun.ts'
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
  takePlace(org_id: string): Promise<void>
  givePlaceBack(org_id: string): void
  /** The places that an organization has. */
  placesOf(org_id: string): number
  /** A child of the lane was started. */
  onStart(): void
  /** A child of the lane ended, and the service had not ended it. */
  onCrash(): void
  /** The lane's child has become idle. */
  onIdle(): void
}

/** Consecutive starts of a child that may fail before the runs that wait for it are rejected. */
const MAX_STARTS = 8

/** A queued job. The queue skips it if it was settled in the meantime. */
interface Waiting {
  readonly job: Job
  readonly reject: (error: unknown) => void
  /** Present when a child had room and then ended before the input was loaded. */
  readonly input?: Input
}

/**
 * Owns the runs of one lane (environment, project, build and rights): the queue, the child that takes runs, and draining children.
 * L1: at most one child starts or takes runs at a time. L2: the queue is first in, first out. L3: a child that did not
 * become ready fails no run, because it ran no user code: the queue waits for the next one.
 */
export class Lane {
  readonly #pool: LanePool
  readonly #build: LaneRef
  readonly #options: SandboxOptions
  readonly #draining = new Set<SupervisedChild>()
  #current: SupervisedChild | undefined
  #starting = false
  #queue: Waiting[] = []
  #head = 0
  /** Jobs with a place in the current child whose input is being loaded. */
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
  }

  get org_id(): string {
    return this.#build.org_id
  }

  get children(): number {
    return this.#draining.size + (this.#current ? 1 : 0)
  }

  /** The children with runs. */
  get busy(): number {
    let busy = this.#current && this.#current.size > 0 ? 1 : 0
    for (const child of this.#draining) if (child.size > 0) busy++
    return busy
  }

  /** The runs that wait for a child or for room in it. */
  get waiting(): number {
    let waiting = this.#loading
    for (let at = this.#head; at < this.#queue.length; at++) if (!this.#queue[at]?.job.settled) waiting++
    return waiting
  }

  /** Whether the pool may drop this lane: it has no child and no queue, and its backoff is over. */
  isEmpty(now: number): boolean {
    if (this.children > 0 || this.#starting || this.#loading > 0 || this.#head < this.#queue.length)
      return false
    return this.#crashes === 0 || now - this.#crashedAt > this.#pool.options.maxBackoffMs
  }

  /** The time since which the warm child is idle; undefined if it is busy or does not exist. */
  get idleSince(): number | undefined {
    return this.#current?.idle && this.#loading === 0 ? this.#current.idleSince : undefined
  }

  /** `reject` receives failures that user code did not cause: a missing build, or a process that cannot start. */
  submit(job: Job, reject: (error: unknown) => void): void {
    this.#queue.push({ job, reject })
    this.#pump()
  }

  /** Starts a child unless there is one. */
  warm(): void {
    if (!this.#current && !this.#starting) void this.#start()
  }

  tick(now: number, elapsedMs: number): void {
    this.#current?.tick(now, elapsedMs)
    for (const child of this.#draining) child.tick(now, elapsedMs)
  }

  /** Ends the warm child, which must be idle. */
  retireIdle(): void {
    this.#current?.retire()
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#wakeUp)
    for (const child of this.#draining) child.retire()
    this.#current?.retire()
    this.#rejectAll(closed())
  }

  #pump(): void {
    for (;;) {
      const waiting = this.#queue[this.#head]
      if (!waiting) break
      if (!waiting.job.settled) {
        if (!this.#current) return this.warm()
        if (this.#current.room <= this.#loading) return this.#current.wake(this.#pool.now())
        void this.#begin(waiting)
      }
      this.#head++
      if (this.#head < 1024 || this.#head * 2 < this.#queue.length) continue
      this.#queue = this.#queue.slice(this.#head)
      this.#head = 0
    }
    this.#queue = []
    this.#head = 0
  }

  /** Sends the job to the child that has room for it, or queues it again if that child has ended meanwhile. */
  async #begin({ job, reject, input: loaded }: Waiting): Promise<void> {
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
    if (job.settled) this.#pump()
    else if (this.#current && this.#current.room > 0) this.#current.invoke(job, input, this.#pool.now())
    else if (this.#closed) reject(closed())
    else {
      this.#queue.push({ job, reject, input })
      this.#pump()
    }
  }

  async #start(): Promise<void> {
    this.#starting = true // L1
    let placed = false
    try {
      await this.#backOff()
      const dir = await this.#pool.unpacked(this.#build)
      await this.#pool.takePlace(this.org_id)
      placed = true
      if (this.#closed) throw closed()
      const { code } = this.#pool
      const options = this.#options
      const { egress } = options
      const siblings = this.#pool.placesOf(this.org_id) - 1
      const openEgress = egress && ((pipe: Socket) => egress(this.#build, pipe))
      this.#current = new SupervisedChild({ dir, code, options, siblings, openEgress }, this.#pool.now(), {
        onReady: () => {
          this.#failedStarts = 0
          this.#pump()
        },
        onFreed: (child) => this.#onFreed(child),
        onDraining: (child) => this.#onDraining(child),
        onEnd: (child) => this.#onEnd(child),
      })
      this.#pool.onStart()
    } catch (error) {
      if (placed) this.#pool.givePlaceBack(this.org_id)
      this.#rejectAll(error)
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
    if (child === this.#current) this.#pump()
    if (this.idleSince !== undefined) this.#pool.onIdle()
  }

  #onDraining(child: SupervisedChild): void {
    if (child !== this.#current) return
    this.#draining.add(child)
    this.#current = undefined
    this.#pump()
  }

  #onEnd(child: SupervisedChild): void {
    if (!child.retired) {
      this.#pool.onCrash()
      this.#crashes++
      this.#crashedAt = this.#pool.now()
    }
    if (child === this.#current) this.#current = undefined
    this.#draining.delete(child)
    this.#pool.givePlaceBack(this.org_id)
    if (!child.wasReady && !this.#closed && ++this.#failedStarts >= MAX_STARTS) this.#giveUpStarting(child)
    this.#pump() // L3
  }

  #giveUpStarting({ ending }: SupervisedChild): void {
    const text = `The process of the build did not start in ${this.#failedStarts} attempts: ${ending}`
    this.#failedStarts = 0
    this.#rejectAll(new AppError('unavailable', text))
  }

  #rejectAll(error: unknown): void {
    const waiting = this.#queue.slice(this.#head)
    this.#queue = []
    this.#head = 0
    for (const { job, reject } of waiting) if (!job.settled) reject(error)
  }
}

/** The error of a run that no child had received when the runtime was closed. */
export const closed = (): AppError => new AppError('unavailable', 'The runtime was closed')

export const unavailable = (error: unknown): AppError =>
  error instanceof AppError
    ? error
    : new AppError('unavailable', `The build could not be loaded: ${messageOf(error)}`, { cause: error })
