import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import * as assert from 'uvu/assert'
import { cursorOf } from '../../src/adapters/embedded/eventStore/cursors.ts'
import { Group } from '../../src/adapters/embedded/eventStore/groups.ts'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import type { Recorded } from '../../src/events/event.ts'
import type { Batch } from '../../src/ports/eventStore.ts'
import { fact, facts, payloadOf } from '../contracts/eventStore/facts.ts'
import { gather } from '../contracts/eventStore/gather.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const EVENTS = 100

/** A log whose events are in memory only while their reader has them. */
const weakLog = () => {
  const read: WeakRef<Recorded>[] = []
  async function* subscribe({
    after,
    signal,
  }: {
    after: string
    signal: AbortSignal
  }): AsyncGenerator<Batch> {
    const events = Array.from({ length: EVENTS - Number(after || 0) }, (_, i): Recorded => {
      const position = Number(after || 0) + i + 1
      return {
        ...fact('env', position),
        stream: 's',
        revision: position - 1,
        cursor: cursorOf(position),
        at: '',
      }
    })
    read.push(...events.map((event) => new WeakRef(event)))
    yield { events, cursor: cursorOf(EVENTS), caughtUp: true }
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
  }
  let saved: number | undefined
  const save = (_: string, position: number) => void (saved = position)
  return { read, store: { subscribe, load: () => saved, save, changed: () => {} } }
}

const idle = suite('a group that nothing consumes')

idle('has no events in memory, and its next consumer continues at its position (G5)', async () => {
  const { read, store } = weakLog()
  const group = new Group('g', store, 0)
  const take = async (): Promise<unknown> => {
    const stopping = new AbortController()
    for await (const delivery of group.consume({ inFlight: 1, signal: stopping.signal })) {
      delivery.ack()
      return payloadOf(delivery.event)
    }
    return undefined
  }
  assert.is(await take(), 1)
  assert.is(read.length, EVENTS)
  await until(async () => {
    await delay(1)
    collectGarbage()
    return read.every((event) => event.deref() === undefined)
  })
  assert.ok(group.isEmpty)
  assert.is(await take(), 2)
})

idle('is forgotten by the store, which continues it at its position', async () => {
  const dir = tempDir()
  const store = openEventStore({ dir })
  await store.append('s', facts('env', EVENTS), 'none')
  const take = async (): Promise<unknown> => {
    const consumer = gather((signal) => store.consume('g', { inFlight: 1, signal }))
    await until(() => consumer.items.length === 1)
    consumer.items[0]?.ack()
    await consumer.stop()
    return consumer.items.map(({ event }) => payloadOf(event))[0]
  }
  for (let n = 0; n < 5; n++) assert.is(await take(), n)
  await store.dropGroup('g')
  assert.is(await take(), 0)
  await store.close()
  const again = openEventStore({ dir })
  await again.dropGroup('g')
  await again.close()
})
idle.run()
