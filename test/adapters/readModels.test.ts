import { execFile } from 'node:child_process'
import { closeSync, existsSync, openSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import * as assert from 'uvu/assert'
import { type Discarded, openReadModels } from '../../src/adapters/embedded/readModels/index.ts'
import { isAppError } from '../../src/errors.ts'
import { readModelsContract } from '../contracts/readModels.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

readModelsContract('embedded', async () => {
  const dir = tempDir()
  const readModels = openReadModels({ dir })
  return {
    readModels,
    planOf: async (collection, query) => {
      const asked = await statementsOf(() => readModels.reader(collection).find(query))
      const db = new DatabaseSync(join(dir, 'read-models.db'), { readOnly: true })
      try {
        return asked.flatMap((sql) =>
          db
            .prepare(`EXPLAIN QUERY PLAN ${sql}`)
            .all()
            .map(({ detail }) => String(detail)),
        )
      } finally {
        db.close()
      }
    },
    close: () => readModels.close(),
  }
})

/** The statements that some work prepares. */
const statementsOf = async (work: () => Promise<unknown>): Promise<readonly string[]> => {
  const { prepare } = DatabaseSync.prototype
  const prepared: string[] = []
  DatabaseSync.prototype.prepare = function (sql, ...rest) {
    prepared.push(sql)
    return prepare.call(this, sql, ...rest)
  }
  try {
    await work()
    return prepared
  } finally {
    DatabaseSync.prototype.prepare = prepare
  }
}

const spec = { name: 'runs', version: 1, indexes: [{ equal: ['env'], sort: 'at', counted: true }] }
const inEnv = { equal: { env: 'x' }, sort: 'at', limit: 1, offset: 0 }

const open = (dir: string) => {
  const discarded: Discarded[] = []
  const readModels = openReadModels({ dir, onDiscarded: (what) => discarded.push(what) })
  return { readModels, discarded }
}

const fill = async (dir: string, count: number, version = 1) => {
  const { readModels } = open(dir)
  const writer = await readModels.writer({ ...spec, version })
  const writes = Array.from({ length: count }, (_, i) => ({
    id: `d${i}`,
    doc: { env: 'x', at: i, version },
    cursor: '1',
  }))
  await writer.write(writes, '1')
  await readModels.close()
}

const tablesIn = (dir: string): string[] => {
  const db = new DatabaseSync(join(dir, 'read-models.db'), { readOnly: true })
  try {
    return db
      .prepare(`SELECT name FROM sqlite_schema WHERE type = 'table'`)
      .all()
      .map(({ name }) => String(name))
  } finally {
    db.close()
  }
}

const file = suite('embedded read models: the file')

file('keeps documents, totals and checkpoint across a restart', async () => {
  const dir = tempDir()
  await fill(dir, 30, 2)
  const { readModels, discarded } = open(dir)
  const reader = readModels.reader({ ...spec, version: 2 })
  assert.equal(await reader.get('d3'), { env: 'x', at: 3, version: 2 })
  assert.is((await reader.find(inEnv)).total, 30)
  assert.is(await (await readModels.writer({ ...spec, version: 2 })).checkpoint(), '1')
  assert.equal(discarded, [])
  await readModels.close()
})

const unread = () => Promise.resolve(true)

file('completes the removal of a version that was interrupted', async () => {
  const dir = tempDir()
  await fill(dir, 3000, 1)
  await fill(dir, 10, 2)
  const interrupted = open(dir)
  const dropping = interrupted.readModels.drop(spec, unread)
  await interrupted.readModels.close()
  await dropping
  assert.ok(tablesIn(dir).includes('runs__v1'))
  const { readModels, discarded } = open(dir)
  assert.equal(discarded, [])
  assert.equal(await readModels.versions(), [{ name: 'runs', version: 2 }])
  await readModels.drop(spec, unread)
  assert.not(tablesIn(dir).some((table) => table.startsWith('runs__v1')))
  assert.is((await readModels.reader({ ...spec, version: 2 }).find(inEnv)).total, 10)
  await readModels.close()
})

file('never continues a version of which a part was removed', async () => {
  const dir = tempDir()
  await fill(dir, 3000)
  const { readModels } = open(dir)
  const { prepare } = DatabaseSync.prototype
  DatabaseSync.prototype.prepare = function (sql, ...rest) {
    const statement = prepare.call(this, sql, ...rest)
    if (!sql.startsWith('DELETE FROM "runs__v1" WHERE rowid')) return statement
    let left = 2
    const run = () => {
      if (left-- === 0) throw new Error('database or disk is full')
      return statement.run()
    }
    return { run } as unknown as typeof statement
  }
  try {
    await readModels.drop(spec, unread)
  } finally {
    DatabaseSync.prototype.prepare = prepare
  }
  const writer = await readModels.writer(spec)
  assert.is(await writer.checkpoint(), null)
  await writer.write([{ id: 'new', doc: { env: 'x', at: 1 }, cursor: '2' }], '2')
  assert.is(await writer.count(), 1)
  await readModels.close()
  const again = open(dir).readModels
  await again.drop({ ...spec, version: 9 }, unread) // after what is left of the other table
  assert.is((await again.reader(spec).find(inEnv)).total, 1)
  assert.equal(
    tablesIn(dir).filter((table) => table.startsWith('runs__v1') && !table.endsWith('__counts')),
    ['runs__v1_2'],
  )
  await again.close()
})

file('reports that a version could not be removed, and keeps all of it', async () => {
  const dir = tempDir()
  await fill(dir, 3000)
  const { readModels } = open(dir)
  const other = new DatabaseSync(join(dir, 'read-models.db'))
  other.exec("CREATE TRIGGER refuse BEFORE DELETE ON collections BEGIN SELECT RAISE(ABORT, 'refused'); END")
  const failure = await readModels.drop(spec, unread).catch((error: unknown) => error)
  assert.ok(isAppError(failure), String(failure))
  assert.is(await (await readModels.writer(spec)).checkpoint(), '1')
  assert.is((await readModels.reader(spec).find(inEnv)).total, 3000)
  other.exec('DROP TRIGGER refuse')
  other.close()
  await readModels.drop(spec, unread)
  assert.equal(await readModels.versions(), [])
  await readModels.close()
})

file('keeps a version while it is scanned', async () => {
  const dir = tempDir()
  await fill(dir, 1200, 1)
  const { readModels } = open(dir)
  let dropping: Promise<void> | undefined
  let scanned = 0
  for await (const doc of readModels.reader(spec).scan()) {
    dropping ??= readModels.drop(spec, unread)
    if (doc) scanned++
  }
  assert.is(scanned, 1200)
  await dropping
  assert.not(tablesIn(dir).includes('runs__v1'))
  await readModels.close()
})

file('of svc 0.1.0 is used; svc 0.1.0 discards one of this build', async () => {
  const dir = tempDir()
  const file = join(dir, 'read-models.db')
  await fill(dir, 5)
  const db = new DatabaseSync(file)
  const formatOf = () => Number(db.prepare('PRAGMA user_version').get()?.['user_version'])
  assert.is(formatOf(), 2)
  db.exec(`PRAGMA user_version=1; DROP TABLE identity;
    ALTER TABLE collections ADD COLUMN live INTEGER NOT NULL DEFAULT 0`)
  const { readModels, discarded } = open(dir)
  assert.equal(discarded, [])
  assert.is((await readModels.reader(spec).find(inEnv)).total, 5)
  await (await readModels.writer({ ...spec, version: 2 })).write([], '1')
  await readModels.close()
  assert.is(formatOf(), 2)
  db.close()
})

file('is moved aside and rebuilt when it is not a read model', async () => {
  const other = tempDir()
  const db = new DatabaseSync(join(other, 'read-models.db'))
  db.exec(`CREATE TABLE mine (precious); INSERT INTO mine VALUES ('gold')`)
  db.close()
  const garbage = tempDir()
  writeFileSync(
    join(garbage, 'read-models.db'),
    'not a database, and long enough to be taken for one'.repeat(100),
  )
  for (const dir of [other, garbage]) {
    const { readModels, discarded } = open(dir)
    assert.is(discarded.length, 1)
    assert.ok(existsSync(discarded[0]?.movedTo ?? ''))
    assert.is(await (await readModels.writer(spec)).checkpoint(), null)
    await readModels.close()
  }
  const kept = new DatabaseSync(join(other, 'read-models.db.unusable'))
  assert.equal({ ...kept.prepare('SELECT precious FROM mine').get() }, { precious: 'gold' })
  kept.close()
})

file('is rebuilt when it cannot be understood', async () => {
  for (const sql of [
    `UPDATE collections SET spec = '{damaged'`,
    'DROP TABLE identity; CREATE TABLE identity (damaged)',
  ]) {
    const dir = tempDir()
    await fill(dir, 10)
    const db = new DatabaseSync(join(dir, 'read-models.db'))
    db.exec(sql)
    db.close()
    const { readModels, discarded } = open(dir)
    assert.is(discarded.length, 1, sql)
    assert.equal(await readModels.source(), { log_id: null, checkpoint: null })
    await readModels.close()
  }
})

file('is rebuilt after damage was found while it was in use', async () => {
  const dir = tempDir()
  await fill(dir, 2000)
  const path = join(dir, 'read-models.db')
  const descriptor = openSync(path, 'r+')
  const half = statSync(path).size >> 1
  writeSync(descriptor, new Uint8Array(half).fill(0xff), 0, half, half)
  closeSync(descriptor)
  const { readModels, discarded } = open(dir)
  assert.is(discarded.length, 0)
  const scanned = await Array.fromAsync(readModels.reader(spec).scan()).catch((error: unknown) => error)
  assert.ok(isAppError(scanned, 'unavailable'), String(scanned))
  await readModels.close()
  const again = open(dir)
  assert.is(again.discarded.length, 1)
  assert.is(await again.readModels.reader(spec).get('d1'), null)
  assert.not(existsSync(join(dir, 'read-models.db.damaged')))
  await again.readModels.close()
})

file('reports damage that is found while it is in use once, also of a document that is no JSON', async () => {
  const dir = tempDir()
  await fill(dir, 10)
  const db = new DatabaseSync(join(dir, 'read-models.db'))
  db.exec(`UPDATE ${spec.name}__v${spec.version} SET doc = '{damaged' WHERE id = 'd1'`)
  db.close()
  const reports: string[] = []
  const readModels = openReadModels({ dir, onDamaged: (reason) => reports.push(reason) })
  for (let i = 0; i < 2; i++) {
    const failure = await readModels
      .reader(spec)
      .get('d1')
      .catch((error: unknown) => error)
    assert.ok(isAppError(failure, 'unavailable'), String(failure))
    assert.match(failure.message, 'read-models.db is damaged; restart the service, which builds it again')
  }
  assert.equal(reports, ['read-models.db is damaged; restart the service, which builds it again'])
  await readModels.close()
  const again = open(dir)
  assert.is(again.discarded.length, 1)
  await again.readModels.close()
})

file('refuses a document whose indexed field is not a scalar, because no retry would help', async () => {
  const { readModels } = open(tempDir())
  const writer = await readModels.writer(spec)
  try {
    await writer.write([{ id: 'a', doc: { env: ['x'] }, cursor: '1' }], '1')
    assert.unreachable('expected a refusal')
  } catch (error) {
    assert.instance(error, TypeError)
  }
  assert.is(await writer.checkpoint(), null)
  await readModels.close()
})

file('refuses to write a version with indexes other than those it was created with', async () => {
  const { readModels } = open(tempDir())
  await readModels.writer(spec)
  const changed = { ...spec, indexes: [{ equal: [], sort: 'at' }] }
  assert.ok(
    await readModels.writer(changed).then(
      () => false,
      () => true,
    ),
  )
  await readModels.close()
})

file('is unavailable once closed', async () => {
  const { readModels } = open(tempDir())
  const reader = readModels.reader(spec)
  await readModels.close()
  await readModels.close()
  assert.ok(await reader.get('a').catch((error: unknown) => isAppError(error, 'unavailable')))
})

file('refuses writes as unavailable while the disk is full, and loses nothing', async () => {
  const dir = tempDir()
  const script = new URL('../fixtures/readModels/fillDisk.ts', import.meta.url).pathname
  // A file may hold 8 MB here: writing on meets what a full disk gives.
  const command = `ulimit -f 8192; exec "$0" "$1" "$2"`
  const { stdout } = await promisify(execFile)('bash', ['-c', command, process.execPath, script, dir])
  const { stored, code } = JSON.parse(stdout) as { stored: number; code: string }
  assert.is(code, 'unavailable')
  const { readModels, discarded } = open(dir)
  assert.equal(discarded, [])
  const { total } = await readModels.reader(spec).find(inEnv)
  assert.ok(total >= stored, `${total} of ${stored}`) // a part of the refused batch may be stored: it is repeated
  await readModels.close()
})

file.run()
