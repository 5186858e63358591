import type { RunError } from '../events/run.ts'
import { MAX_OUTPUT_LINES } from '../events/outputLimit.ts'
import type { Hold, Invocation, Outcome } from '../ports/runtime.ts'
import { MAX_LINE, ProtocolViolation } from './frames.ts'
import type { CutLines } from './givenValues.ts'
import { HostCalls } from './hostCalls.ts'
import type { StopReason } from './protocol.ts'

/** An invocation in the pool. Only the first `settle` has an effect. */
export interface Job {
  readonly invocation: Invocation
  settled: boolean
  /** True when a child has received it. */
  started: boolean
  /** True when it was lost with its child and may be the culprit: it must run again in a child of its own. */
  suspect: boolean
  settle(outcome: Outcome): void
}

/** Bytes for the marker line that the child adds to cut output, and for its line breaks. */
const OUTPUT_SLACK = 128
/** The marker line. */
const LINES_SLACK = 1

/** A job in a child. It remains, settled or not, until the child reports its end or dies. */
export class OpenRun {
  readonly job: Job
  readonly calls: HostCalls
  /** Monotonic milliseconds. It is later by the time in which the service could not have received the result. */
  deadline: number
  readonly #onAbort: () => void
  /** Of the long lines that it is printing. */
  readonly cutLines: CutLines = {}
  /** Child runs that it waits for. */
  awaited = 0
  stopped?: { readonly reason: StopReason; readonly at: number }
  /** Milliseconds since it was stopped, without those in which the service could not have received its end. */
  graceMs = 0
  /** Milliseconds for which its deadline may still be postponed because the service does not read from its process. */
  #unreadMs: number
  #outputBytes: number
  #outputLines = MAX_OUTPUT_LINES + LINES_SLACK

  constructor(
    job: Job,
    { deadline, outputBytes, onAbort }: { deadline: number; outputBytes: number; onAbort: () => void },
  ) {
    this.job = job
    this.calls = new HostCalls(job.invocation.onHostCall)
    this.deadline = deadline
    this.#unreadMs = job.invocation.timeoutMs
    this.#onAbort = onAbort
    this.#outputBytes = outputBytes + OUTPUT_SLACK
  }

  /**
   * Time passes. `stalledMs`: the part in which the service stood still. `isRead`: whether it reads from the process; a run
   * may bring about that it does not, so the time without is bounded.
   */
  pass(elapsedMs: number, { stalledMs, isRead }: { stalledMs: number; isRead: boolean }): void {
    const unread = isRead ? 0 : Math.min(elapsedMs - stalledMs, this.#unreadMs)
    this.#unreadMs -= unread
    if (this.stopped) this.graceMs += elapsedMs - stalledMs - unread
    else this.deadline += stalledMs + unread
  }

  get run_id(): string {
    return this.job.invocation.run.run_id
  }

  /** Calls `onAbort` when the run is cancelled, also if it was cancelled already. */
  listen(): void {
    const { signal } = this.job.invocation
    if (signal.aborted) this.#onAbort()
    else signal.addEventListener('abort', this.#onAbort, { once: true })
  }

  unlisten(): void {
    this.job.invocation.signal.removeEventListener('abort', this.#onAbort)
  }

  log(source: 'stdout' | 'stderr', text: string, hold: Hold): void {
    if (this.#outputBytes <= 0 || this.#outputLines-- <= 0)
      throw new ProtocolViolation('Expected no output of the run beyond its limit')
    const cut = text.slice(0, Math.min(this.#outputBytes, MAX_LINE))
    this.#outputBytes -= cut.length + 1
    if (!this.job.settled) this.job.invocation.onLog({ source, text: cut }, hold)
  }

  /** The outcome of a run that was stopped, whatever it returned. */
  get stopOutcome(): Extract<Outcome, { status: 'failed' }> {
    return { status: 'failed', error: this.#stopError }
  }

  get #stopError(): RunError {
    return this.stopped?.reason === 'timeout'
      ? { code: 'timeout', message: `The run did not end within ${this.job.invocation.timeoutMs} ms` }
      : { code: 'cancelled', message: 'The run was cancelled' }
  }
}
