import { clock } from '../clock.ts'
import type { RunType } from '../events/run.ts'
import { Histogram, LONG } from '../ports/histogram.ts'
import type { Distribution, Sample } from '../ports/metrics.ts'
import type { Outcome } from '../ports/runtime.ts'

const OUTCOMES = ['succeeded', 'failed', 'timed_out', 'cancelled', 'lost'] as const
type Ended = Readonly<Record<(typeof OUTCOMES)[number], Histogram>>

const newEnded = (): Ended => ({
  succeeded: new Histogram(LONG),
  failed: new Histogram(LONG),
  timed_out: new Histogram(LONG),
  cancelled: new Histogram(LONG),
  lost: new Histogram(LONG),
})

/** Counts the runs that end in this worker. Runs that it returned have not ended. */
export class RunMeter {
  readonly #ended: Readonly<Record<RunType, Ended>> = {
    call: newEnded(),
    event: newEnded(),
    schedule: newEnded(),
    run: newEnded(),
    eval: newEnded(),
    repl: newEnded(),
  }
  /** The time from the claim of a run until a child receives it, seconds. */
  readonly starts = new Histogram(LONG)

  /** `claimedAt`: monotonic milliseconds. */
  started(claimedAt: number): void {
    this.starts.observe((clock.monotonic() - claimedAt) / 1000)
  }

  ended(run_type: RunType, outcome: Outcome, claimedAt: number): void {
    this.#ended[run_type][outcomeOf(outcome)].observe((clock.monotonic() - claimedAt) / 1000)
  }

  /** The time from the claim of a run to its end, seconds. */
  get durations(): readonly Distribution[] {
    return this.#all.filter(({ histogram }) => histogram.count > 0)
  }

  /** Each type and outcome, also without runs: a counter that appears with its first run shows no increase. */
  get runs(): readonly Sample[] {
    return this.#all.map(({ labels, histogram }) => ({ labels, value: histogram.count }))
  }

  get #all() {
    return Object.entries(this.#ended).flatMap(([run_type, ended]) =>
      OUTCOMES.map((outcome) => ({ labels: { run_type, outcome }, histogram: ended[outcome] })),
    )
  }
}

const outcomeOf = (outcome: Outcome): (typeof OUTCOMES)[number] => {
  if (outcome.status !== 'failed') return outcome.status
  const { code } = outcome.error
  if (code === 'timeout') return 'timed_out'
  return code === 'cancelled' ? 'cancelled' : 'failed'
}
