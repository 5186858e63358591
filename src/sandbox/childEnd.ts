import type { RunError } from '../events/run.ts'
import type { Outcome } from '../ports/runtime.ts'
import type { Ending } from './childProcess.ts'
import { culpritOf, outcomeAfter } from './culprit.ts'
import type { OpenRun } from './openRun.ts'

/** Collects the causes for the end of one child, and settles the runs that end with it. */
export class ChildEnd {
  #killedFor: RunError | undefined
  /** The run that did not stop in time, for which the child was killed. */
  #gaveUp: OpenRun | undefined
  /** The reason of the service for the end of a child without fault of a run. */
  #shutDown: string | undefined
  /** The id of the run whose code called for the end of the process; null if that run had ended. */
  #endingBy: number | null | undefined
  /** A run whose time was over since then may have lost it to a run that occupied the process. */
  #silentSince = Infinity

  killFor(error: RunError): void {
    this.#killedFor ??= error
  }

  giveUp(run: OpenRun): void {
    this.#gaveUp = run
  }

  shutDown(reason: string): void {
    this.#shutDown = reason
  }

  endingBy(id: number | undefined): void {
    this.#endingBy = id ?? null
  }

  /** The child was killed because it was silent since then, in monotonic milliseconds. */
  silentSince(at: number): void {
    this.#silentSince = Math.min(this.#silentSince, at)
  }

  /** Settles the open runs of the ended child, which received `begun` runs in all. */
  settle(ending: Ending, open: ReadonlyMap<number, OpenRun>, begun: number): void {
    const { code, message, frameId } = ending
    const reason = code === 'protocol_violation' ? { code, message } : (this.#killedFor ?? { code, message })
    const culprit = culpritOf({
      open: [...open.values()],
      begun,
      gaveUp: this.#gaveUp,
      retired: this.#shutDown,
      named: open.get(frameId ?? this.#endingBy ?? -1),
      byEnded: this.#endingBy === null,
    })
    for (const run of open.values()) {
      run.unlisten()
      run.job.suspect = culprit.kind === 'unknown'
      run.job.settle(this.#outcomeOf(run, outcomeAfter(culprit, run, { reason, idOf })))
    }
  }

  /** A stopped run ends as such, unless it lost its time to another run. */
  #outcomeOf(run: OpenRun, outcome: Outcome): Outcome {
    if (!run.stopped) return outcome
    const { reason, at } = run.stopped
    const lostItsTime = reason === 'timeout' && at >= this.#silentSince
    return outcome.status === 'lost' && lostItsTime ? outcome : run.stopOutcome
  }
}

const idOf = ({ run_id }: OpenRun): string => run_id
