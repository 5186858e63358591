import { AppError, messageOf } from '../errors.ts'
import { Child, type Job } from './supervisedChild.ts'
import type { RuntimeOptions } from './limits.ts'
import type { ChildCode } from './childProcess.ts'

/** What a lane needs of the pool around it. */
export interface LanePool {
  readonly options: RuntimeOptions
  readonly code: ChildCode
  now(): number
  /** Resolves when one more child may be started; the lane gives the place back when it has ended. */
  takePlace(): Promise<void>
  givePlaceBack(): void
  /** A child of the lane has nothing to do any more. */
  onIdle(): void
}

/** A job that waits; the queue skips those that were settled meanwhile. */
interface Waiting {
  readonly job: Job
  readonly reject: (error: unknown) => void
}

/**
 * The runs of one (environment, build): a queue, the child that takes them, and older ones that drain.
 * L1: at most one child starts or takes runs at a time. L2: first in, first out.
 */
export class Lane {
  readonly #pool: LanePool
  readonly #dir: () => Promise<string>
  readonly #draining = new Set<Child>()
  #current: Child | undefined
  #starting = false
  #queue: Waiting[] = []
  #head = 0
  /** In a row, without a run that succeeded between them. */
  #crashes = 0
  #crashedAt = 0
  #wakeUp: NodeJS.Timeout | undefined
  #closed = false

  constructor(pool: LanePool, dir: () => Promise<string>) {
    this.#pool = pool
    this.#dir = dir
  }

  get children(): number {
    return this.#draining.size + (this.#current ? 1 : 0)
  }

  /** Nothing runs, waits, starts or drains here, and no crash must be remembered. */
  isEmpty(now: number): boolean {
    if (this.children > 0 || this.#starting || this.#head < this.#queue.length) return false
    return this.#crashes === 0 || now - this.#crashedAt > this.#pool.options.maxBackoffMs
  }

  /** Since when the warm child does nothing; undefined when it works or there is none. */
  get idleSince(): number | undefined {
    return this.#current?.idle ? this.#current.idleSince : undefined
  }

  /** `reject` hears of what is not user code's doing: a build that cannot be fetched, a process that cannot start. */
  submit(job: Job, reject: (error: unknown) => void): void {
    this.#queue.push({ job, reject })
    this.#pump()
  }

  /** Starts the child unless there is one. */
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
    for (const { job } of this.#queue.splice(0).slice(this.#head)) {
      job.settle({ status: 'failed', error: { code: 'worker_lost', message: 'The runtime was closed' } })
    }
    this.#head = 0
  }

  #pump(): void {
    for (;;) {
      const waiting = this.#queue[this.#head]
      if (!waiting) break
      if (!waiting.job.settled) {
        if (!this.#current) return this.warm()
        if (!this.#current.hasRoom) return
        this.#current.invoke(waiting.job, this.#pool.now())
      }
      this.#head++
      if (this.#head < 1024 || this.#head * 2 < this.#queue.length) continue
      this.#queue = this.#queue.slice(this.#head)
      this.#head = 0
    }
    this.#queue = []
    this.#head = 0
  }

  async #start(): Promise<void> {
    this.#starting = true // L1
    let placed = false
    try {
      await this.#backOff()
      const dir = await this.#dir()
      await this.#pool.takePlace()
      placed = true
      if (this.#closed) throw new AppError('unavailable', 'The runtime was closed')
      this.#current = new Child(dir, this.#pool.code, this.#pool.options, this.#pool.now(), {
        onReady: () => this.#pump(),
        onFreed: (child) => this.#onFreed(child),
        onDraining: (child) => this.#onDraining(child),
        onEnd: (child) => this.#onEnd(child),
      })
    } catch (error) {
      if (placed) this.#pool.givePlaceBack()
      this.#rejectAll(error)
    } finally {
      this.#starting = false
    }
  }

  /** A build whose children keep dying must not keep the machine busy with starting them. */
  async #backOff(): Promise<void> {
    const { backoffMs, maxBackoffMs } = this.#pool.options
    if (this.#crashes < 2) return // one crash may be bad luck
    const backoff = Math.min(backoffMs * 2 ** (this.#crashes - 2), maxBackoffMs)
    const ms = this.#crashedAt + backoff - this.#pool.now()
    if (ms <= 0) return
    await new Promise<void>((resolve) => {
      this.#wakeUp = setTimeout(resolve, ms)
    })
  }

  #onFreed(child: Child): void {
    if (child.proven) this.#crashes = 0
    if (child === this.#current) this.#pump()
    if (this.idleSince !== undefined) this.#pool.onIdle()
  }

  #onDraining(child: Child): void {
    if (child !== this.#current) return
    this.#draining.add(child)
    this.#current = undefined
    this.#pump()
  }

  #onEnd(child: Child): void {
    if (!child.retired) {
      this.#crashes++
      this.#crashedAt = this.#pool.now()
    }
    if (child === this.#current) this.#current = undefined
    this.#draining.delete(child)
    this.#pool.givePlaceBack()
    if (child.wasReady || this.#closed) this.#pump()
    else
      this.#rejectAll(
        new AppError('unavailable', `Expected the process of the build to start: ${child.ending}`),
      )
  }

  #rejectAll(error: unknown): void {
    const waiting = this.#queue.slice(this.#head)
    this.#queue = []
    this.#head = 0
    for (const { job, reject } of waiting) if (!job.settled) reject(error)
  }
}

export const unavailable = (error: unknown): AppError =>
  error instanceof AppError
    ? error
    : new AppError('unavailable', `Expected the build to be at hand: ${messageOf(error)}`, { cause: error })
