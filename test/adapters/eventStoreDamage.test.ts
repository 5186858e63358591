import {
  closeSync,
  cpSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import * as assert from 'uvu/assert'
import type { Discarded } from '../../src/adapters/embedded/disposableFile.ts'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import { isAppError } from '../../src/errors.ts'
import type { Recorded } from '../../src/events/event.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import { facts, failureOf, numbers, payloadOf } from '../contracts/eventStore/facts.ts'
import { gather, wholeLog } from '../contracts/eventStore/gather.ts'
import { plantStored } from '../support/plantStored.ts'
import { randomOf, SEED } from '../support/randomOf.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import { COUNT, editIndex, filled, PER_ROW } from './filledStore.ts'

const withoutIndex = (dir: string): string => {
  for (const name of readdirSync(dir)) if (name.startsWith('index.db')) rmSync(join(dir, name))
  return dir
}

const edit = (dir: string, sql: string): void => {
  const db = new DatabaseSync(join(dir, 'log.db'))
  db.exec(sql)
  db.close()
}

/** Opens a store and reads all of it. Resolves with the events, or with the error. */
const readAll = async (dir: string): Promise<readonly Recorded[] | Error> => {
  let store: EventStore
  try {
    store = openEventStore({ dir })
  } catch (error) {
    return error as Error
  }
  try {
    const all = await wholeLog(store)
    const stream = await Array.fromAsync(store.read('one'))
    assert.equal(stream.map(payloadOf), all.map(payloadOf))
    return all
  } catch (error) {
    return error as Error
  } finally {
    await store.close()
  }
}

const damage = suite('damage to log.db', { timeoutMs: 120_000 })

damage('of a row is reported with its positions, and no event of the row is read', async () => {
  const dir = await filled()
  edit(dir, `UPDATE log SET entries = replace(entries, '"payload":70}', '"payload":71}') WHERE first = 65`)
  const store = openEventStore({ dir })
  for (const failure of [
    await failureOf(wholeLog(store)),
    await failureOf(Array.fromAsync(store.read('one', { from: 70, limit: 1 }))),
  ]) {
    assert.ok(isAppError(failure, 'internal_server_error'), String(failure))
    assert.match(failure.message, 'the 64 events at positions 65 to 128 cannot be read')
    assert.not(failure.retryable)
  }
  assert.equal(
    (await Array.fromAsync(store.read('one', { from: 128 }))).map(payloadOf),
    numbers(COUNT - 128, 128),
  )
  await store.close()
})

damage('of the newest row ends the opening, because later positions would be counted from it', async () => {
  const dir = await filled()
  edit(dir, `UPDATE log SET count = 65 WHERE first = ${COUNT - PER_ROW + 1}`)
  assert.throws(() => openEventStore({ dir }), /log\.db is damaged: the 65 events at positions 577 to 641/)
})

damage('that removes rows is reported: a gap is not taken for fewer events', async () => {
  const dir = withoutIndex(await filled())
  edit(dir, 'DELETE FROM log WHERE first IN (65, 129)')
  assert.throws(() => openEventStore({ dir }), /the 128 events at positions 65 to 192 cannot be read/)
})

damage('by swapped rows is reported, because the checksum covers the position', async () => {
  const dir = withoutIndex(await filled())
  edit(
    dir,
    `UPDATE log SET first = -1 WHERE first = 65; UPDATE log SET first = 65 WHERE first = 129;
    UPDATE log SET first = 129 WHERE first = -1`,
  )
  assert.throws(() => openEventStore({ dir }), /positions 65 to 128 cannot be read .*checksum/)
})

const FLIPS = 100

damage(
  `by one flipped bit (SVC_TEST_SEED=${SEED}): what is read is right, or there is an error, and never other facts`,
  async () => {
    const source = withoutIndex(await filled())
    const intact = readFileSync(join(source, 'log.db'))
    const below = randomOf(SEED)
    const used = [...intact.keys()].filter((at) => intact[at] !== 0)
    let noticed = 0
    for (let flip = 0; flip < FLIPS; flip++) {
      const at = used[below(used.length)] as number
      const bit = below(8)
      const dir = tempDir()
      const copy = Buffer.from(intact)
      copy[at] = (intact[at] as number) ^ (1 << bit)
      writeFileSync(join(dir, 'log.db'), copy)
      const read = await readAll(dir)
      if (read instanceof Error) noticed++
      else assert.equal(read.map(payloadOf), numbers(read.length), `byte ${at}, bit ${bit}`)
      // An end that is missing is found by everything that was derived from the log.
      if (!(read instanceof Error) && read.length < COUNT) {
        cpSync(source, dir, { recursive: true })
        const whole = openEventStore({ dir })
        await whole.close()
        writeFileSync(join(dir, 'log.db'), copy)
        const store = openEventStore({ dir })
        assert.ok((await store.remembered()) > (await store.head()), `byte ${at}, bit ${bit}`)
        await store.close()
      }
      rmSync(dir, { recursive: true })
    }
    assert.ok(noticed > FLIPS / 2, `${noticed} of ${FLIPS} were noticed`)
  },
)

damage('cannot be seen in rows of an earlier version, which are read as before', async () => {
  const dir = await filled()
  plantStored(dir, [
    [
      'two',
      0,
      'id',
      '2026-05-01T10:00:00.000Z',
      { type: 'StreamDataEmitted', run_id: 'r', stream_id: 's', data_type: 'test', payload: 'old' },
      { env_id: 'env', correlation_id: 'c' },
    ],
  ])
  const store = openEventStore({ dir })
  assert.equal((await Array.fromAsync(store.read('two'))).map(payloadOf), ['old'])
  await store.append('two', facts('env', 1), 0)
  assert.is((await wholeLog(store)).length, COUNT + 2)
  await store.close()
})

damage('by an empty or foreign file ends the opening in one sentence', async () => {
  const dir = tempDir()
  writeFileSync(join(dir, 'log.db'), 'not a database, and long enough to be taken for one'.repeat(100))
  assert.throws(
    () => openEventStore({ dir }),
    /log\.db is damaged \(file is not a database\): restore the log/,
  )
})

damage('by the loss of log.db alone ends the opening: SQLite would delete the WAL beside it', async () => {
  const dir = tempDir()
  const store = openEventStore({ dir })
  await store.append('one', facts('env', 5), 'none')
  const copy = tempDir()
  cpSync(join(dir, 'log.db-wal'), join(copy, 'log.db-wal'))
  const before = readFileSync(join(copy, 'log.db-wal'))
  assert.throws(() => openEventStore({ dir: copy }), /log\.db is missing, but .*log\.db-wal contains/)
  writeFileSync(join(copy, 'log.db'), '')
  assert.throws(() => openEventStore({ dir: copy }), /log\.db is empty, but .*log\.db-wal contains/)
  assert.equal(readFileSync(join(copy, 'log.db-wal')), before)
  await store.close()
})
damage.run()

const index = suite('damage to index.db')

/** Overwrites part of a file. */
const overwrite = (file: string, at: number, bytes: Uint8Array): void => {
  const descriptor = openSync(file, 'r+')
  writeSync(descriptor, bytes, 0, bytes.length, at)
  closeSync(descriptor)
}

index('of its header moves it aside, and it is built again', async () => {
  const dir = await filled()
  overwrite(join(dir, 'index.db'), 0, Buffer.from('not a database'))
  const discarded: Discarded[] = []
  const store = openEventStore({ dir, onDiscarded: (what) => discarded.push(what) })
  assert.is(discarded.length, 1)
  assert.equal((await Array.fromAsync(store.read('one'))).map(payloadOf), numbers(COUNT))
  await store.append('one', facts('env', 1), COUNT - 1)
  await store.close()
})

index('of an entry is noticed at the start, and it is built again', async () => {
  for (const sql of [
    'UPDATE entries SET position = 300 WHERE revision = 5',
    "UPDATE entries SET stream = 'ona' WHERE revision = 639",
    'DELETE FROM entries WHERE revision = 639',
    "UPDATE positions SET position = 512 WHERE name = 'indexed'",
    "UPDATE positions SET position = 6400 WHERE name = 'indexed'",
    'DROP TABLE entries; CREATE TABLE entries (damaged)',
    "UPDATE positions SET position = 'damaged' WHERE name = 'indexed'",
  ]) {
    const dir = await filled()
    editIndex(dir, sql)
    const discarded: Discarded[] = []
    const store = openEventStore({ dir, onDiscarded: (what) => discarded.push(what) })
    assert.is(discarded.length, 1, sql)
    assert.is(await store.remembered(), await store.head())
    assert.is((await store.append('one', facts('env', 1), COUNT - 1)).revision, COUNT)
    await store.close()
  }
})

index('of an earlier version is taken as it is, with the positions of groups', async () => {
  const dir = await filled()
  editIndex(dir, "DELETE FROM positions WHERE name IN ('sum', 'check')")
  const discarded: Discarded[] = []
  for (const added of [0, 1]) {
    const store = openEventStore({ dir, onDiscarded: (what) => discarded.push(what) })
    await store.append('one', facts('env', 1), COUNT - 1 + added)
    await store.close()
  }
  assert.equal(discarded, [])
})

index('that names another event is not read as that event, and the next start builds it again', async () => {
  const dir = await filled()
  // A file without a check is taken as it is.
  editIndex(
    dir,
    "UPDATE entries SET position = 300 WHERE revision = 5; DELETE FROM positions WHERE name IN ('sum', 'check')",
  )
  const reports: string[] = []
  const store = openEventStore({ dir, onDamaged: (reason) => reports.push(reason) })
  for (let i = 0; i < 2; i++)
    assert.ok(isAppError(await failureOf(Array.fromAsync(store.read('one'))), 'unavailable'))
  assert.equal(reports, ['index.db is damaged; restart the service, which builds it again'])
  await store.close()
  const again = openEventStore({ dir })
  assert.equal((await Array.fromAsync(again.read('one'))).map(payloadOf), numbers(COUNT))
  await again.close()
})

index('of another log is built again, whatever its length', async () => {
  const [one, other] = [await filled(), tempDir()]
  const store = openEventStore({ dir: other })
  await store.append('other', facts('env', 2 * COUNT), 'none')
  await store.close()
  for (const name of readdirSync(other)) if (name.startsWith('log.db')) rmSync(join(other, name))
  cpSync(join(one, 'log.db'), join(other, 'log.db'))
  const mixed = openEventStore({ dir: other })
  assert.equal((await Array.fromAsync(mixed.read('other'))).map(payloadOf), [])
  assert.equal((await Array.fromAsync(mixed.read('one'))).map(payloadOf), numbers(COUNT))
  await mixed.close()
})

index('does not make a group start again, because the log keeps its position', async () => {
  const dir = await filled()
  const store = openEventStore({ dir })
  const consumer = gather(async function* (signal) {
    for await (const delivery of store.consume('group', { signal })) {
      delivery.ack()
      yield delivery
    }
  })
  await until(() => consumer.items.length === COUNT)
  await consumer.stop()
  await store.close()
  const again = openEventStore({ dir: withoutIndex(dir) })
  const { cursor } = await again.append('last', facts('env', 1), 'none')
  const next = gather((signal) => again.consume('group', { signal }))
  await until(() => next.items.length > 0)
  assert.is(next.items[0]?.event.cursor, cursor)
  await next.stop()
  await again.close()
})
index.run()
