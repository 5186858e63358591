import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import { openPresentLog } from '../../src/adapters/embedded/eventStore/presentLog.ts'
import { isAppError } from '../../src/errors.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import { fact, facts } from '../contracts/eventStore/facts.ts'
import { wholeLog } from '../contracts/eventStore/gather.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { COUNT, editIndex, filled } from './filledStore.ts'

const ends = suite('the end of the log')

const commit = async (store: EventStore, commits: number): Promise<void> => {
  for (let n = 0; n < commits; n++)
    await store.append('one', [fact('env', `payload-${n}`)], n === 0 ? 'none' : n - 1)
}

/** A copy of a log whose WAL was damaged in one of its commits. */
const cutCopyOf = (dir: string, damaged: number): string => {
  const copy = tempDir()
  for (const name of ['log.db', 'log.db-wal']) cpSync(join(dir, name), join(copy, name))
  const wal = join(copy, 'log.db-wal')
  const bytes = readFileSync(wal)
  const at = bytes.indexOf(`payload-${damaged}`)
  bytes[at] = (bytes[at] as number) ^ 1
  writeFileSync(wal, bytes)
  return copy
}

ends(
  'that one flipped bit in the WAL cut off is noticed without the index, if two commits are lost',
  async () => {
    const dir = tempDir()
    const store = openEventStore({ dir })
    const commits = 6
    await commit(store, commits)
    for (let damaged = 0; damaged < commits; damaged++) {
      const copy = cutCopyOf(dir, damaged)
      const lost = commits - damaged
      for (const _ of ['the first start', 'the second start']) {
        const cut = openEventStore({ dir: copy })
        assert.is((await wholeLog(cut)).length, damaged)
        // The newest commit alone may also be what a crash left.
        assert.is(Number(await cut.remembered()), lost > 1 ? commits : damaged)
        await cut.close()
      }
    }
    const whole = tempDir()
    for (const name of ['log.db', 'log.db-wal']) cpSync(join(dir, name), join(whole, name))
    const reopened = openEventStore({ dir: whole })
    assert.is((await wholeLog(reopened)).length, commits)
    assert.is(await reopened.remembered(), await reopened.head())
    await reopened.close()
    await store.close()
  },
)

ends('that was cut off is noticed again by the next start, if the first could not record it', async () => {
  const dir = tempDir()
  const store = openEventStore({ dir })
  await commit(store, 6)
  const copy = cutCopyOf(dir, 3)
  await store.close()
  editIndex(
    copy,
    `CREATE TABLE positions (name TEXT PRIMARY KEY, position INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TRIGGER full BEFORE INSERT ON positions WHEN NEW.name = 'remembered'
    BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END`,
  )
  assert.throws(
    () => openEventStore({ dir: copy }),
    (error: unknown) => isAppError(error, 'unavailable'),
  )
  editIndex(copy, 'DROP TRIGGER full')
  const again = openEventStore({ dir: copy })
  assert.is((await wholeLog(again)).length, 3)
  assert.is(Number(await again.remembered()), 6)
  await again.close()
})

ends('is in log.db after a stop, also while a thread reads the log', async () => {
  const dir = tempDir()
  const store = openEventStore({ dir })
  await commit(store, 6)
  const reading = openPresentLog(dir)
  await store.close()
  const copy = tempDir()
  cpSync(join(dir, 'log.db'), join(copy, 'log.db'))
  reading.close()
  const copied = openEventStore({ dir: copy })
  assert.is((await wholeLog(copied)).length, 6)
  await copied.close()
})

ends('is remembered by the index, until the loss was accepted', async () => {
  const dir = await filled()
  const old = tempDir()
  cpSync(join(dir, 'log.db'), join(old, 'log.db'))
  const later = openEventStore({ dir })
  await later.append('one', facts('env', 7), COUNT - 1)
  const end = await later.head()
  await later.close()
  cpSync(join(old, 'log.db'), join(dir, 'log.db'))
  for (const _ of ['the first start', 'the second start']) {
    const store = openEventStore({ dir })
    assert.is(await store.remembered(), end)
    assert.is(store.countBetween(await store.head(), end), 7)
    await store.close()
  }
  const accepting = openEventStore({ dir })
  await accepting.acceptLoss()
  await accepting.close()
  const store = openEventStore({ dir })
  assert.is(await store.remembered(), await store.head())
  await store.close()
})
ends.run()
