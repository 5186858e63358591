import { streamOf } from '../../events/streams.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { type Schedule, scheduleFor } from './schedules.ts'

/**
 * Pauses a schedule of the deployed build, or resumes it; a repetition changes nothing. The pause is bound to the function,
 * so it outlives builds. Resolves when this node knows it. Rejects with `not_found`.
 */
export const switchSchedule = async (
  { aggregates, views }: Pick<CommandDeps, 'aggregates' | 'views'>,
  { paused, ...at }: { readonly project: string; readonly schedule_id: string; readonly paused: boolean },
  { cause }: Caller,
): Promise<Schedule> => {
  await views.settled('builds')
  const {
    project: { project_id },
    fn: { ns, var: name },
  } = scheduleFor(views.directory, cause.env_id, at)
  const type = paused ? 'PauseSchedule' : 'ResumeSchedule'
  await aggregates.projects.handle(streamOf.project(project_id), { type, project_id, ns, var: name }, cause)
  await views.settled('builds')
  return scheduleFor(views.directory, cause.env_id, at)
}
