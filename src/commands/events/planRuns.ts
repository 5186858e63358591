import { derivedIdBeside } from '../../ids.ts'
import { CALL, CANCEL, REPLAY } from '../../events/eventType.ts'
import type { EventOf } from '../../events/index.ts'
import type { RunPlan } from '../../events/run.ts'
import type { Directory } from '../../projections/directory.ts'
import { type Wired, partsOfRef } from '../../projections/wiring.ts'
import type { RunDoc } from '../../projections/runs.ts'

type Published = Pick<
  EventOf<'EventPublished'>,
  'event_id' | 'stream_id' | 'event_type' | 'depth' | 'only_projects'
>

/** The functions that an event starts, and how each run is planned: an event may have many thousands of handlers. */
export interface PlannedStarts {
  readonly kind: 'start'
  readonly functions: readonly Wired[]
  readonly planOf: (deployed: Wired) => RunPlan
  /** The ids of projects whose functions are not known, so that they may lack runs. */
  readonly unread: readonly string[]
}

/** The effect of an event: runs to start, or a run to cancel. */
export type Planned = PlannedStarts | { readonly kind: 'cancel'; readonly run_id: string }

interface Known {
  readonly directory: Pick<Directory, 'handlersOf' | 'functionAt' | 'project' | 'unreadableIn'>
  /** The run that `svc:replay` names, if it exists in the environment. */
  readonly replayed?: RunDoc | null
}

/**
 * Plans the runs of an event from the directory alone. Ids derive from event and function, so every delivery of the
 * event plans the same runs (I3). `revision` is the event's place in its stream, where handlers read their input.
 */
export const planRuns = (
  { event_id, stream_id, event_type, depth, only_projects }: Published,
  data: unknown,
  { env_id, revision, traceparent }: { env_id: string; revision: number; traceparent?: string | undefined },
  { directory, replayed }: Known,
): Planned => {
  const starting = (
    functions: readonly Wired[],
    run_type: RunPlan['run_type'],
    more: Partial<RunPlan> = {},
  ): PlannedStarts => ({
    kind: 'start',
    functions,
    unread: [],
    planOf: (deployed) => ({
      run_id: runIdOf(event_id, deployed),
      stream_id,
      run_type,
      ...placeOf(deployed),
      ...(deployed.fn.retry && deployed.fn.retry.attempts > 0 && { retry: deployed.fn.retry }),
      attempt: 1,
      ...(depth !== undefined && { depth }),
      ...(traceparent !== undefined && { traceparent }),
      event_id,
      input_at: { stream_id, revision },
      ...more,
    }),
  })
  const nothing = (unread: readonly string[] = []): Planned => ({ ...starting([], 'event'), unread })
  const unreadIn = (isConcerned: (project_id: string) => boolean): readonly string[] =>
    directory
      .unreadableIn(env_id)
      .map(({ project_id }) => project_id)
      .filter(isConcerned)
  const fields = typeof data === 'object' && data !== null ? (data as Record<string, unknown>) : {}

  switch (event_type) {
    case CALL: {
      const named = fields['project']
      const project = typeof named === 'string' ? directory.project(env_id, named) : undefined
      if (named !== undefined && !project) return nothing()
      const deployed = directory.functionAt(env_id, String(fields['fn']), project?.project_id)
      if (deployed) return starting([deployed], 'call')
      return nothing(unreadIn((id) => project === undefined || id === project.project_id))
    }
    case CANCEL:
      return { kind: 'cancel', run_id: String(fields['run_id']) }
    case REPLAY: {
      if (!replayed?.fn || !replayed.input_at) return nothing()
      const { run_id, run_type, input_at, project_id } = replayed
      const deployed = directory.functionAt(env_id, replayed.fn, project_id)
      if (!deployed) return nothing(unreadIn((id) => id === project_id))
      return starting([deployed], run_type, { input_at, replay_of: run_id })
    }
    default: {
      const isConcerned = (project_id: string): boolean => only_projects?.includes(project_id) ?? true
      const handlers = directory.handlersOf(env_id, event_type)
      const concerned = handlers.filter(({ project }) => isConcerned(project.project_id))
      return { ...starting(concerned, 'event'), unread: unreadIn(isConcerned) }
    }
  }
}

/** Bytes of claims in one append. EventStoreDB accepts 1 MiB, which other commands of the stream may share. */
const PART_BYTES = 256 << 10
/** Runs in one append, so that neither its append nor their begin needs a long turn of the event loop. */
export const PART_RUNS = 250
/** As many runs always fit, because each one has at most 100 keys of context variables. */
const FEW = 16

/** Runs that are claimed in one append. */
export class Part {
  readonly plans: RunPlan[] = []
  readonly #isWhole: boolean
  #bytes = 0

  /** `of`: the number of runs that the event starts. */
  constructor(of: number) {
    this.#isWhole = of <= FEW
  }

  /** Adds a run; returns false if it does not fit. */
  add(plan: RunPlan): boolean {
    if (!this.#isWhole) {
      this.#bytes += Buffer.byteLength(JSON.stringify(plan))
      if (this.plans.length >= FEW && (this.#bytes > PART_BYTES || this.plans.length >= PART_RUNS))
        return false
    }
    this.plans.push(plan)
    return true
  }
}

/** Id of the run of a function that an event starts. */
export const runIdOf = (event_id: string, { project, fn }: Pick<Wired, 'project' | 'fn'>): string =>
  derivedIdBeside(event_id, project.project_id, fn.ns, fn.var)

/** The same for the reference `ns/var` in a project. `publishCall` returns it before the run is planned. */
export const calledRunIdOf = (event_id: string, project_id: string, ref: string): string => {
  const { ns, name } = partsOfRef(ref)
  return derivedIdBeside(event_id, project_id, ns, name)
}

/** The part of a plan that names the code to run. */
export const placeOf = ({
  project,
  build,
  fn,
}: Wired): Pick<
  RunPlan,
  'build_id' | 'project_id' | 'project_name' | 'target' | 'timeout' | 'once' | 'marks_begin' | 'context'
> => ({
  build_id: build.build_id,
  project_id: project.project_id,
  project_name: project.name,
  target: { ns: fn.ns, var: fn.var },
  ...(fn.timeout !== undefined && { timeout: fn.timeout }),
  ...(fn.once && { once: true, marks_begin: true }),
  ...(fn.context && { context: fn.context }),
})
