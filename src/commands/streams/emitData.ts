import type { EnvCause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

/**
 * Sends live data of a running run to the readers of its stream (SDK `emit`; SPEC.md, Server-sent events). The data is
 * durable when this resolves.
 */
export const emitData = async (
  { aggregates, payloads }: Pick<CommandDeps, 'aggregates' | 'payloads'>,
  {
    run_id,
    stream_id,
    data_type,
    payload,
  }: { run_id: string; stream_id: string; data_type: string; payload: unknown },
  cause: EnvCause,
): Promise<void> => {
  await aggregates.streams.handle(
    streamOf.stream(stream_id),
    { type: 'EmitData', run_id, data_type, payload: await payloads.keep(payload) },
    cause,
  )
}
