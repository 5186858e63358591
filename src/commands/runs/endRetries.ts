import { clock } from '../../clock.ts'
import type { Cursor } from '../../events/event.ts'
import type { RunError } from '../../events/run.ts'
import { streamOf } from '../../events/streams.ts'
import { everyDoc } from '../../loops/everyDoc.ts'
import type { RunDoc } from '../../projections/runs.ts'
import type { Caller, CommandDeps } from '../deps.ts'

/** A project that was deleted by the fact at this position. */
export interface DeletedProject {
  readonly env_id: string
  readonly project_id: string
  readonly at: Cursor
}

/**
 * Fails the runs of a deleted project that wait for their retries, because none of these could begin. A retry that is requested
 * meanwhile fails when a worker claims it. Rejects with `unavailable` while the read model is behind the deletion.
 */
export const endRetries = async (
  {
    aggregates,
    views,
  }: Pick<CommandDeps, 'aggregates'> & {
    readonly views: Pick<CommandDeps['views'], 'reach' | 'runs'>
  },
  { env_id, project_id, at }: DeletedProject,
  { cause }: Pick<Caller, 'cause'>,
): Promise<void> => {
  await views.reach(at, 'runs')
  const waiting = { id: 'run_id', equal: { env_id, status: 'pending_retry' }, sort: 'order' } as const
  for await (const run of everyDoc(views.runs, waiting)) {
    if (run.project_id !== project_id) continue
    const { run_id, stream_id } = run
    const now = clock.iso()
    const command = { type: 'AbandonRun', run_id, was: 'pending_retry', error: errorOf(run), now } as const
    await aggregates.streams.handle(streamOf.stream(stream_id), command, { ...cause, correlation_id: run_id })
  }
}

const errorOf = ({ project_name, error }: RunDoc): RunError => ({
  code: 'function_not_found',
  message: `The project ${project_name} was deleted, so the run is not retried`,
  ...(error && {
    cause: {
      message: error.message,
      code: error.code,
      ...(error.stack !== undefined && { stack: error.stack }),
    },
  }),
})
