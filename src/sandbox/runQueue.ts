import type { Job } from './openRun.ts'
import type { Input } from '../ports/runtime.ts'

/** A queued job. The queue skips it if it was settled in the meantime. */
export interface Waiting {
  readonly job: Job
  readonly reject: (error: unknown) => void
  /** Present when a child had room, and had none when the input was loaded. */
  readonly input?: Input
}

/** Whether another run waits for this one. */
export const isChildRun = ({ invocation }: Job): boolean => invocation.run.run_type === 'run'

/**
 * The runs of a lane that wait for a child. Q1: a job that was put back is first, because it holds a place that the others may
 * need. Q2: child runs are before the others, which may be as many parents as a child accepts. Q3: otherwise the order is
 * first in, first out.
 */
export class RunQueue {
  /** The last one is first. */
  readonly #putBack: Waiting[] = []
  readonly #childRuns = new Line()
  readonly #others = new Line()

  get first(): Waiting | undefined {
    return this.#putBack.at(-1) ?? this.#childRuns.first ?? this.#others.first
  }

  get isEmpty(): boolean {
    return this.first === undefined
  }

  /** Whether a child run waits that was not settled in the meantime. */
  get hasChildRun(): boolean {
    return [...this.#putBack, ...this.#childRuns.all()].some(({ job }) => !job.settled && isChildRun(job))
  }

  add(waiting: Waiting): void {
    const line = isChildRun(waiting.job) ? this.#childRuns : this.#others
    line.add(waiting)
  }

  /** Puts a job before all others (Q1). */
  putBack(waiting: Waiting): void {
    this.#putBack.push(waiting)
  }

  /** Removes the first one. */
  shift(): void {
    if (this.#putBack.length > 0) this.#putBack.pop()
    else if (this.#childRuns.first) this.#childRuns.shift()
    else this.#others.shift()
  }

  /** Those that were not settled in the meantime, in no particular order. */
  waiting(): Waiting[] {
    const all = [...this.#putBack, ...this.#childRuns.all(), ...this.#others.all()]
    return all.filter(({ job }) => !job.settled)
  }

  /** Removes all, and returns those that were not settled in the meantime. */
  takeAll(): Waiting[] {
    const waiting = this.waiting()
    while (!this.isEmpty) this.shift()
    return waiting
  }
}

/** First in, first out, without moving the others for each one that leaves. */
class Line {
  #waiting: Waiting[] = []
  #head = 0

  get first(): Waiting | undefined {
    return this.#waiting[this.#head]
  }

  add(waiting: Waiting): void {
    this.#waiting.push(waiting)
  }

  shift(): void {
    this.#head++
    if (this.#head < this.#waiting.length && (this.#head < 1024 || this.#head * 2 < this.#waiting.length))
      return
    this.#waiting = this.#waiting.slice(this.#head)
    this.#head = 0
  }

  all(): readonly Waiting[] {
    return this.#waiting.slice(this.#head)
  }
}
