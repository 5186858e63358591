import { fireTick, hasFired, type TickDeps } from '../commands/runs/fireTick.ts'
import { schedulesOf } from '../commands/schedules/schedules.ts'
import { type Ticks, ticksOf } from '../domain/cron.ts'
import { BoundedMap } from '../boundedMap.ts'
import { clock, isoOf } from '../clock.ts'
import { isAppError, messageOf } from '../errors.ts'
import type { FunctionSpec } from '../events/project.ts'
import type { Logger } from '../logger.ts'
import type { FairTurns } from '../loops/fairTurns.ts'
import { slices } from '../loops/slices.ts'
import { throttled } from '../loops/throttled.ts'
import type { FunctionRates } from '../plans/functionRates.ts'
import type { Directory } from '../projections/directory.ts'
import type { DirectoryProject } from '../projections/directoryProject.ts'
import { isPaused, pauseOf } from '../projections/pauses.ts'
import type { Deployed } from '../projections/wiring.ts'
import type { EventStore } from '../ports/eventStore.ts'
import { LOOK_EVERY_MS } from './alarms.ts'
import type { Saga, SagaCore } from './saga.ts'

/** A missed tick still fires if a node returns within this time; older ticks are skipped. */
const CATCH_UP_MS = 60_000
/** A tick is too late when its alarm rings after this time: the machine was suspended for longer than the rule allows. */
const TOO_LATE_MS = CATCH_UP_MS + LOOK_EVERY_MS
/** Schedules whose first ticks are computed together. */
const ARMED_TOGETHER = 16
/** Organizations whose skipped ticks are logged apart. */
const KEPT_ORGS = 1000

export interface Schedule {
  readonly schedule_id: string
  readonly ticks: Ticks
  /** Time of the deploy or of the resumption, milliseconds since 1970. Earlier ticks do not fire. */
  readonly since: number
  readonly scheduled: Deployed
}

interface Tick {
  readonly schedule: Schedule
  /** Milliseconds since 1970. */
  readonly at: number
}

export type ScheduleInput =
  /** The schedules of a project that have changed, and what they were before. */
  | {
      readonly type: 'deployed'
      readonly schedules: readonly Schedule[]
      readonly former: readonly Schedule[]
    }
  | ({ readonly type: 'due' } & Tick)
  | ({ readonly type: 'fired' } & Tick)

/**
 * A schedule has one armed tick at a time: the next is armed after it has fired. A machine that was suspended does not
 * fire the ticks that it missed.
 */
export const fireSchedulesCore: SagaCore<null, ScheduleInput, Tick> = {
  initial: null,
  react(state, input, now) {
    switch (input.type) {
      case 'deployed': {
        const { schedules, former } = input
        const dropped = former.map(({ schedule_id: key }) => ({ do: 'drop', key }) as const)
        const armed = schedules.flatMap((schedule) => arm(schedule, schedule.since, now))
        return { state, steps: [...dropped, ...armed] }
      }
      case 'due': {
        const { schedule, at } = input
        const isClockSetBack = now < at
        if (isClockSetBack) return { state, steps: arm(schedule, now, now) }
        if (now - at > TOO_LATE_MS) return { state, steps: arm(schedule, at, now) }
        const key = schedule.schedule_id
        return { state, steps: [{ do: 'carryOut', key, command: { schedule, at } }] }
      }
      case 'fired':
        return { state, steps: arm(input.schedule, input.at, now) }
      default:
        return input satisfies never
    }
  },
}

/**
 * Sets the alarm for the first tick after `after`, but skips ticks older than `CATCH_UP_MS`. `after` is in the future only
 * if the clock was set back since.
 */
const arm = (schedule: Schedule, after: number, now: number) => {
  const at = schedule.ticks.after(Math.max(Math.min(after, now), now - CATCH_UP_MS))
  if (at === null) return []
  const input = { type: 'due', schedule, at } as const
  return [{ do: 'setAlarm', key: schedule.schedule_id, at, input } as const]
}

interface FireDeps extends TickDeps {
  readonly directory: Pick<
    Directory,
    'env' | 'usedSince' | 'orgIdOf' | 'projects' | 'projectById' | 'onChange' | 'reach'
  >
  readonly store: Pick<EventStore, 'head'>
  readonly turns: Pick<FairTurns, 'take'>
  readonly functionRates: Pick<FunctionRates, 'turnsOf'>
  readonly signal: AbortSignal
  readonly logger: Logger
  /** Milliseconds since 1970. */
  readonly now?: () => number
}

/**
 * Fires the schedules of the deployed builds (SPEC.md, Schedule). Each tick has a derived stream, so it fires once even
 * if several nodes ring. A tick that rings after a pause was acknowledged, on whichever node, does not fire.
 */
export const fireSchedules = (deps: FireDeps): Saga<null, ScheduleInput, Tick> => {
  const warnOf = warningsOf(deps)
  return {
    name: 'fireSchedules',
    ...fireSchedulesCore,

    async *inputs(signal) {
      const { directory, logger } = deps
      const known = new Map<string, readonly Schedule[]>()
      const deployed = async function* (
        project_id: string,
        project: DirectoryProject | undefined,
      ): AsyncGenerator<ScheduleInput> {
        const former = known.get(project_id) ?? []
        const before = new Map(former.map((one) => [one.schedule_id, one]))
        const firing = project ? await firingIn(project, logger) : []
        const schedules = firing.map((one) => continued(one, before.get(one.schedule_id)))
        if (schedules.length > 0) known.set(project_id, schedules)
        else known.delete(project_id)
        const same = new Set(schedules.filter((one) => isSame(one, before.get(one.schedule_id))).map(idOf))
        const others = (all: readonly Schedule[]) => all.filter((one) => !same.has(one.schedule_id))
        const armed = others(schedules)
        let dropped = others(former)
        for (let from = 0; from === 0 || from < armed.length; from += ARMED_TOGETHER) {
          const wait = slices.take()
          if (wait) await wait
          yield { type: 'deployed', schedules: armed.slice(from, from + ARMED_TOGETHER), former: dropped }
          dropped = []
        }
      }
      const changed = new Set<string>()
      let wake = () => {}
      const stop = directory.onChange((project_id) => {
        changed.add(project_id)
        wake()
      })
      signal.addEventListener('abort', () => wake(), { once: true })
      try {
        for (const project of directory.projects()) yield* deployed(project.project_id, project)
        while (!signal.aborted) {
          for (const project_id of changed) {
            changed.delete(project_id)
            yield* deployed(project_id, directory.projectById(project_id))
          }
          if (changed.size === 0 && !signal.aborted) await new Promise<void>((resolve) => (wake = resolve))
        }
      } finally {
        stop()
      }
    },

    async carryOut({ schedule, at }) {
      const { schedule_id, scheduled } = schedule
      const error = await fire(deps, schedule, at).catch(refusalOf)
      if (error !== null)
        warnOf(scheduled.project.env_id)('A tick was skipped', { schedule_id, tick: isoOf(at), error })
      return { type: 'fired', schedule, at }
    },

    afterFailure: ({ schedule, at }) => ({ type: 'fired', schedule, at }),
  }
}

/** The warnings of each organization are throttled: all its ticks may be skipped for one reason. */
const warningsOf = ({ directory, logger }: FireDeps): ((env_id: string) => Logger['warn']) => {
  const warnings = new BoundedMap<string, Logger['warn']>(KEPT_ORGS)
  return (env_id) => {
    const org_id = directory.orgIdOf(env_id)
    const warn = warnings.get(org_id) ?? throttled(logger)
    warnings.set(org_id, warn)
    return warn
  }
}

/** Fires a tick, or resolves with the reason why it is skipped. There is none if its schedule fires no more. */
const fire = async (deps: FireDeps, { scheduled }: Schedule, at: number): Promise<string | null> => {
  const { aggregates, directory, store, signal, functionRates, turns, now = clock.now } = deps
  const { env_id } = scheduled.project
  const isFired = () => hasFired({ aggregates }, { scheduled, tick: at })
  // A fact is in the past. If its time is in the future, a clock was ahead when it was stored: ticks do not wait for that time.
  const isBelieved = (time: number): boolean => time - now() <= TOO_LATE_MS
  await functionRates.turnsOf(env_id, signal)?.take('tick', isFired)
  const turn = turns.take(directory.orgIdOf(env_id))
  if (turn) await turn
  await directory.reach(await store.head()) // else this node may not know a pause or a deployment that another one has acknowledged
  if (!directory.env(env_id)) return null // it is being imported, or was deleted
  const used = directory.usedSince(env_id)
  if (at < used && isBelieved(used)) return null // the ticks before the end of an import are those of its source
  const current = currentOf(directory, scheduled)
  if (!current) return null
  if (isPaused(current.project, current.fn)) return null
  const resumed = resumedMs(current)
  if (at <= resumed && isBelieved(resumed)) return null // its alarm may be older than the pause
  if (now() - at > TOO_LATE_MS)
    return `It was due more than ${CATCH_UP_MS / 1000} s ago: the event store was unavailable, or the rate of the plan was used up`
  await fireTick(deps, { scheduled: current, tick: at })
  return null
}

/** The function in the build that is deployed now; undefined if it has no such schedule there. */
const currentOf = (
  directory: Pick<Directory, 'projectById'>,
  { project: { project_id }, build, fn }: Deployed,
): Deployed | undefined => {
  const project = directory.projectById(project_id)
  const deployed = project?.deployed
  if (!deployed) return undefined
  if (deployed === build) return { project, build, fn }
  const found = deployed.functions.find((one) => one.ns === fn.ns && one.var === fn.var)
  return found && isSameTicks(found, fn) ? { project, build: deployed, fn: found } : undefined
}

const isSameTicks = ({ schedule: one }: FunctionSpec, { schedule: other }: FunctionSpec): boolean =>
  one?.cron === other?.cron && one?.timezone === other?.timezone

/** The message of a refusal by the plan. Throws any other error. */
const refusalOf = (error: unknown): string => {
  if (isAppError(error, 'quota_exceeded') || isAppError(error, 'rate_limit_exceeded')) return error.message
  throw error
}

/**
 * A schedule that the previous build had too is as old as it was there: a tick that was due before the deployment and
 * has not fired yet is caught up. Ticks that have fired do not fire again, and those before a resumption do not fire.
 */
const continued = (schedule: Schedule, before: Schedule | undefined): Schedule => {
  if (!before || !isSameTicks(schedule.scheduled.fn, before.scheduled.fn)) return schedule
  return { ...schedule, since: Math.max(before.since, resumedMs(schedule.scheduled)) }
}

const idOf = ({ schedule_id }: Schedule): string => schedule_id

/** Whether the alarm of a schedule remains: the pause of one function changes no other of a build with thousands. */
const isSame = ({ since, scheduled: { build, project } }: Schedule, before: Schedule | undefined): boolean =>
  since === before?.since &&
  build === before.scheduled.build &&
  project.name === before.scheduled.project.name &&
  project.network === before.scheduled.project.network

/** When the schedule was resumed last, milliseconds since 1970; 0 if it never was. */
const resumedMs = ({ project, fn }: Pick<Deployed, 'project' | 'fn'>): number =>
  Date.parse(pauseOf(project, fn)?.resumed_at ?? '') || 0

/**
 * The schedules of a project's deployed build that fire. An unreadable schedule is logged and omitted. A build may have a
 * thousand expressions, so requests continue between them.
 */
const firingIn = async (project: DirectoryProject, logger: Logger): Promise<Schedule[]> => {
  const firing: Schedule[] = []
  await slices.each(schedulesOf(project), ({ schedule_id, ...scheduled }) => {
    const { fn, build } = scheduled
    if (isPaused(project, fn)) return
    try {
      const ticks = ticksOf(fn.schedule.cron, fn.schedule.timezone)
      const since = Math.max(Date.parse(build.since), resumedMs(scheduled))
      firing.push({ schedule_id, ticks, since, scheduled })
    } catch (error) {
      const { project_id } = project
      logger.warn('A schedule cannot be read', {
        project_id,
        ns: fn.ns,
        var: fn.var,
        error: messageOf(error),
      })
    }
  })
  return firing
}
