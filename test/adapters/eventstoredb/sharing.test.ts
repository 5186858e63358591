import * as assert from 'uvu/assert'
import { schemaOf } from '../../../src/events/index.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { newId } from '../../../src/ids.ts'
import type { EventStore } from '../../../src/ports/eventStore.ts'
import { fact, payloadOf } from '../../contracts/eventStore/facts.ts'
import { eventsOf, gather } from '../../contracts/eventStore/gather.ts'
import { openSurely } from '../../contracts/eventStore/openEventStoreDb.ts'
import { suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'
import { alone } from './harness.ts'

const sharing = suite('EventStoreDB adapter: installations that share a server', { timeoutMs: 60_000 })

/** The payloads that readers of the whole log get of an installation. Its last one is `last`. */
const seenBy = async (store: EventStore, last: string): Promise<unknown[][]> => {
  const log = gather((signal) => store.subscribe({ signal }))
  const group = gather(async function* (signal) {
    for await (const delivery of store.consume(newId(), { signal })) {
      yield payloadOf(delivery.event)
      delivery.ack()
    }
  })
  const seen = [() => eventsOf(log.items).map(payloadOf), () => group.items]
  for (const each of seen) await Promise.race([until(() => each().includes(last)), log.ended, group.ended])
  await log.stop()
  await group.stop()
  return seen.map((each) => each().toSorted())
}

for (const [one, two] of [
  ['', 'cell2.'],
  ['cell1', 'cell10'],
  ['', 'Cell'],
  ['', 's'],
  ['cell', 'cellstream-'],
  ['Cell', 'CellStream'],
] as const)
  sharing(
    `"${one}" and "${two}" get their own facts only, from the log and from groups`,
    alone(async ({ standIn }) => {
      const stores = await Promise.all(
        [one, two].map((prefix) => openSurely(`${standIn.url}&prefix=${prefix}`)),
      )
      const stream = streamOf.stream(newId())
      for (const [revision, number] of [
        ['none', 1],
        [0, 2],
      ] as const)
        for (const [at, store] of stores.entries())
          await store.append(stream, [fact(stream, `${number} of ${at}`)], revision)
      try {
        for (const [at, store] of stores.entries()) {
          const own = [`1 of ${at}`, `2 of ${at}`]
          assert.equal((await Array.fromAsync(store.read(stream))).map(payloadOf), own)
          assert.equal(await seenBy(store, `2 of ${at}`), [own, own])
        }
      } finally {
        for (const store of stores) await store.close()
      }
    }),
  )

sharing('every type begins with a capital, and no stream does: no prefix is a part of both', () => {
  for (const type of Object.keys(schemaOf)) assert.match(type, /^[A-Z]/)
  for (const name of Object.values(streamOf))
    assert.match(typeof name === 'string' ? name : name('x', 'x' as never), /^[a-z]/)
})

sharing.run()
