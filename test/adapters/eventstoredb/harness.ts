import { openEventStoreDb } from '../../../src/adapters/eventstoredb/index.ts'
import { newId } from '../../../src/ids.ts'
import type { EventStore } from '../../../src/ports/eventStore.ts'
import { fact, payloadOf } from '../../contracts/eventStore/facts.ts'
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
  const store = await openEventStoreDb(standIn.url)
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
