import { readFact } from '../streams/readFact.ts'
import { type Payload, payloadOf } from '../../events/payload.ts'
import type { LogLine } from '../../events/runLog.ts'
import { streamOf } from '../../events/streams.ts'
import type { RunDoc } from '../../projections/runs.ts'
import type { CommandDeps } from '../deps.ts'

export interface RunLog {
  readonly lines: readonly LogLine[]
  /** The request of a webhook run, stored with its secrets masked (I6). */
  readonly request: Payload | null
}

/**
 * Reads the output of a run so far (SPEC.md, Run). Lines appear within a second; the output is complete when the run
 * has ended.
 */
export const readRunLog = async (
  { store }: Pick<CommandDeps, 'store'>,
  { run_id, input_at }: Pick<RunDoc, 'run_id' | 'input_at'>,
): Promise<RunLog> => {
  const lines: LogLine[] = []
  for await (const { event } of store.read(streamOf.runLog(run_id)))
    if (event.type === 'RunLogged') lines.push(...event.lines)
  return { lines, request: input_at ? await requestAt(store, input_at) : null }
}

/** The request of a webhook run; null for other runs. */
const requestAt = async (
  store: CommandDeps['store'],
  { stream_id, revision }: NonNullable<RunDoc['input_at']>,
): Promise<Payload | null> => {
  const event = (await readFact(store, streamOf.stream(stream_id), revision))?.event
  if (event?.type !== 'RunRequested' || event.input?.kind !== 'webhook') return null
  return payloadOf('value', event.input)
}
