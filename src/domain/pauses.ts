import type { EventOf } from '../events/index.ts'

/** A schedule of a project: the function that it starts, whichever build is deployed. */
export interface ScheduleName {
  readonly project_id: string
  readonly ns: string
  readonly var: string
}

export type PauseCommand = { readonly type: 'PauseSchedule' | 'ResumeSchedule' } & ScheduleName
export type PauseEvent = EventOf<'SchedulePaused' | 'ScheduleResumed'>

const keyOf = ({ ns, var: name }: ScheduleName): string => `${ns}/${name}`

/** Decides on a pause or its end. A repeated command changes nothing. `paused`: the references of the paused functions. */
export const decidePause = ({ type, ...name }: PauseCommand, paused: ReadonlySet<string>): PauseEvent[] => {
  const isPaused = paused.has(keyOf(name))
  if (type === 'PauseSchedule') return isPaused ? [] : [{ type: 'SchedulePaused', ...name }]
  return isPaused ? [{ type: 'ScheduleResumed', ...name }] : []
}

/** Changes the paused functions by a fact. */
export const evolvePauses = (paused: Set<string>, event: PauseEvent): void => {
  if (event.type === 'SchedulePaused') paused.add(keyOf(event))
  else paused.delete(keyOf(event))
}
