import type { RunError } from '../events/run.ts'
import type { Outcome } from '../ports/runtime.ts'

/**
 * The run that ended its process. `unknown`: each of its runs is a suspect and runs again in a process of its own.
 * `none`: the service ended the process, or code of a run that had ended did.
 */
export type Culprit<Run> =
  | { readonly kind: 'run'; readonly run: Run }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'none'; readonly message: string }

/** The evidence at the end of a process with runs. */
interface Evidence<Run> {
  /** The runs that had not ended, also those that the service gave up. */
  readonly open: readonly Run[]
  /** The number of runs that the process ever received. */
  readonly begun: number
  /** The run that did not stop in time, for which the service ended the process. */
  readonly gaveUp?: Run | undefined
  /** The reason of the service, if it ended the process without fault of a run. */
  readonly retired?: string | undefined
  /** The open run that a frame names: it sent a forbidden frame, or it called for the end of the process. */
  readonly named?: Run | undefined
  /** Code of a run that had ended called for the end of the process. */
  readonly byEnded?: boolean
}

/**
 * Finds the culprit of a dead process. Frame ids are secret within a process, so a frame that names a run is as credible as
 * its result. The only run of a process needs no evidence: a forged frame cannot shift its blame for ever.
 */
export const culpritOf = <Run>({
  open,
  begun,
  gaveUp,
  retired,
  named,
  byEnded = false,
}: Evidence<Run>): Culprit<Run> => {
  if (gaveUp !== undefined) return { kind: 'run', run: gaveUp }
  if (retired !== undefined) return { kind: 'none', message: retired }
  const [only] = open
  if (only !== undefined && (begun === 1 || (open.length === 1 && !byEnded)))
    return { kind: 'run', run: only }
  if (named !== undefined) return { kind: 'run', run: named }
  return byEnded ? { kind: 'none', message: 'lost with a run that had ended' } : { kind: 'unknown' }
}

/** The outcome of a run whose process ended with `reason`. */
export const outcomeAfter = <Run>(
  culprit: Culprit<Run>,
  run: Run,
  { reason, idOf }: { readonly reason: RunError; readonly idOf: (run: Run) => string },
): Exclude<Outcome, { status: 'succeeded' }> => {
  switch (culprit.kind) {
    case 'run':
      return culprit.run === run
        ? { status: 'failed', error: reason }
        : lost(`lost with run ${idOf(culprit.run)}`)
    case 'unknown':
      return lost(`lost with its process, which ended because of one of its runs: ${reason.message}`)
    case 'none':
      return lost(culprit.message)
    default:
      return culprit satisfies never
  }
}

const lost = (message: string): Extract<Outcome, { status: 'lost' }> => ({
  status: 'lost',
  error: { code: 'worker_lost', message },
})
