import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type Document, MongoClient } from 'mongodb'
import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import type { ReadModelStatus } from '../../src/projections/readModelStatus.ts'
import { cliJson } from '../support/cli.ts'
import { namedUrl } from '../support/engines.ts'
import { EMBEDDED, realEngines } from '../support/installation.ts'
import { notHere } from '../support/notHere.ts'
import { spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const PATIENT = { timeoutMs: 60_000 }

const RAISED = ['projects', 'events', 'orgs', 'api_keys']

/** Those whose earlier version had no index. */
const UNINDEXED = ['projects', 'api_keys']

/** Lets the stored read models be those of a build before this one. */
const downgrade = (dataDir: string): void => {
  const db = new DatabaseSync(join(dataDir, 'read-models.db'))
  for (const name of UNINDEXED) {
    const { stored_as } = db.prepare('SELECT stored_as FROM collections WHERE name = ?').get(name) ?? {}
    const table = String(stored_as)
    const indexes = db.prepare(
      `SELECT name FROM sqlite_schema WHERE tbl_name = ? AND type = 'index' AND sql <> ''`,
    )
    for (const index of indexes.all(table)) db.exec(`DROP INDEX "${String(index['name'])}"`)
    for (const column of db.prepare('SELECT name FROM pragma_table_info(?)').all(table))
      if (String(column['name']).startsWith('f_'))
        db.exec(`ALTER TABLE "${table}" DROP COLUMN "${String(column['name'])}"`)
    db.exec(`DELETE FROM "${table}__counts"`)
    db.prepare(`UPDATE collections SET spec = json_set(spec, '$.indexes', json('[]')) WHERE name = ?`).run(
      name,
    )
  }
  for (const name of RAISED)
    db.prepare(
      `UPDATE collections SET version = version - 1, spec = json_set(spec, '$.version', version - 1) WHERE name = ?`,
    ).run(name)
  db.close()
}

/** The same in MongoDB. */
const downgradeIn = async (url: string): Promise<void> => {
  const client = new MongoClient(url)
  const db = client.db()
  const versions = db.collection<{ _id: string; indexes: string; checkpoint: string }>('versions')
  for (const row of await versions.find().toArray()) {
    const [, name = '', version] = /^(.+)__v(\d+)$/.exec(row._id) ?? []
    if (!RAISED.includes(name)) continue
    const earlier = `${name}__v${Number(version) - 1}`
    for (const { name: from } of await db.listCollections().toArray())
      if (from === row._id || from === `${row._id}__counts`)
        await db.renameCollection(from, from.replace(row._id, earlier))
    await versions.deleteOne({ _id: row._id })
    const isUnindexed = UNINDEXED.includes(name)
    await versions.insertOne({ ...row, _id: earlier, ...(isUnindexed && { indexes: '[]' }) })
    if (!isUnindexed) continue
    await db.collection(`${earlier}__counts`).deleteMany({})
    const documents = db.collection<{ _id: string; last: Document }>(earlier)
    for (const { _id, last } of await documents.find().toArray())
      await documents.replaceOne({ _id }, { last: { ...last, f: {} } })
  }
  await client.close()
}

const statusOf = async (
  url: string,
  access: Readonly<Record<string, string>>,
): Promise<readonly ReadModelStatus[]> => {
  const env = { SVC_URL: url, ...access }
  const all = await cliJson<readonly ReadModelStatus[]>(['projections', 'list'], { env })
  return all.filter(({ name }) => RAISED.includes(name))
}

const upgrade = suite('an upgrade with raised versions of read models', { timeoutMs: 120_000 })

upgrade('serves the earlier documents from the first request on, also after kill -9', async () => {
  const dataDir = tempDir()
  const spawn = () => spawnServer({ dataDir, env: { ...EMBEDDED, SVC_MASTER_KEY: '' } })
  const first = await spawn()
  for (const name of ['a', 'b', 'c']) await first.api.post('/projects', { name })
  const before = await first.api.get('/projects')
  await first.stop()
  downgrade(dataDir)
  for (let kill = 0; kill < 3; kill++) {
    const server = await spawn()
    const served = await server.api.get('/projects').finally(() => server.end('SIGKILL'))
    assert.equal(served, before)
  }
  const last = await spawn()
  try {
    assert.equal(await last.api.get('/projects'), before)
    const done = await until(async () => {
      const found = await statusOf(last.url, { SVC_DATA_DIR: dataDir })
      return found.every(({ rebuild }) => rebuild?.state === 'done') ? found : undefined
    }, PATIENT)
    for (const { version, rebuild } of done) assert.is(rebuild?.from_version, version - 1)
    assert.equal(await last.api.get('/projects'), before)
  } finally {
    await last.stop()
  }
})

const title = 'of a single node on MongoDB serves the earlier documents'
if (namedUrl('mongodb') === null) notHere(title, 'it needs SVC_TEST_MONGODB')
else
  upgrade(title, async () => {
    const dataDir = tempDir()
    const SVC_OPERATOR_TOKEN = newId()
    const engines = realEngines(dataDir)
    const env = { ...engines, SVC_OPERATOR_TOKEN }
    const first = await spawnServer({ dataDir, env })
    for (const name of ['a', 'b', 'c']) await first.api.post('/projects', { name })
    const before = await first.api.get('/projects')
    await first.stop()
    await downgradeIn(engines['SVC_READ_MODELS'] ?? '')
    const second = await spawnServer({ dataDir, env })
    try {
      assert.equal(await second.api.get('/projects'), before)
      const done = await until(async () => {
        const found = await statusOf(second.url, { SVC_OPERATOR_TOKEN })
        return found.every(({ rebuild }) => rebuild?.state === 'done') ? found : undefined
      }, PATIENT)
      for (const { version, rebuild } of done) assert.is(rebuild?.from_version, version - 1)
      assert.equal(await second.api.get('/projects'), before)
    } finally {
      await second.stop()
    }
  })

upgrade.run()
