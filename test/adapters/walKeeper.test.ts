import { execFileSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import { type Checkpointer, openCheckpointer } from '../../src/adapters/embedded/checkpointer.ts'
import { openDatabase } from '../../src/adapters/embedded/sqlite.ts'
import { WalKeeper } from '../../src/adapters/embedded/walKeeper.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const FULL_BYTES = 1 << 20
const ROW_BYTES = 16 << 10

interface Context {
  readonly file: string
  readonly db: DatabaseSync
  readonly keeper: WalKeeper
  /** Ends the oldest move of the checkpointer. */
  readonly endMove: () => Promise<void>
  readonly moves: () => number
  readonly walBytes: () => number
  readonly write: (bytes: number) => void
  /** The times for which the writing thread moved a part of the WAL. */
  readonly own: () => number
  readonly close: () => Promise<void>
}

/** A keeper whose checkpointer moves when the test says so. */
const openKeeper = (checkpointer: Checkpointer = openCheckpointer()): Context => {
  const file = join(tempDir(), 'data.db')
  const db = openDatabase(file, 'normal')
  let own = 0
  const noting = {
    exec(sql: string) {
      if (sql.includes('RESTART')) own++
      db.exec(sql)
    },
  } as DatabaseSync
  const moves: (() => Promise<void>)[] = []
  const held: Checkpointer = {
    move: (name) => new Promise((resolve) => moves.push(async () => resolve(await checkpointer.move(name)))),
    close: () => checkpointer.close(),
  }
  const keeper = new WalKeeper(noting, file, held, { fullBytes: FULL_BYTES })
  db.exec('CREATE TABLE rows (bytes BLOB)')
  const insert = db.prepare(`INSERT INTO rows VALUES (zeroblob(${ROW_BYTES}))`)
  return {
    file,
    db,
    keeper,
    async endMove() {
      await moves.shift()?.()
      await nextTurn()
    },
    moves: () => moves.length,
    walBytes: () => statSync(`${file}-wal`).size,
    write(bytes) {
      for (let written = 0; written < bytes; written += ROW_BYTES) {
        insert.run()
        keeper.wrote(ROW_BYTES)
      }
    },
    own: () => own,
    async close() {
      keeper.close()
      await checkpointer.close()
      db.close()
    },
  }
}

const wal = suite('the keeper of a WAL')

wal('lets the writer continue while most of the WAL is moved, and wait for the rest', async () => {
  const { keeper, write, endMove, moves, walBytes, own, close } = openKeeper()
  write(FULL_BYTES)
  assert.is(moves(), 0)
  write(ROW_BYTES)
  assert.is(moves(), 1)
  assert.is(keeper.settled, null)
  write(4 * ROW_BYTES)
  await endMove()
  const { settled } = keeper
  assert.ok(settled)
  await endMove()
  await settled
  assert.is(keeper.settled, null)
  const before = walBytes()
  write(FULL_BYTES / 2)
  assert.is(walBytes(), before, 'the WAL did not begin again')
  assert.is(own(), 0, 'the writer moved something itself')
  await close()
})

wal('moves a large rest beside the writer, too', async () => {
  const { keeper, write, endMove, moves, close } = openKeeper()
  write(FULL_BYTES + ROW_BYTES)
  write((FULL_BYTES * 3) / 8)
  await endMove()
  assert.is(moves(), 1)
  assert.is(keeper.settled, null)
  write(ROW_BYTES)
  await endMove()
  assert.is(moves(), 1)
  assert.ok(keeper.settled)
  await close()
})

wal('lets a writer wait that is faster than the moves', async () => {
  const { keeper, write, endMove, close } = openKeeper()
  write(FULL_BYTES + ROW_BYTES)
  write(FULL_BYTES)
  await endMove()
  assert.ok(keeper.settled)
  await close()
})

wal('moves the rest itself if the writer did not wait', async () => {
  const { keeper, write, endMove, walBytes, own, close } = openKeeper()
  write(FULL_BYTES + ROW_BYTES)
  await endMove()
  write(ROW_BYTES)
  await endMove()
  assert.is(keeper.settled, null)
  assert.is(own(), 1)
  const before = walBytes()
  write(FULL_BYTES / 2)
  assert.is(walBytes(), before)
  await close()
})

wal('moves everything itself if the checkpointer cannot', async () => {
  const failing = { move: () => Promise.resolve(false), close: () => Promise.resolve() }
  const { write, endMove, own, close } = openKeeper(failing)
  write(FULL_BYTES + ROW_BYTES)
  await endMove()
  assert.is(own(), 0)
  await endMove()
  assert.is(own(), 1)
  await close()
})

wal('learns from the checkpointer that a reader kept a part of the WAL', async () => {
  const { file, db, keeper, write, endMove, own, close } = openKeeper()
  const reader = openDatabase(file, 'normal')
  reader.exec('BEGIN; SELECT count(*) FROM rows')
  write(FULL_BYTES + ROW_BYTES)
  await endMove()
  await endMove()
  assert.is(own(), 1)
  reader.exec('COMMIT')
  reader.close()
  assert.is(keeper.settled, null)
  assert.is(db.isOpen, true)
  await close()
})

wal('does not keep its process from ending when the checkpointer is closed during a move', () => {
  const program = fileURLToPath(new URL('../fixtures/eventStore/closedCheckpointer.ts', import.meta.url))
  assert.is(execFileSync(process.execPath, [program], { encoding: 'utf8' }), 'closed')
})

wal.run()
