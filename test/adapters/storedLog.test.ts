import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import * as assert from 'uvu/assert'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import { createRestoredLog } from '../../src/adapters/embedded/eventStore/restoredLog.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import type { StoredLog, StoredRow } from '../../src/ports/storedLog.ts'
import { fact, facts, failureOf } from '../contracts/eventStore/facts.ts'
import { wholeLog } from '../contracts/eventStore/gather.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const storedIn = (store: EventStore): StoredLog => {
  const log = store.storedLog?.()
  assert.ok(log)
  return log
}

const rowsOf = (log: StoredLog, length: number): StoredRow[] => {
  const rows: StoredRow[] = []
  for (let at = 0; at < log.position;) {
    rows.push(...log.rowsAfter(at, length))
    const last = rows.at(-1)
    at = last ? last.first + last.count - 1 : log.position
  }
  return rows
}

const stored = suite('the stored log')

stored('becomes an equal log when its rows are restored, in parts of any length', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 150 }), { minLength: 1, maxLength: 6 }),
      fc.integer({ min: 1, max: 20_000 }),
      async (counts, length) => {
        const store = openEventStore({ dir: tempDir() })
        for (const [n, count] of counts.entries())
          await store.append(`stream-${n}`, facts('env', count), 'none')
        const rows = rowsOf(storedIn(store), length)
        const dir = tempDir()
        const log = createRestoredLog(join(dir, 'log.db'))
        for (const row of rows) log.append([row])
        log.finish([])
        const restored = openEventStore({ dir })
        assert.equal(await wholeLog(restored), await wholeLog(store))
        await restored.close()
        await store.close()
      },
    ),
    { numRuns: 15 },
  )
})

stored('ends at the position at which it was opened', async () => {
  const store = openEventStore({ dir: tempDir() })
  await store.append('a', facts('env', 3), 'none')
  const log = storedIn(store)
  await store.append('a', facts('env', 3), 2)
  assert.is(log.position, 3)
  assert.is(
    rowsOf(log, 1e6).reduce((sum, { count }) => sum + count, 0),
    3,
  )
  assert.equal(log.rowsAfter(3, 1e6), [])
  await store.close()
})

stored('has the positions of consumers, none of them after its own', async () => {
  const dir = tempDir()
  const store = openEventStore({ dir })
  await store.append('a', facts('env', 5), 'none')
  const stop = new AbortController()
  for await (const delivery of store.consume('group', { signal: stop.signal })) {
    delivery.ack()
    if (delivery.event.revision === 4) break
  }
  stop.abort()
  await store.close()
  const again = openEventStore({ dir })
  assert.equal(storedIn(again).consumers, [{ group: 'group', position: 5 }])
  const copy = tempDir()
  const log = createRestoredLog(join(copy, 'log.db'))
  log.append(rowsOf(storedIn(again), 1e6))
  log.finish(storedIn(again).consumers)
  await again.close()
  const restored = openEventStore({ dir: copy })
  await restored.append('a', [fact('env', 'new')], 4)
  for await (const { event, ack } of restored.consume('group', { signal: AbortSignal.timeout(10_000) })) {
    assert.is(event.revision, 5)
    ack()
    break
  }
  await restored.close()
})

stored('names the positions of a damaged row and of a missing one', async () => {
  const dir = tempDir()
  const store = openEventStore({ dir })
  for (let n = 0; n < 4; n++) await store.append(`stream-${n}`, facts('env', 64), 'none')
  await store.close()
  const edit = (sql: string) => {
    const db = new DatabaseSync(join(dir, 'log.db'))
    db.exec(sql)
    db.close()
  }
  edit(`UPDATE log SET entries = replace(entries, '"payload":5', '"payload":6') WHERE first = 65`)
  const damaged = openEventStore({ dir })
  const log = storedIn(damaged)
  assert.match(String(await failureOf((async () => rowsOf(log, 1))())), 'positions 65 to 128')
  await damaged.close()
  edit('DELETE FROM log WHERE first = 65')
  const gapped = openEventStore({ dir })
  assert.match(String(await failureOf((async () => rowsOf(storedIn(gapped), 1e6))())), 'positions 65 to 128')
  await gapped.close()
})

stored('is not restored from rows that are changed or do not follow', async () => {
  const store = openEventStore({ dir: tempDir() })
  for (let n = 0; n < 3; n++) await store.append(`stream-${n}`, facts('env', 64), 'none')
  const [first, second] = rowsOf(storedIn(store), 1) as [StoredRow, StoredRow]
  await store.close()
  for (const rows of [[second], [first, first], [{ ...first, text: first.text.replace('5', '6') }]]) {
    const log = createRestoredLog(join(tempDir(), 'log.db'))
    assert.throws(() => log.append(rows), /rows of the log are damaged/)
    log.close()
  }
})
stored.run()
