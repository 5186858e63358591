import { cpSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import * as assert from 'uvu/assert'
import { StoredRows } from '../../src/adapters/embedded/eventStore/storedRows.ts'
import { isAppError } from '../../src/errors.ts'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import { clock } from '../../src/clock.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import { fact, facts, failureOf, numbers, payloadOf } from '../contracts/eventStore/facts.ts'
import { gather } from '../contracts/eventStore/gather.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

/** Copies `log.db` or `index.db`, with the files SQLite keeps beside it, in place of what is there. */
const copy = (from: string, to: string, file: 'log.db' | 'index.db'): void => {
  mkdirSync(to, { recursive: true })
  for (const name of readdirSync(to)) if (name.startsWith(file)) rmSync(join(to, name))
  for (const name of readdirSync(from)) if (name.startsWith(file)) cpSync(join(from, name), join(to, name))
}

const fill = async (store: EventStore, from: number, count: number) => {
  for (let i = from; i < from + count; i++)
    await store.append('one', [fact('env', i)], i === 0 ? 'none' : i - 1)
  await store.append(`made-${from}`, facts('env', 200, from), 'none')
}
const numbersIn = async (store: EventStore, stream: string) =>
  (await Array.fromAsync(store.read(stream))).map(payloadOf)
const consumeAll = async (store: EventStore, upTo: number): Promise<unknown[]> => {
  const consumer = gather(async function* (signal) {
    for await (const delivery of store.consume('group', { signal })) {
      delivery.ack()
      yield delivery
    }
  })
  await until(() => consumer.items.length >= upTo)
  await consumer.stop()
  return consumer.items.map(({ event }) => payloadOf(event))
}

/** A store with 300 events that a group has consumed, closed. */
const filled = async (): Promise<string> => {
  const dir = tempDir()
  const store = openEventStore({ dir })
  await fill(store, 0, 100)
  assert.is((await consumeAll(store, 300)).length, 300)
  await store.close()
  return dir
}

const index = suite('the index of the embedded log')

index('is rebuilt when it is missing', async () => {
  const dir = await filled()
  for (const name of readdirSync(dir)) if (name.startsWith('index.db')) rmSync(join(dir, name))
  const store = openEventStore({ dir })
  assert.equal(await numbersIn(store, 'one'), numbers(100))
  assert.equal(await numbersIn(store, 'made-0'), numbers(200))
  assert.is((await store.append('one', [fact('env', 100)], 99)).revision, 100)
  assert.equal(await numbersIn(store, 'one'), numbers(101))
  await store.close()
})

index('that is behind the log catches up', async () => {
  const dir = await filled()
  const old = tempDir()
  copy(dir, old, 'index.db')
  const later = openEventStore({ dir })
  await fill(later, 100, 100)
  await later.close()
  copy(old, dir, 'index.db')
  const store = openEventStore({ dir })
  assert.equal(await numbersIn(store, 'one'), numbers(200))
  assert.equal(await numbersIn(store, 'made-100'), numbers(200, 100))
  assert.is((await store.append('one', [fact('env', 200)], 199)).revision, 200)
  assert.is((await consumeAll(store, 301)).length, 301)
  await store.close()
})

index('that is ahead of the log drops entries that the log does not contain', async () => {
  const dir = await filled()
  const old = tempDir()
  copy(dir, old, 'log.db')
  const later = openEventStore({ dir })
  await fill(later, 100, 100)
  assert.is((await consumeAll(later, 300)).length, 300)
  await later.close()
  copy(old, dir, 'log.db')
  for (let opened = 0; opened < 2; opened++) {
    const store = openEventStore({ dir })
    assert.equal(await numbersIn(store, 'one'), numbers(100 + opened))
    assert.equal(await numbersIn(store, 'made-100'), [])
    assert.is((await store.append('one', [fact('env', 100 + opened)], 99 + opened)).revision, 100 + opened)
    assert.equal(await consumeAll(store, 1), [100 + opened])
    await store.close()
  }
})

index('that is ahead of an empty log is emptied', async () => {
  const dir = await filled()
  for (const name of readdirSync(dir)) if (name.startsWith('log.db')) rmSync(join(dir, name))
  const store = openEventStore({ dir })
  assert.equal(await numbersIn(store, 'one'), [])
  await store.append('one', [fact('env', 'new')], 'none')
  assert.equal(await consumeAll(store, 1), ['new'])
  await store.close()
})
index.run()

/** Lets each write of the index fail, until the returned function is called. */
const refuseEntries = async (dir: string): Promise<() => void> => {
  const db = new DatabaseSync(join(dir, 'index.db'))
  await until(() => {
    db.exec('BEGIN IMMEDIATE') // throws while the index has the lock
    return true
  })
  return () => db.close()
}

/** Counts the reads of the log for the index and for subscribers, of which `failing` fail. */
const countingReads = async (
  work: (reads: { count: number; failing: number }) => Promise<void>,
): Promise<void> => {
  const { readAfter } = StoredRows.prototype
  const reads = { count: 0, failing: 0 }
  StoredRows.prototype.readAfter = function (...args) {
    reads.count++
    if (reads.failing-- > 0) throw new Error('input/output error')
    return readAfter.apply(this, args)
  }
  try {
    await work(reads)
  } finally {
    StoredRows.prototype.readAfter = readAfter
  }
}

const mending = suite('an index that could not be written')

mending('is complete before it is read again, although a read of the log failed', async () => {
  const dir = tempDir()
  const store = openEventStore({ dir })
  await store.append('one', facts('env', 5), 'none')
  const accept = await refuseEntries(dir)
  await store.append('one', facts('env', 5, 5), 4)
  accept()
  await countingReads(async (reads) => {
    reads.failing = 1
    assert.ok(isAppError(await failureOf(numbersIn(store, 'one')), 'unavailable'))
    const found = await until(() => numbersIn(store, 'one').catch(() => undefined))
    assert.equal(found, numbers(10))
  })
  assert.is((await store.append('one', [fact('env', 10)], 9)).revision, 10)
  await store.close()
})

mending('is not tried again by each request that is refused', async () => {
  const dir = tempDir()
  const store = openEventStore({ dir })
  await store.append('one', facts('env', 5), 'none')
  const accept = await refuseEntries(dir)
  await store.append('one', [fact('env', 5)], 4)
  await countingReads(async (reads) => {
    const requests = Array.from({ length: 50 }, () => failureOf(numbersIn(store, 'one')))
    const failures = await Promise.all(requests)
    assert.ok(failures.every((failure) => isAppError(failure, 'unavailable')))
    assert.is(reads.count, 1)
  })
  accept()
  assert.equal(await until(() => numbersIn(store, 'one').catch(() => undefined)), numbers(6))
  await store.close()
})

mending('keeps the revisions of appends that are not durable yet', async () => {
  const dir = tempDir()
  const store = openEventStore({ dir })
  const accept = await refuseEntries(dir)
  const first = store.append('one', [fact('env', 0)], 'none')
  const dropped = store.dropGroup('group') // the index cannot note it
  accept()
  const second = failureOf(store.append('one', [fact('env', 1)], 'none'))
  assert.is((await first).revision, 0)
  await dropped
  assert.ok(isAppError(await second, 'wrong_revision'))
  await store.close()
})
mending.run()

const position = suite('the position of a group')

position('is stored soon after an acknowledgement, also when nothing is appended', async () => {
  const dir = tempDir()
  const store = openEventStore({ dir })
  await store.append('one', facts('env', 5), 'none')
  const consumer = gather((signal) => store.consume('group', { signal }))
  await until(() => consumer.items.length === 5)
  const copied = async (): Promise<number> => {
    const at = tempDir()
    copy(dir, at, 'log.db')
    copy(dir, at, 'index.db')
    const other = openEventStore({ dir: at })
    const again = gather((signal) => other.consume('group', { signal }))
    const { cursor } = await other.append('last', facts('env', 1), 'none')
    await until(() => again.items.some(({ event }) => event.cursor === cursor))
    await again.stop()
    await other.close()
    return again.items.length
  }
  await until(async () => (await copied()) === 6) // facts without an acknowledgement are delivered again, whatever is stored
  const rested = clock.monotonic() + 600 // nothing is left to do after an append half a second ago
  await until(() => clock.monotonic() > rested)
  for (const { ack } of consumer.items) ack()
  await until(async () => (await copied()) === 1) // as if the process had died now
  await consumer.stop()
  await store.close()
})
position.run()
