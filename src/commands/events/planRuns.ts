import { derivedIdBeside } from '../../ids.ts'
import { CALL, CANCEL, REPLAY } from '../../events/eventType.ts'
import type { EventOf } from '../../events/index.ts'
import type { RunPlan } from '../../events/run.ts'
import type { Directory } from '../../projections/directory.ts'
import type { Deployed } from '../../projections/wiring.ts'
import type { RunDoc } from '../../projections/runs.ts'

type Published = Pick<
  EventOf<'EventPublished'>,
  'event_id' | 'stream_id' | 'event_type' | 'depth' | 'only_projects'
>

/** The effect of an event: runs to start, or a run to cancel. */
export type Planned =
  | {
      readonly kind: 'start'
      readonly plans: readonly RunPlan[]
      /** The ids of projects whose functions are not known, so that they may lack runs. */
      readonly unread: readonly string[]
    }
  | { readonly kind: 'cancel'; readonly run_id: string }

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
  const planOf = (deployed: Deployed, run_type: RunPlan['run_type']): RunPlan => {
    const { build, fn } = deployed
    return {
      run_id: runIdOf(event_id, deployed),
      stream_id,
      run_type,
      ...placeOf(deployed),
      ...(fn.retry && fn.retry.attempts > 0 && { retry: fn.retry }),
      attempt: 1,
      ...(depth !== undefined && { depth }),
      ...(traceparent !== undefined && { traceparent }),
      event_id,
      build_id: build.build_id,
      input_at: { stream_id, revision },
    }
  }
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
      if (named !== undefined && !project) return { kind: 'start', plans: [], unread: [] }
      const deployed = directory.functionAt(env_id, String(fields['fn']), project?.project_id)
      if (deployed) return { kind: 'start', plans: [planOf(deployed, 'call')], unread: [] }
      const unread = unreadIn((id) => project === undefined || id === project.project_id)
      return { kind: 'start', plans: [], unread }
    }
    case CANCEL:
      return { kind: 'cancel', run_id: String(fields['run_id']) }
    case REPLAY: {
      const deployed =
        replayed?.fn && replayed.input_at
          ? directory.functionAt(env_id, replayed.fn, replayed.project_id)
          : undefined
      if (!deployed || !replayed?.input_at) {
        const unread = replayed?.fn && replayed.input_at ? unreadIn((id) => id === replayed.project_id) : []
        return { kind: 'start', plans: [], unread }
      }
      const plan = planOf(deployed, replayed.run_type)
      return {
        kind: 'start',
        plans: [{ ...plan, input_at: replayed.input_at, replay_of: replayed.run_id }],
        unread: [],
      }
    }
    default: {
      const isConcerned = (project_id: string): boolean => only_projects?.includes(project_id) ?? true
      const handlers = directory.handlersOf(env_id, event_type)
      const concerned = handlers.filter(({ project }) => isConcerned(project.project_id))
      return {
        kind: 'start',
        plans: concerned.map((found) => planOf(found, 'event')),
        unread: unreadIn(isConcerned),
      }
    }
  }
}

/** Bytes of claims in one append. EventStoreDB accepts 1 MiB, which other commands of the stream may share. */
const PART_BYTES = 256 << 10
/** As many runs always fit, because each one has at most 100 keys of context variables. */
const FEW = 16

/** Splits the runs of an event into parts that fit into one append each; there is at least one part. */
export const partsOf = (plans: readonly RunPlan[]): readonly (readonly RunPlan[])[] => {
  if (plans.length <= FEW) return [plans]
  const parts: RunPlan[][] = [[]]
  let bytes = 0
  for (const plan of plans) {
    const size = Buffer.byteLength(JSON.stringify(plan))
    if (bytes + size > PART_BYTES) {
      parts.push([])
      bytes = 0
    }
    bytes += size
    parts.at(-1)?.push(plan)
  }
  return parts
}

/** Id of the run of a function that an event starts. `callFunction` returns it before the run is planned. */
export const runIdOf = (event_id: string, { project, fn }: Pick<Deployed, 'project' | 'fn'>): string =>
  derivedIdBeside(event_id, project.project_id, fn.ns, fn.var)

/** The part of a plan that names the code to run. */
export const placeOf = ({
  project,
  build,
  fn,
}: Deployed): Pick<
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
