import type { Cursor } from '../events/event.ts'
import type { Batch, EventStore } from '../ports/eventStore.ts'

/** The log up to a position, as if nothing came after it. A subscription ends there. */
export const upTo = (log: Pick<EventStore, 'subscribe'>, last: Cursor): Pick<EventStore, 'subscribe'> => ({
  async *subscribe(options): AsyncGenerator<Batch> {
    for await (const page of log.subscribe(options)) {
      if (page.cursor < last) {
        yield page
        continue
      }
      yield { events: page.events.filter(({ cursor }) => cursor <= last), cursor: last, caughtUp: true }
      return
    }
  },
})
