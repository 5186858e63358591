import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import { newId } from '../../src/ids.ts'
import type { ReadModelStatus } from '../../src/projections/readModelStatus.ts'
import { cliJson } from '../support/cli.ts'
import type { Project } from '../support/build.ts'
import { EMBEDDED, installation } from '../support/installation.ts'
import { spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import { runFacts } from '../projections/runFacts.ts'

const KILLS = 3

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

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
    const ended = await until(
      async () => {
        const found = await projections(server.url, 'list')
        return found.every(({ rebuild }) => rebuild?.ended_at) ? found : undefined
      },
      { timeoutMs: 60_000 },
    )
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

/** Facts for which a start uses threads. */
const RUNS = 30_000
/** Bytes in the files that the threads fill, at each of which the process is killed. */
const KILLED_AT = [1, 2 << 20, 8 << 20]

const filledBytes = (dataDir: string): number => {
  const folder = join(dataDir, 'read-models')
  if (!existsSync(folder)) return 0
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((file) => file.isFile())
  return files.reduce((sum, { parentPath, name }) => sum + sizeOf(join(parentPath, name)), 0)
}
const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0

rebuilds('of a start that fills read models in threads continue after each kill -9', async () => {
  const dataDir = tempDir()
  const env = { ...EMBEDDED, SVC_MASTER_KEY: '' }
  const first = await spawnServer({ dataDir, env })
  const { env_id } = await first.api.post<Project>('/projects', { name: 'p' })
  await first.stop()
  const store = openEventStore({ dir: dataDir })
  const start = new Date().toISOString()
  for (let n = 0; n < RUNS; n += 500) {
    const facts = Array.from({ length: 500 }, () => {
      const run = runFacts({ run_id: newId(), env_id, start })
      return [run.started, run.succeeded(5)]
    })
    await store.append(newId(), facts.flat(), 'none')
  }
  await store.close()
  rmSync(join(dataDir, 'read-models.db'))
  for (const bytes of KILLED_AT) {
    const killed = spawn(process.execPath, [main], { env: installation(dataDir, env), stdio: 'ignore' })
    const ended = once(killed, 'exit')
    await until(() => filledBytes(dataDir) >= bytes, { timeoutMs: 60_000, everyMs: 5 })
    killed.kill('SIGKILL')
    await ended
  }
  const server = await spawnServer({ dataDir, env })
  try {
    assert.is((await server.api.page('/runs?limit=1')).pagination.total, RUNS)
    assert.is((await server.api.page('/runs?status=succeeded&limit=1')).pagination.total, RUNS)
    assert.is((await server.api.page('/projects')).pagination.total, 1)
  } finally {
    await server.stop()
  }
  const db = new DatabaseSync(join(dataDir, 'read-models.db'), { readOnly: true })
  assert.equal(db.prepare('SELECT name FROM collections WHERE is_filling = 1').all(), [])
  assert.ok(
    Number(db.prepare('SELECT count(*) AS n FROM collections WHERE side IS NOT NULL').get()?.['n']) > 0,
  )
  db.close()
})

rebuilds.run()
