import { getEventListeners } from 'node:events'
import * as assert from 'uvu/assert'
import { cursorOf } from '../../src/adapters/embedded/eventStore/cursors.ts'
import { Group } from '../../src/adapters/embedded/eventStore/groups.ts'
import { isAppError } from '../../src/errors.ts'
import type { Batch } from '../../src/ports/eventStore.ts'
import { fact, payloadOf } from '../contracts/eventStore/facts.ts'
import { gather } from '../contracts/eventStore/gather.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

/** A log of `count` events that fails to be read after the event `failAt`, once. */
const logOf = (count: number, failAt: number) => {
  let broken = true
  async function* subscribe({
    after,
    signal,
  }: {
    after: string
    signal: AbortSignal
  }): AsyncGenerator<Batch> {
    for (let position = Number(after || 0) + 1; position <= count; position++) {
      const event = {
        ...fact('env', position),
        stream: 's',
        revision: position - 1,
        cursor: cursorOf(position),
        at: '',
      }
      yield { events: [event], cursor: event.cursor, caughtUp: position === count }
      if (broken && position === failAt) {
        broken = false
        throw new Error('the disk is gone')
      }
    }
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
  }
  return { subscribe, load: () => undefined, save: () => {}, changed: () => {} }
}

const group = suite('a group whose log cannot be read')

group('fails every consumer, and continues with those that reconnect (I9)', async () => {
  const made = new Group('g', logOf(5, 3), 0)
  const acked: unknown[] = []
  const consume = () =>
    gather(async function* (signal) {
      for await (const delivery of made.consume({ inFlight: 1, signal })) {
        acked.push(payloadOf(delivery.event))
        delivery.ack()
        yield delivery
      }
    })
  for (const { ended } of [consume(), consume()]) {
    const error = await ended.catch((error: unknown) => error)
    assert.ok(isAppError(error, 'unavailable'), String(error))
    assert.match(error.message, 'the disk is gone')
  }
  const again = consume()
  await until(() => new Set(acked).size === 5)
  await again.stop()
  assert.equal(acked.toSorted(), [1, 2, 3, 4, 5])
})

const full = suite('a group whose consumers are slower than the log')

full('adds no listener for each event that waits', async () => {
  let pumped: AbortSignal | undefined
  const { subscribe: _, ...store } = logOf(0, 0)
  async function* subscribe({ signal }: { signal: AbortSignal }): AsyncGenerator<Batch> {
    pumped = signal
    const events = Array.from({ length: 500 }, (_, n) => ({
      ...fact('env', n),
      stream: 's',
      revision: n,
      cursor: cursorOf(n + 1),
      at: '',
    }))
    yield { events, cursor: cursorOf(events.length), caughtUp: true }
  }
  const made = new Group('g', { ...store, subscribe }, 0)
  let handled = 0
  let listeners = Infinity
  const { ended } = gather(async function* (signal) {
    for await (const delivery of made.consume({ inFlight: 2, signal })) {
      delivery.ack()
      yield delivery
      if (++handled < 500) continue
      if (pumped) listeners = getEventListeners(pumped, 'abort').length
      return
    }
  })
  await ended
  assert.ok(listeners < 5, `${listeners} listeners of one signal after 500 events`)
})

group.run()
full.run()
