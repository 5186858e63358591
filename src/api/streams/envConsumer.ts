import { clock } from '../../clock.ts'
import type { Cursor } from '../../events/event.ts'
import type { Delivery, EventStore } from '../../ports/eventStore.ts'
import { envFrame, envTypes } from './envFrames.ts'
import type { SseReply } from './sse.ts'

/** An event counts as delivered when the client is still connected this long after it was written. */
const SETTLE_MS = 500
/** Events that a client may receive before the first of them counts as delivered. */
const MAX_UNSETTLED = 2048

/**
 * Serves a client of a named consumer from the stored position of its group, or from `after` at the first use. An event is
 * acknowledged only a while after it was written, because a breaking connection loses written data.
 */
export const serveConsumer = async (
  client: SseReply,
  { env_id, group, after }: { env_id: string; group: string; after: Cursor },
  store: EventStore,
): Promise<void> => {
  const options = { env_id, types: envTypes, from: after, inFlight: MAX_UNSETTLED, signal: client.gone }
  const unsettled: { readonly delivery: Delivery; readonly at: number }[] = []
  const settle = setInterval(() => {
    const due = unsettled.findIndex(({ at }) => at > clock.monotonic() - SETTLE_MS)
    for (const { delivery } of unsettled.splice(0, due < 0 ? unsettled.length : due)) delivery.ack()
  }, SETTLE_MS / 5)
  try {
    for await (const delivery of store.consume(group, options)) {
      const bytes = envFrame(delivery.event)
      if (bytes) client.write(bytes)
      await client.flushed()
      if (client.gone.aborted) return
      unsettled.push({ delivery, at: clock.monotonic() })
    }
  } finally {
    clearInterval(settle) // another client of this name receives the rest
  }
}
