import type { FollowOptions, StreamEvent } from '../../client/index.ts'
import { api } from './api.ts'

/** A page changes at most this often, however fast functions emit. */
const BATCH_MS = 50

/**
 * Follows a stream, and hands over the events that arrive within 50 ms together, in their order. It resolves when the
 * stream is complete, and rejects as `follow` does; everything that arrived before is handed over, unless the signal aborted.
 */
export const followInBatches = async (
  stream_id: string,
  options: FollowOptions & { readonly signal: AbortSignal },
  onBatch: (events: readonly StreamEvent[]) => void,
): Promise<void> => {
  let batch: StreamEvent[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  const flush = (): void => {
    clearTimeout(timer)
    timer = undefined
    const events = batch
    batch = []
    if (events.length > 0 && !options.signal.aborted) onBatch(events)
  }
  try {
    for await (const event of api.follow(stream_id, options)) {
      batch.push(event)
      timer ??= setTimeout(flush, BATCH_MS)
    }
  } finally {
    flush()
  }
}
