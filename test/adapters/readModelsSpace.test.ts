import { statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import * as assert from 'uvu/assert'
import { openReadModels } from '../../src/adapters/embedded/readModels/index.ts'
import { cursorAt } from '../../src/ports/counterCursors.ts'
import type { ReadModels } from '../../src/ports/readModels.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const MIB = 1 << 20
/** What the file may keep for new documents, and a margin. */
const KEPT = 24 * MIB

const events = { name: 'events', version: 1, indexes: [{ equal: ['env'], sort: 'at', counted: true }] }
const idOf = (n: number): string => `0190-${String(n).padStart(6, '0')}`
const DOCUMENTS = 24_000

const sizeIn = (dir: string, name = 'read-models.db'): number => statSync(join(dir, name)).size

/** Stores documents of 34 MiB. */
const fill = async (readModels: ReadModels): Promise<void> => {
  const collection = await readModels.writer(events)
  const text = 'x'.repeat(1100)
  for (let n = 0; n < DOCUMENTS; n += 1000) {
    const writes = Array.from({ length: 1000 }, (_, i) => ({
      id: idOf(n + i),
      doc: { env: `env-${i % 7}`, at: n + i, text },
      cursor: cursorAt(1),
    }))
    await collection.write(writes, cursorAt(1))
  }
}

const space = suite('the disk space of embedded read models')

space('goes back to the disk when documents were removed, while the service runs', async () => {
  const dir = tempDir()
  const readModels = openReadModels({ dir })
  await fill(readModels)
  const collection = await readModels.writer(events)
  const kept = idOf(DOCUMENTS - 1)
  const removed = Array.from({ length: DOCUMENTS - 1 }, (_, n) => ({
    id: idOf(n),
    doc: null,
    cursor: cursorAt(2),
  }))
  await collection.write(removed, cursorAt(2))
  await until(() => sizeIn(dir) < KEPT)
  assert.is(await collection.get(idOf(0)), null)
  assert.is((await collection.get(kept))?.['at'], DOCUMENTS - 1)
  await collection.write([{ id: idOf(0), doc: { env: 'late', at: 0 }, cursor: cursorAt(1) }], cursorAt(2))
  assert.is(await collection.get(idOf(0)), null) // an older write restores nothing
  await readModels.close()
})

space('goes back to the disk when a version was dropped, and the WAL stays small meanwhile', async () => {
  const dir = tempDir()
  const readModels = openReadModels({ dir })
  await fill(readModels)
  const wal = sizeIn(dir, 'read-models.db-wal')
  await readModels.drop(events, () => Promise.resolve(true))
  await until(() => sizeIn(dir) < KEPT)
  assert.ok(sizeIn(dir, 'read-models.db-wal') <= wal + 16 * MIB, `the WAL had ${wal} bytes`)
  await readModels.close()
})

space('goes back to the disk in a file of an earlier version that has little content', async () => {
  const dir = tempDir()
  const first = openReadModels({ dir })
  await first.assign('a log')
  await first.close()
  const db = new DatabaseSync(join(dir, 'read-models.db'))
  db.exec(`PRAGMA auto_vacuum=NONE; VACUUM; CREATE TABLE former (bytes BLOB);
    INSERT INTO former VALUES (zeroblob(${40 * MIB})); DROP TABLE former`)
  db.close()
  assert.ok(sizeIn(dir) > 40 * MIB)
  const readModels = openReadModels({ dir })
  assert.is((await readModels.source()).log_id, 'a log')
  await readModels.close()
  assert.ok(sizeIn(dir) < MIB)
})

space.run()
