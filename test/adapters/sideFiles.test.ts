import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import * as assert from 'uvu/assert'
import { openSideFile } from '../../src/adapters/embedded/readModels/index.ts'
import { clock } from '../../src/clock.ts'
import { cursorAt } from '../../src/ports/counterCursors.ts'
import type { CollectionSpec, Write } from '../../src/ports/readModels.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const spec: CollectionSpec = {
  name: 'cities',
  version: 1,
  indexes: [
    { equal: ['country'], sort: 'name', counted: true },
    { equal: [], sort: 'size', sparse: true },
  ],
}
const INDEXES = ['cities__v1__0', 'cities__v1__1', 'cities__v1__removals']
/** The indexes of a file that is not complete: only those that cover few of its documents. */
const SPARSE = ['cities__v1__1', 'cities__v1__removals']
/** A commit has happened after this time. */
const COMMITTED_AFTER_MS = 1200

const city = (n: number): Write => {
  const name = `city-${String(n).padStart(3, '0')}`
  return { id: name, doc: { name, country: 'x', size: n % 2 ? n : null }, cursor: String(n) }
}

/** The file as a process that was killed now would leave it. */
const leftBy = (dir: string): string => {
  const left = tempDir()
  cpSync(dir, left, { recursive: true })
  return left
}

const indexesIn = (dir: string): string[] => {
  const db = new DatabaseSync(join(dir, 'read-models.db'), { readOnly: true })
  const found = db
    .prepare(`SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'cities__v1' AND sql <> ''`)
    .all()
  db.close()
  return found.map(({ name }) => String(name)).toSorted()
}

const contentOf = async (dir: string) => {
  const { readModels } = openSideFile(dir)
  const collection = await readModels.writer(spec)
  const stored = new Map<string, unknown>()
  for await (const [id, { cursor }] of collection.entries()) stored.set(id, cursor)
  const checkpoint = await collection.checkpoint()
  await readModels.close()
  return { stored: stored.size, checkpoint }
}

const files = suite('a file that a thread fills')

files('is complete with its documents, checkpoint and indexes', async () => {
  const dir = tempDir()
  const { readModels, complete } = openSideFile(dir)
  const collection = await readModels.writer(spec)
  for (let n = 1; n <= 5; n++) await collection.write([city(n)], String(n))
  await complete()
  assert.equal(indexesIn(dir), INDEXES)
  assert.equal(await contentOf(dir), { stored: 5, checkpoint: '5' })
})

files('has whole batches with their checkpoint after kill -9, and continues', async () => {
  const dir = tempDir()
  const { readModels } = openSideFile(dir)
  const collection = await readModels.writer(spec)
  await collection.write([city(1)], '1')
  await collection.write([city(2), city(3)], '3')
  const left = leftBy(dir)
  await readModels.close()
  const { stored, checkpoint } = await contentOf(leftBy(left))
  assert.is(stored, Number(checkpoint ?? 0))

  const continued = openSideFile(left)
  const again = await continued.readModels.writer(spec)
  for (let n = 1; n <= 4; n++) await again.write([city(n)], String(n))
  await continued.complete()
  assert.equal(indexesIn(left), INDEXES)
  assert.equal(await contentOf(left), { stored: 4, checkpoint: '4' })
})

files('is stored when the thread stops, and gets all indexes when it is completed later', async () => {
  const dir = tempDir()
  const { readModels } = openSideFile(dir)
  const collection = await readModels.writer(spec)
  await collection.write([city(1), city(2)], '2')
  await readModels.close()
  assert.equal(indexesIn(dir), SPARSE)
  assert.equal(await contentOf(dir), { stored: 2, checkpoint: '2' })

  const db = new DatabaseSync(join(dir, 'read-models.db')) // killed after the first index
  db.exec(`CREATE INDEX cities__v1__0 ON cities__v1 (f_country, f_name, id) WHERE gone = 0`)
  db.close()
  const { readModels: rest, complete } = openSideFile(dir)
  await rest.writer(spec)
  await complete()
  assert.equal(indexesIn(dir), INDEXES)
})

files('stores none of the batches since the last commit if one fails', async () => {
  const dir = tempDir()
  const { readModels, complete } = openSideFile(dir)
  const collection = await readModels.writer(spec)
  await collection.write([city(1)], '1')
  const unstorable = { id: 'b', doc: { name: ['a list'], country: 'x', size: 1 }, cursor: '2' }
  await collection.write([unstorable], '2')
  await complete().then(
    () => assert.unreachable('expected an error'),
    (error: unknown) => assert.match(String(error), /scalar/),
  )
  await readModels.close()
  const { stored, checkpoint } = await contentOf(dir)
  assert.is(stored, Number(checkpoint ?? 0))
})

files('commits the documents of all batches with their checkpoint', async () => {
  const dir = tempDir()
  const { readModels } = openSideFile(dir)
  const collection = await readModels.writer(spec)
  let n = 0
  const write = () => collection.write([city(++n)], cursorAt(n))
  await write()
  const began = clock.monotonic()
  while (clock.monotonic() - began < COMMITTED_AFTER_MS) await write()
  await write() // a machine that paused may have written nothing since it was time for a commit
  const { stored, checkpoint } = await contentOf(leftBy(dir))
  assert.ok(stored > 0)
  assert.is(cursorAt(stored), checkpoint)
  await readModels.close()
})

files('gives the newest documents to its reader before they are written', async () => {
  const { readModels } = openSideFile(tempDir())
  const collection = await readModels.writer(spec)
  const at = (cursor: string, size: number | null): Write => ({
    id: 'a',
    doc: size === null ? null : { name: 'a', country: 'x', size },
    cursor,
  })
  const sizeIs = async (size: number | null): Promise<void> => {
    const { cursor, doc } = (await collection.stored(['a'])).get('a') ?? {}
    assert.equal([cursor, doc?.['size'] ?? null], [size === null ? '9' : String(size), size])
  }
  const query = { equal: { country: 'x' }, sort: 'name', limit: 9, offset: 0 }
  await collection.write([at('1', 1)], '1')
  await collection.write([at('3', 3), at('2', 2)], '3')
  await sizeIs(3)
  await collection.write([at('2', 2)], '3') // an old batch again
  await sizeIs(3)
  await collection.write([], '4')
  await collection.write([], '5')
  await collection.write([], '6')
  await sizeIs(3)
  await collection.write([at('7', 7)], '7')
  assert.equal(await collection.find(query), { items: [{ name: 'a', country: 'x', size: 7 }], total: 1 })
  await collection.write([at('8', 8)], '8')
  assert.equal(await collection.get('a'), { name: 'a', country: 'x', size: 8 })
  await collection.write([at('9', null)], '9')
  assert.equal(await collection.find(query), { items: [], total: 0 })
  await sizeIs(null)
  await readModels.close()
})

files.run()
