import * as assert from 'uvu/assert'
import type { EventStore } from '../../src/ports/eventStore.ts'
import type { OpenEventStore } from '../contracts/eventStore.ts'
import { openEmbedded } from '../contracts/eventStore/openEmbedded.ts'
import { openOn, openOnStandIn } from '../contracts/eventStore/openEventStoreDb.ts'
import { engineUrl, reportExercised } from '../support/engines.ts'
import { forwarding } from '../support/forwarding.ts'
import { SEED } from '../support/randomOf.ts'
import { suite } from '../support/suite.ts'
import { differenceBetween } from './stores/compare.ts'

const SCENARIOS = 12

/** Compares two stores, and closes both. */
const compared = async (
  one: OpenEventStore,
  other: OpenEventStore,
  scenarios = SCENARIOS,
): Promise<string | null> => {
  try {
    return await differenceBetween([one, other], { scenarios, seed: SEED })
  } finally {
    await one.close()
    await other.close()
  }
}

/** A store that never stores a repeat as one. */
const forgetful = (opened: OpenEventStore): OpenEventStore => {
  const of = (store: EventStore): EventStore =>
    forwarding(store, {
      append: (stream, events, expected) =>
        store.append(
          stream,
          events.map((event, i) => ({ ...event, id: unlike(event.id, i) })),
          expected,
        ),
    })
  return { ...opened, store: of(opened.store), reopen: async () => of(await opened.reopen()) }
}
let ids = 0
const unlike = (id: string, i: number): string =>
  `${id.slice(0, -6)}${String(100_000 + ((ids++ + i) % 900_000))}`

const stores = suite(`two event stores (seed ${SEED})`, { timeoutMs: 60_000 })

reportExercised('EventStoreDB stand-in')
stores('answer every command alike: the embedded one and EventStoreDB', async () => {
  assert.is(await compared(openEmbedded(), await openOnStandIn()), null)
})

const real = engineUrl('eventStore')
if (real !== null)
  stores('answer every command alike: the embedded one and a real EventStoreDB', async () => {
    assert.is(await compared(openEmbedded(), await openOn(real)), null)
  })

stores('that differ in the rule about repeats are distinguished', async () => {
  assert.ok(await compared(openEmbedded(), forgetful(openEmbedded()), 40))
})

stores.run()
