import * as assert from 'uvu/assert'
import { openEventStoreDb } from '../../../src/adapters/eventstoredb/index.ts'
import { isNoPlace } from '../../../src/adapters/eventstoredb/failures.ts'
import { watchHead } from '../../../src/commands/installation/watchHead.ts'
import { clock, virtualClock } from '../../../src/clock.ts'
import { isAppError, PermanentError } from '../../../src/errors.ts'
import type { Cursor } from '../../../src/events/event.ts'
import { facts, failureOf } from '../../contracts/eventStore/facts.ts'
import { startStandIn } from '../../support/eventstoredb/index.ts'
import { Log } from '../../support/eventstoredb/log.ts'
import { backupOf, outgrow } from '../../support/eventstoredb/restored.ts'
import { suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'
import { alone } from './harness.ts'

const DAY_S = 86_400

const end = suite('EventStoreDB adapter: an end that is lost')
end.after.each(() => virtualClock.set(null))

/** A position between two records. */
const besides = (cursor: Cursor): Cursor => {
  const position = (BigInt(`0x${cursor.slice(0, 16)}`) - 1n).toString(16).padStart(16, '0')
  return position + position
}

end(
  'is proved by a position at which nothing was ever stored, however long the log is',
  alone(async ({ store }) => {
    const { cursor } = await store.append('one', facts('env', 3), 'none')
    await store.append('other', facts('env', 3), 'none')
    assert.ok(await store.canHaveHad(cursor))
    assert.ok(await store.canHaveHad(await store.head()))
    assert.not.ok(await store.canHaveHad(besides(cursor)))
  }),
)

end('is not found where events have expired or were removed', async () => {
  const log = new Log()
  const standIn = await startStandIn({ log })
  const store = await openEventStoreDb(standIn.url)
  await store.append('one', facts('env', 1), 'none')
  const { cursor } = await store.append('one', facts('env', 1), 0)
  await store.append('one', facts('env', 1), 1)
  await store.expire('one', DAY_S)
  virtualClock.set(clock.now() + 2 * DAY_S * 1000)
  assert.ok(await store.canHaveHad(cursor))
  const before = log.all.length
  log.scavenge()
  assert.ok(log.all.length < before)
  assert.ok(await store.canHaveHad(cursor))
  const { cursor: later } = await store.append('other', facts('env', 1), 'none')
  assert.ok(await store.canHaveHad(cursor))
  assert.ok(await store.canHaveHad(later))
  await store.close()
  await standIn.stop()
})

end('is noticed by a node during whose work a backup was restored and became longer', async () => {
  const log = new Log()
  const standIn = await startStandIn({ log })
  const store = await openEventStoreDb(standIn.url)
  const backedUp = log.all.length
  await store.append('one', facts('env', 5), 'none')
  let heads = 0
  const watch = watchHead(
    {
      head: () => (heads++, store.head()),
      canHaveHad: (cursor) => store.canHaveHad(cursor),
    },
    1,
  )
  const stopping = new AbortController()
  const watching = watch(stopping.signal)
  await until(() => heads > 1)
  stopping.abort()
  await watching
  await standIn.stop()
  const backup = backupOf(log, backedUp)
  outgrow(backup, log)
  const restored = await startStandIn({ log: backup, port: standIn.port })
  const isNoticed = async () => (await failureOf(watch(AbortSignal.timeout(5000)))) instanceof PermanentError
  await until(isNoticed)
  await store.close()
  await restored.stop()
})

end(
  'is not found in a read that the server ended too early, or does not answer',
  alone(async ({ standIn, store }) => {
    const { cursor } = await store.append('one', facts('env', 1), 'none')
    standIn.misbehave.cutReads(0)
    assert.ok(isAppError(await failureOf(store.canHaveHad(cursor)), 'unavailable'))
    assert.ok(await store.canHaveHad(cursor))
  }),
)

end('has several errors, by the bytes that are at the position', () => {
  for (const [message, expected] of [
    ['2 UNKNOWN: Unexpected ReadAllResult: InvalidPosition', true],
    ['2 UNKNOWN: Unexpected ReadAllResult: Error', true],
    ['2 UNKNOWN: Unexpected ReadAllResult: NotModified', false],
    ['14 UNAVAILABLE: Server Is Not Ready', false],
  ] as const)
    assert.is(isNoPlace(new Error(message)), expected, message)
})
end.run()
