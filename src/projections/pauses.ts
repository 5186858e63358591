import type { EventOf } from '../events/index.ts'

/** The last pause of a schedule, bound to the function and not to a build. */
export interface Pause {
  readonly ns: string
  readonly var: string
  /** ISO 8601. */
  readonly paused_at: string
  /** Null while it lasts. Ticks before this time do not fire. */
  readonly resumed_at: string | null
}

type Named = Pick<Pause, 'ns' | 'var'>
type WithPauses = { readonly pauses: readonly Pause[] }

/** The pauses of a list by function: one reader asks for each of thousands of functions. */
const byFunction = new WeakMap<readonly Pause[], ReadonlyMap<string, Pause>>()

const keyOf = ({ ns, var: name }: Named): string => `${ns}/${name}`

/** The last pause of the schedule of a function; undefined if it was never paused. */
export const pauseOf = ({ pauses }: WithPauses, fn: Named): Pause | undefined => {
  const known = byFunction.get(pauses) ?? new Map(pauses.map((pause) => [keyOf(pause), pause]))
  byFunction.set(pauses, known)
  return known.get(keyOf(fn))
}

/** Whether no tick starts the function. */
export const isPaused = (project: WithPauses, fn: Named): boolean => pauseOf(project, fn)?.resumed_at === null

/** The pauses of a project after a fact. Folding it twice changes nothing. */
export const pausesAfter = (
  pauses: readonly Pause[],
  { type, ns, var: name }: EventOf<'SchedulePaused' | 'ScheduleResumed'>,
  at: string,
): readonly Pause[] => {
  const found = pauses.findIndex((pause) => pause.ns === ns && pause.var === name)
  const before = pauses[found]
  if (type === 'SchedulePaused') {
    const pause = { ns, var: name, paused_at: at, resumed_at: null }
    return before ? pauses.with(found, pause) : [...pauses, pause]
  }
  return before ? pauses.with(found, { ...before, resumed_at: at }) : pauses
}
