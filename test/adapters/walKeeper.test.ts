import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import type { Checkpointer } from '../../src/adapters/embedded/checkpointer.ts'
import { WalKeeper } from '../../src/adapters/embedded/walKeeper.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const MEGABYTE = 1 << 20
const HUGE = 1 << 30

/** A keeper of an empty WAL, and what it asks the thread to do. */
const kept = (options: { readonly fullBytes: number; readonly syncs?: boolean }) => {
  const file = join(tempDir(), 'some.db')
  const db = new DatabaseSync(file)
  db.exec('PRAGMA journal_mode=WAL')
  const asked: string[] = []
  const checkpointer: Checkpointer = {
    move: async (moved) => void asked.push(`move ${moved === file}`),
    sync: (synced) => void asked.push(`sync ${synced === file}`),
    close: async () => {},
  }
  return { asked, keeper: new WalKeeper(db, file, checkpointer, options) }
}

const keeper = suite('the keeper of a WAL')

keeper('syncs a WAL in small parts when commits leave it to the keeper', () => {
  const { asked, keeper } = kept({ fullBytes: HUGE, syncs: true })
  for (let n = 0; n < 64; n++) keeper.wrote(MEGABYTE / 32) // two megabytes
  assert.ok(asked.length >= 2, `${asked.length} syncs of two megabytes`)
  assert.ok(asked.length <= 8, `${asked.length} syncs of two megabytes`)
  assert.equal([...new Set(asked)], ['sync true'])
})

keeper('leaves the sync to commits that do it', () => {
  const { asked, keeper } = kept({ fullBytes: HUGE })
  keeper.wrote(8 * MEGABYTE)
  assert.equal(asked, [])
})

keeper('moves a WAL that is full', () => {
  const { asked, keeper } = kept({ fullBytes: MEGABYTE })
  keeper.wrote(MEGABYTE)
  assert.equal(asked, [])
  keeper.wrote(1)
  assert.equal(asked, ['move true'])
})

keeper('asks for nothing after it was closed', () => {
  const { asked, keeper } = kept({ fullBytes: HUGE, syncs: true })
  keeper.close()
  keeper.wrote(8 * MEGABYTE)
  assert.equal(asked, [])
})

keeper.run()
