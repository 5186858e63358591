import { newId } from '../../../src/ids.ts'
import type { EventStore } from '../../../src/ports/eventStore.ts'
import { fact, payloadOf } from '../../contracts/eventStore/facts.ts'
import { eventsOf, gather } from '../../contracts/eventStore/gather.ts'
import { openSurely } from '../../contracts/eventStore/openEventStoreDb.ts'
import { reportExercised } from '../../support/engines.ts'
import { type StandIn, startStandIn } from '../../support/eventstoredb/index.ts'

export interface Opened {
  readonly standIn: StandIn
  readonly store: EventStore
}

reportExercised('EventStoreDB stand-in')

/** A server and an adapter for one test. */
export const alone = (test: (opened: Opened) => Promise<void>) => async (): Promise<void> => {
  const standIn = await startStandIn()
  const store = await openSurely(standIn.url)
  try {
    await test({ standIn, store })
  } finally {
    await store.close()
    standIn.misbehave.heal()
    await standIn.stop()
  }
}

/** Appends one event with `payload` to a new stream and resolves with the result of `append`. */
export const appendOne = (store: EventStore, payload: unknown, stream = `a-${newId()}`) =>
  store.append(stream, [fact(stream, payload)], 'none')

export const payloadsIn = async (store: EventStore, stream: string): Promise<unknown[]> =>
  (await Array.fromAsync(store.read(stream))).map(payloadOf)

/** A reader of each kind on one stream. */
export const readersOf = (store: EventStore, stream: string) => {
  const log = gather((signal) => store.subscribe({ env_id: stream, signal }))
  const own = gather((signal) => store.follow(stream, { signal }))
  const group = gather(async function* (signal) {
    for await (const delivery of store.consume(newId(), { env_id: stream, signal })) {
      yield payloadOf(delivery.event)
      delivery.ack()
    }
  })
  return {
    log: () => eventsOf(log.items).map(payloadOf),
    own: () => eventsOf(own.items).map(payloadOf),
    group: () => [...new Set(group.items)].toSorted((a, b) => Number(a) - Number(b)),
    stop: () => Promise.all([log.stop(), own.stop(), group.stop()]),
  }
}
