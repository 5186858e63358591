import { readFact } from './readFact.ts'
import { isIdle } from '../../domain/stream.ts'
import type { Recorded } from '../../events/event.ts'
import { type Payload, payloadOf } from '../../events/payload.ts'
import { streamOf } from '../../events/streams.ts'
import { evolveRun, type RunDoc } from '../../projections/runs.ts'
import type { Ending } from '../runs/awaitEnding.ts'
import type { CommandDeps } from '../deps.ts'
import type { StreamStart } from './startOfStream.ts'

/** One activity of a stream; `revision` is its place there. */
export type Activity =
  | {
      readonly kind: 'started' | 'succeeded' | 'failed' | 'cancelled'
      readonly revision: number
      readonly run: RunDoc
    }
  | {
      readonly kind: 'data'
      readonly revision: number
      readonly run_id: string
      readonly data_type: string
      readonly emitted_at: string
      readonly payload: Payload
    }

/** An item for a reader of a stream. `revision` is the place to continue from. */
export type StreamPart =
  | { readonly kind: 'activities'; readonly activities: readonly Activity[]; readonly revision: number }
  /** Facts after the reader's position have expired, up to this revision. */
  | { readonly kind: 'expired'; readonly revision: number }
  /** The last part: no run is running or due, and every event is dispatched. */
  | { readonly kind: 'complete'; readonly revision: number }

type Deps = Pick<CommandDeps, 'store' | 'aggregates'>
type Project = Pick<RunDoc, 'project_id' | 'project_name'>

/** Yields a stream from `start` until it is complete or the signal aborts. `project` (id or name) selects runs. */
export async function* followStream(
  deps: Deps,
  { start, project, signal }: { start: StreamStart; project?: string | undefined; signal: AbortSignal },
): AsyncGenerator<StreamPart> {
  const stream = streamOf.stream(start.stream_id)
  const isWanted = ({ project_id, project_name }: Project): boolean =>
    project === undefined || project === project_id || project === project_name
  const activityOf = activities(deps, { isWanted, wantsAll: project === undefined, after: start.after })
  let revision = start.after
  let mayBeComplete = start.mayBeComplete
  let isReported = true
  for await (const { events, caughtUp } of deps.store.follow(stream, { after: revision, signal })) {
    const kept = events.filter(({ event }) => event.type !== 'FactExpired')
    const found: Activity[] = []
    const before = (kept[0]?.revision ?? (events.at(-1)?.revision ?? revision) + 1) - 1
    if (before > revision) [revision, isReported] = [before, false]
    if (!isReported && (kept.length > 0 || caughtUp)) {
      yield { kind: 'expired', revision }
      isReported = true
    }
    for (const recorded of kept) {
      const activity = await activityOf(recorded)
      if (activity) found.push(activity)
      revision = recorded.revision
    }
    if (kept.length > 0) yield { kind: 'activities', activities: found, revision }
    mayBeComplete ||= events.length > 0
    if (!caughtUp || !mayBeComplete || signal.aborted) continue
    const { last, isQuiet } = await deps.aggregates.streams.read(stream, (state, last) => ({
      last,
      isQuiet: isIdle(state),
    }))
    const isShort = isQuiet && last !== revision && events.length === 0
    if (isShort && (await deps.store.isExpired(stream))) {
      revision = Math.max(revision, last)
      yield { kind: 'expired', revision }
      yield { kind: 'complete', revision }
      return
    }
    if (isQuiet && last === revision) {
      yield { kind: 'complete', revision }
      return
    }
  }
}

interface Wanted {
  readonly isWanted: (project: Project) => boolean
  readonly wantsAll: boolean
  /** The revision of the last fact that the reader has. */
  readonly after: number
}

/** Returns a function that maps the facts of a stream after a revision, in order, to activities; null for a fact without one. */
const activities = (deps: Deps, { isWanted, wantsAll, after }: Wanted) => {
  /** Started runs without an end so far. */
  const open = new Map<string, RunDoc>()
  let knowsEarlier = false
  /** A run that started before the reader's first fact. The state of the stream lacks its plan once it has ended. */
  const startedEarlier = async (stream: string, run_id: string): Promise<RunDoc | undefined> => {
    if (!knowsEarlier) for (const run of await openAt(deps, stream, after)) open.set(run.run_id, run)
    knowsEarlier = true
    return open.get(run_id)
  }
  return async (recorded: Recorded): Promise<Activity | null> => {
    const { event, revision, stream } = recorded
    switch (event.type) {
      case 'RunStarted': {
        if (event.reclaimed) return null // its first start was reported
        const run = evolveRun(null, recorded)
        if (!run) return null
        open.set(event.run_id, run)
        return isWanted(run) ? { kind: 'started', revision, run } : null
      }
      case 'StreamDataEmitted': {
        const { run_id, data_type } = event
        if (!wantsAll) {
          const planned = () => deps.aggregates.streams.read(stream, ({ runs }) => runs.get(run_id)?.plan)
          const run = open.get(run_id) ?? (await planned()) ?? (await startedEarlier(stream, run_id))
          if (!run || !isWanted(run)) return null
        }
        return {
          kind: 'data',
          revision,
          run_id,
          data_type,
          emitted_at: recorded.at,
          payload: payloadOf('payload', event),
        }
      }
      case 'RunSucceeded':
      case 'RunFailed':
      case 'RunCancelled': {
        const started = open.get(event.run_id) ?? (await startedAt(deps, recorded, event))
        open.delete(event.run_id)
        const run = started && evolveRun(started, recorded)
        if (!run || !isWanted(run)) return null // cancelled before it started, so no start was reported
        return { kind: ENDINGS[event.type], revision, run }
      }
      default:
        return null
    }
  }
}

const ENDINGS = { RunSucceeded: 'succeeded', RunFailed: 'failed', RunCancelled: 'cancelled' } as const

/** Reads the runs of a stream that had started at a revision, and not ended. */
const openAt = async ({ store }: Deps, stream: string, revision: number): Promise<Iterable<RunDoc>> => {
  const open = new Map<string, RunDoc>()
  for await (const recorded of store.read(stream)) {
    const { event } = recorded
    if (recorded.revision > revision) break
    if (event.type === 'RunStarted' && !event.reclaimed) {
      const run = evolveRun(null, recorded)
      if (run) open.set(run.run_id, run)
    } else if (event.type in ENDINGS && 'run_id' in event) open.delete(event.run_id)
  }
  return open.values()
}

/** Reads the ending run from the log when its start is before the reader's first fact. */
const startedAt = async (
  { store }: Deps,
  { stream }: Recorded,
  { started_revision: from }: Ending,
): Promise<RunDoc | null> => {
  const started = from === null ? null : await readFact(store, stream, from)
  return started && evolveRun(null, started)
}
