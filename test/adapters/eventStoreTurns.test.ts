import * as assert from 'uvu/assert'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import { newId } from '../../src/ids.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import { facts } from '../contracts/eventStore/facts.ts'
import { longestTurn } from '../support/longestTurn.ts'
import { plantStored } from '../support/plantStored.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const LONG = 40_000
const AT = '2026-05-01T10:00:00.000Z'

/** A log of many facts of one environment in one stream, then one fact of the environment `mine`. */
const dir = tempDir()
await openEventStore({ dir }).close()
plantStored(dir, [
  ...facts('other', LONG).map(({ id, event, metadata }, n) => ['long', n, id, AT, event, metadata] as const),
  [
    'short',
    0,
    newId(),
    AT,
    { type: 'StreamCreated', stream_id: 'mine' },
    { env_id: 'mine', correlation_id: 'x' },
  ],
])
await openEventStore({ dir }).close() // its index is complete

const turns = suite('a long log', { timeoutMs: 60_000 })

/** The work is done in many turns of the event loop, so that requests continue. */
const inTurns = async (work: (store: EventStore, signal: AbortSignal) => Promise<unknown>): Promise<void> => {
  const store = openEventStore({ dir })
  const ended = new AbortController()
  const { longestMs, allMs } = await longestTurn(() => work(store, ended.signal))
  ended.abort()
  await store.close()
  assert.ok(longestMs < allMs / 3, `one turn took ${longestMs} ms of ${allMs} ms of the processor`)
}

for (const [whose, filter] of [
  ['one environment', { env_id: 'mine' }],
  ['rare types', { types: ['StreamCreated'] }],
  ['every fact', {}],
] as const) {
  turns(`is read in many turns of the event loop by a subscription to ${whose}`, () =>
    inTurns(async (store, signal) => {
      for await (const { caughtUp } of store.subscribe({ ...filter, signal })) if (caughtUp) return
    }),
  )
}

turns('is read in many turns by a new group of one environment', () =>
  inTurns(async (store, signal) => {
    for await (const delivery of store.consume('new', { env_id: 'mine', signal })) return delivery.ack()
  }),
)

turns('is read in many turns by a command of a long stream', () =>
  inTurns(async (store) => {
    for await (const _ of store.read('long'));
  }),
)

turns('is read in many turns by a follower of a long stream', () =>
  inTurns(async (store, signal) => {
    for await (const { caughtUp } of store.follow('long', { signal })) if (caughtUp) return
  }),
)

turns('is read to its end by all of many readers that began together', async () => {
  const store = openEventStore({ dir })
  const ended = new AbortController()
  const read = async (filter: { env_id?: string }) => {
    let found = 0
    for await (const { events, caughtUp } of store.subscribe({ ...filter, signal: ended.signal })) {
      found += events.length
      if (caughtUp) return found
    }
    return found
  }
  const both = [read({ env_id: 'mine' }), read({}), read({ env_id: 'mine' }), read({})]
  assert.equal(await Promise.all(both), [1, LONG + 1, 1, LONG + 1])
  ended.abort()
  await store.close()
})

turns.run()
