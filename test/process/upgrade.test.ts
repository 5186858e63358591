import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import * as assert from 'uvu/assert'
import type { ReadModelStatus } from '../../src/projections/readModelStatus.ts'
import { cliJson } from '../support/cli.ts'
import { EMBEDDED } from '../support/installation.ts'
import { spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const RAISED = ['projects', 'events', 'orgs', 'api_keys']

/** Lets the stored read models be those of a build before this one. */
const downgrade = (dataDir: string): void => {
  const db = new DatabaseSync(join(dataDir, 'read-models.db'))
  for (const name of RAISED)
    db.prepare(
      `UPDATE collections SET version = version - 1, spec = json_set(spec, '$.version', version - 1) WHERE name = ?`,
    ).run(name)
  db.close()
}

const upgrade = suite('an upgrade with raised versions of read models', { timeoutMs: 120_000 })

upgrade('serves the earlier documents from the first request on, also after kill -9', async () => {
  const dataDir = tempDir()
  const spawn = () => spawnServer({ dataDir, env: { ...EMBEDDED, SVC_MASTER_KEY: '' } })
  const statusOf = async (url: string): Promise<readonly ReadModelStatus[]> => {
    const env = { SVC_URL: url, SVC_DATA_DIR: dataDir }
    const all = await cliJson<readonly ReadModelStatus[]>(['projections', 'list'], { env })
    return all.filter(({ name }) => RAISED.includes(name))
  }
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
      const found = await statusOf(last.url)
      return found.every(({ rebuild }) => rebuild?.state === 'done') ? found : undefined
    })
    for (const { version, rebuild } of done) assert.is(rebuild?.from_version, version - 1)
    assert.equal(await last.api.get('/projects'), before)
  } finally {
    await last.stop()
  }
})

upgrade.run()
