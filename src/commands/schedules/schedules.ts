import { clock, isoOf } from '../../clock.ts'
import { ticksOf } from '../../domain/cron.ts'
import { AppError } from '../../errors.ts'
import type { FunctionSpec } from '../../events/project.ts'
import type { Directory } from '../../projections/directory.ts'
import type { DirectoryBuild, DirectoryProject } from '../../projections/directoryProject.ts'
import { isPaused, pauseOf } from '../../projections/pauses.ts'
import { scheduledRunsOf } from '../../projections/runs.ts'
import type { CommandDeps } from '../deps.ts'
import { demandReadable } from '../projects/demandReadable.ts'
import { projectFor } from '../projects/projectFor.ts'
import { scheduleIdOf } from '../runs/fireTick.ts'

/** A schedule of a deployed build. */
export interface Schedule {
  readonly schedule_id: string
  readonly project: DirectoryProject
  readonly build: DirectoryBuild
  readonly fn: FunctionSpec & { readonly schedule: NonNullable<FunctionSpec['schedule']> }
}

/** The state of a schedule beside its build. Times are ISO 8601. */
export interface ScheduleState {
  readonly paused: boolean
  readonly paused_at: string | null
  /** Null while the schedule is paused, and if there is no further tick. */
  readonly next_time: string | null
  /** The newest attempt that a tick or a caller began, and when it was due. */
  readonly last_run_id: string | null
  readonly last_time: string | null
}

/** The schedules of the deployed build of a project, in the order of its functions. */
export const schedulesOf = (project: DirectoryProject): Schedule[] => {
  const { deployed: build, project_id } = project
  if (!build) return []
  return scheduledIn(build, project_id).map((scheduled) => ({ ...scheduled, project, build }))
}

/** The schedules of a project. Throws `unavailable` if its deployed build cannot be read. */
export const knownSchedulesOf = (project: DirectoryProject): Schedule[] => {
  demandReadable(project, project.deployed)
  return schedulesOf(project)
}

type Scheduled = Pick<Schedule, 'schedule_id' | 'fn'>

/** A build may have 10,000 schedules, and each pause reads all of them: their ids are hashes. */
const known = new WeakMap<DirectoryBuild, readonly Scheduled[]>()

const scheduledIn = (build: DirectoryBuild, project_id: string): readonly Scheduled[] => {
  const found =
    known.get(build) ??
    build.functions.flatMap(({ schedule, ...fn }) =>
      schedule ? [{ schedule_id: scheduleIdOf(project_id, fn.ns, fn.var), fn: { ...fn, schedule } }] : [],
    )
  known.set(build, found)
  return found
}

/** Returns a schedule of a project (id or name) of the environment. Throws `not_found`, also for other environments (I7). */
export const scheduleFor = (
  directory: Directory,
  env_id: string,
  { project, schedule_id }: { readonly project: string; readonly schedule_id: string },
): Schedule => {
  const found = knownSchedulesOf(projectFor(directory, env_id, project)).find(
    (each) => each.schedule_id === schedule_id,
  )
  if (!found) throw new AppError('not_found', `The deployed build has no schedule ${schedule_id}`)
  return found
}

/** Reads the state of a schedule. The runs may lack the newest ones: a list of schedules does not wait for their rebuild. */
export const stateOf = async (
  { runs }: Pick<CommandDeps['views'], 'runs'>,
  schedule: Schedule,
): Promise<ScheduleState> => {
  const { project, fn } = schedule
  const bounds = scheduledRunsOf(`${project.project_id}/${fn.ns}/${fn.var}`)
  const query = {
    equal: {},
    sort: 'of_schedule',
    ...bounds,
    descending: true,
    totals: false,
    limit: 1,
    offset: 0,
  }
  const [last] = (await runs.find(query)).items
  const pause = pauseOf(project, fn)
  const paused = isPaused(project, fn)
  const next = nextTickOf(schedule, clock.now())
  return {
    paused,
    paused_at: paused ? (pause?.paused_at ?? null) : null,
    next_time: next === null ? null : isoOf(next),
    last_run_id: last?.run_id ?? null,
    last_time: last?.requested_at ?? null,
  }
}

/**
 * The first tick of a schedule after an instant, both in milliseconds since 1970; null while it is paused, and if there is
 * none. An expression that cannot be read has none; the saga logs it.
 */
export const nextTickOf = ({ project, fn }: Schedule, after: number): number | null => {
  if (isPaused(project, fn)) return null
  try {
    return ticksOf(fn.schedule.cron, fn.schedule.timezone).after(after)
  } catch {
    return null
  }
}
