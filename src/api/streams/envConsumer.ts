import type { Cursor } from '../../events/event.ts'
import type { Delivery, EventStore } from '../../ports/eventStore.ts'
import { envFrame, envTypes } from './envFrames.ts'
import { RunPlaces } from '../../commands/streams/runPlaces.ts'
import type { SseReply } from './sse.ts'

/** An event counts as delivered when the client is still connected this long after it was written. */
const SETTLE_MS = 500
/** The time is counted in ticks of a timer. */
const SETTLE_TICKS = 5
/** Events that a client may receive before the first of them counts as delivered. */
const MAX_UNSETTLED = 2048
/** The memory that they take. A client that reads slowly holds as much. */
const MAX_UNSETTLED_BYTES = 8 << 20

/**
 * Serves a client of a named consumer from the stored position of its group, or from `after` at the first use. An event is
 * acknowledged only a while after it was written, because a breaking connection loses written data.
 */
export const serveConsumer = async (
  client: SseReply,
  { env_id, group, after }: { env_id: string; group: string; after: Cursor },
  store: EventStore,
): Promise<void> => {
  const bounds = { inFlight: MAX_UNSETTLED, inFlightBytes: MAX_UNSETTLED_BYTES }
  const options = { env_id, types: envTypes, from: after, ...bounds, signal: client.gone }
  const unsettled: { readonly delivery: Delivery; readonly tick: number }[] = []
  const places = new RunPlaces(store)
  let tick = 0 // not the clock: while the process stalls, it notices no broken connection
  const settle = setInterval(() => {
    tick++
    const due = unsettled.findIndex((sent) => sent.tick >= tick - SETTLE_TICKS)
    for (const { delivery } of unsettled.splice(0, due < 0 ? unsettled.length : due)) delivery.ack()
  }, SETTLE_MS / SETTLE_TICKS)
  try {
    for await (const delivery of store.consume(group, options)) {
      const bytes = await envFrame(delivery.event, places)
      if (bytes) client.write(bytes)
      await client.flushed()
      if (client.gone.aborted) return
      unsettled.push({ delivery, tick })
    }
  } finally {
    clearInterval(settle) // another client of this name receives the rest
  }
}
