import { roomAfter } from '../../content/fileQuota.ts'
import type { EnvCause } from '../../events/event.ts'
import { checkTypeName } from '../../events/eventType.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'
import { demandRunning } from '../runs/demandRunning.ts'

/**
 * Sends live data of a running run to the readers of its stream (SDK `emit`; SPEC.md, Server-sent events). The data is
 * durable when this resolves. Rejects with `bad_request` for an invalid `data_type`, with `quota_exceeded`, or with
 * `conflict` when the run has ended; then no large data is stored.
 */
export const emitData = async (
  { aggregates, payloads, quotas }: Pick<CommandDeps, 'aggregates' | 'payloads' | 'quotas'>,
  {
    run_id,
    stream_id,
    data_type,
    payload,
  }: { run_id: string; stream_id: string; data_type: string; payload: unknown },
  cause: EnvCause,
): Promise<void> => {
  checkTypeName('data_type', data_type)
  const room = quotas.dataFor(cause.env_id)
  const checked = roomAfter(() => demandRunning({ aggregates }, { run_id, stream_id }), room)
  try {
    await aggregates.streams.handle(
      streamOf.stream(stream_id),
      { type: 'EmitData', run_id, data_type, payload: await payloads.keep(payload, cause, checked) },
      cause,
    )
  } finally {
    room.release()
  }
}
