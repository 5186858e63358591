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

const KILLS = 3

const rebuilds = suite('rebuilds of read models', { timeoutMs: 180_000 })

rebuilds('continue after each kill -9, and find no difference', async () => {
  const dataDir = tempDir()
  const spawn = () => spawnServer({ dataDir, env: { ...EMBEDDED, SVC_MASTER_KEY: '' } })
  const projections = (url: string, ...args: readonly string[]) =>
    cliJson<readonly ReadModelStatus[]>(['projections', ...args], {
      env: { SVC_URL: url, SVC_DATA_DIR: dataDir },
    })
  let server = await spawn()
  try {
    for (let n = 0; n < 30; n++) await server.api.post('/projects', { name: `p${n}` })
    const before = await server.api.get('/projects?limit=100')
    for (let kill = 0; kill < KILLS; kill++) {
      const found = await projections(server.url, 'rebuild', '--verify', '--no-wait')
      assert.ok(found.every(({ rebuild }) => rebuild !== null))
      await server.end('SIGKILL')
      server = await spawn()
      assert.equal(await server.api.get('/projects?limit=100'), before)
    }
    const ended = await until(async () => {
      const found = await projections(server.url, 'list')
      return found.every(({ rebuild }) => rebuild?.ended_at) ? found : undefined
    })
    for (const { name, rebuild } of ended)
      assert.equal([name, rebuild?.state, rebuild?.differences], [name, 'done', 0])
    assert.equal(await server.api.get('/projects?limit=100'), before)
  } finally {
    await server.stop()
  }
  const db = new DatabaseSync(join(dataDir, 'read-models.db'), { readOnly: true })
  assert.equal(db.prepare(`SELECT name FROM collections WHERE name LIKE '%~new'`).all(), [])
  db.close()
})

rebuilds.run()
