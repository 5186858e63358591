import { isIdle } from '../../domain/stream.ts'
import type { Recorded } from '../../events/event.ts'
import type { EventOf } from '../../events/index.ts'
import { payloadOf } from '../../events/payload.ts'
import { streamOf } from '../../events/streams.ts'
import type { ApiDeps } from '../deps.ts'
import { runOfFacts } from '../present/run.ts'
import type { Ending } from '../../projections/outcome.ts'
import { frame, type SseReply } from './sse.ts'

type Started = EventOf<'RunStarted'>

export interface Tail {
  readonly stream_id: string
  readonly env_id: string
  /** The revision the client has; -1 for none. */
  readonly after: number
  /** Complete as soon as the stream is idle; else only once something has happened. */
  readonly active: boolean
  /** Only runs of this project, by id or name. */
  readonly project?: string
}

/** Frames of a batch are written together up to this size: a few may be megabytes each, and the client may be slow. */
const TOGETHER_BYTES = 64 << 10

/**
 * Follows one svc stream until it is complete, the time is over or the client is gone (SPEC.md,
 * Server-sent events). Ids are revisions of the stream: whoever comes back with one gets what follows (I5).
 */
export const tailStream = async (client: SseReply, tail: Tail, deps: ApiDeps): Promise<void> => {
  const { stream_id, env_id } = tail
  const timeout = AbortSignal.timeout(deps.sseTimeoutMs)
  const signal = AbortSignal.any([client.gone, timeout, deps.stopping])
  const runs = new Map<string, Started>()
  let revision = tail.after
  let active = tail.active
  for await (const { events, caughtUp } of deps.store.follow(streamOf.stream(stream_id), {
    after: revision,
    signal,
  })) {
    let together: Buffer[] = []
    let size = 0
    const send = async () => {
      if (size > 0) client.write(together.length === 1 ? (together[0] as Buffer) : Buffer.concat(together))
      together = []
      size = 0
      await client.flushed()
    }
    for (const recorded of events) {
      const bytes = await streamFrame(recorded, runs, {
        env_id,
        deps,
        ...(tail.project !== undefined && { project: tail.project }),
      })
      revision = recorded.revision
      if (!bytes) continue
      together.push(bytes)
      size += bytes.length
      if (size >= TOGETHER_BYTES) await send()
      if (client.gone.aborted) return
    }
    await send()
    active ||= events.length > 0
    if (!caughtUp || !active || client.gone.aborted) continue
    const isComplete = await deps.aggregates.streams.read(
      streamOf.stream(stream_id),
      (state, last) => last === revision && isIdle(state),
    )
    if (isComplete) return client.end(complete(stream_id, 'completed', revision))
  }
  client.end(complete(stream_id, 'timeout', revision))
}

const complete = (stream_id: string, reason: 'completed' | 'timeout', revision: number): Buffer =>
  frame(String(revision), 'stream:complete', { stream_id, reason, next: String(revision) })

interface Scope {
  readonly env_id: string
  readonly deps: ApiDeps
  readonly project?: string
}

const streamFrame = async (
  recorded: Recorded,
  runs: Map<string, Started>,
  scope: Scope,
): Promise<Buffer | null> => {
  const { event, revision } = recorded
  const id = String(revision)
  const { payloads } = scope.deps
  switch (event.type) {
    case 'RunStarted': {
      runs.set(event.run_id, event)
      if (!isWanted(event, scope)) return null
      const type = 'run:start'
      return frame(id, type, { type, run: await runOfFacts(event, null, { env_id: scope.env_id, payloads }) })
    }
    case 'StreamDataEmitted': {
      if (scope.project !== undefined) {
        const open = await scope.deps.aggregates.streams.read(
          recorded.stream,
          (state) => state.runs.get(event.run_id)?.plan,
        )
        const plan = runs.get(event.run_id) ?? open
        if (!plan || !isWanted(plan, scope)) return null
      }
      const { run_id, data_type } = event
      const payload = await payloads.load(payloadOf('payload', event))
      const type = 'stream:data'
      return frame(id, type, { type, run_id, data_type, payload })
    }
    case 'RunSucceeded':
    case 'RunFailed':
    case 'RunCancelled': {
      const started = runs.get(event.run_id) ?? (await startedOf(event, recorded.stream, scope.deps))
      if (!started || !isWanted(started, scope)) return null // cancelled before it started: it never was a run
      runs.delete(event.run_id)
      const type =
        event.type === 'RunSucceeded' ? 'run:stop' : event.type === 'RunFailed' ? 'run:fail' : 'run:cancel'
      return frame(id, type, {
        type,
        run: await runOfFacts(started, event, { env_id: scope.env_id, payloads }),
      })
    }
    default:
      return null
  }
}

const isWanted = (
  { project_id, project_name }: { project_id: string; project_name: string },
  { project }: Scope,
): boolean => project === undefined || project === project_id || project === project_name

/** The start of a run that began before this tail did. */
const startedOf = async (
  { started_revision }: Ending,
  stream: string,
  { store }: ApiDeps,
): Promise<Started | null> => {
  if (started_revision === null) return null
  for await (const { event } of store.read(stream, { from: started_revision, limit: 1 })) {
    if (event.type === 'RunStarted') return event
  }
  return null
}
