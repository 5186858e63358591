import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { type Printed, smallDisk, spawnEmbedded } from '../support/backedUp.ts'
import { call, publish } from '../support/build.ts'
import { cli, cliJson, startCli } from '../support/cli.ts'
import { furnish, SECRET_LENGTH } from '../support/furnish.ts'
import { getAnswers } from '../support/getAnswers.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

/** A process stops in the moment in which it has created the folder of the blobs: a restore is fast. */
const STOPS_AT_BLOBS = [
  '--import',
  `data:text/javascript,${encodeURIComponent(`
    import fs from 'node:fs'
    import { syncBuiltinESMExports } from 'node:module'
    const { mkdirSync } = fs
    fs.mkdirSync = (path, options) => {
      const created = mkdirSync(path, options)
      if (path.endsWith('/blobs')) process.kill(process.pid, 'SIGSTOP')
      return created
    }
    syncBuiltinESMExports()`)}`,
]

interface Context {
  /** A backup of a service that was stopped since. */
  dir: string
  secrets: string
  printed: Printed
  answers: Readonly<Record<string, string>>
  /** How they were requested. */
  asked: { upload_id: string; asOf: readonly string[] }
}

const restore = suite<Context>('svc restore', { timeoutMs: 180_000 })

restore.before(async (context) => {
  const dir = join(tempDir(), 'backup')
  const server = await spawnEmbedded()
  const { upload_id } = await furnish(server.api)
  const printed = await cliJson<Printed>(['backup', dir], { env: server.cliEnv })
  const { data } = await server.api.page<{ position: string }>('/audit?limit=100')
  const positions = data.map(({ position }) => position)
  const asked = { upload_id, asOf: [positions.at(-5) ?? '', positions.at(5) ?? ''] }
  const answers = await getAnswers(server.api, server.operator, asked)
  await publish(server.api, 'later', 'than the backup')
  await server.api.post('/projects', { name: 'later' })
  await server.stop()
  Object.assign(context, { dir, printed, answers, asked, secrets: join(server.dataDir, 'secrets.json') })
})

restore(
  'makes a service that answers every GET as the original did at the position of the backup',
  async ({ dir, secrets, answers, printed, asked }) => {
    const dataDir = join(tempDir(), 'data')
    const restored = await cliJson<Printed>(['restore', dir, '--secrets', secrets], {
      env: { SVC_DATA_DIR: dataDir },
    })
    assert.equal([restored.position, restored.blobs], [printed.position, printed.blobs])
    const server = await spawnEmbedded(dataDir)
    try {
      const now = await getAnswers(server.api, server.operator, asked)
      assert.equal(Object.keys(now).sort(), Object.keys(answers).sort())
      for (const [path, answer] of Object.entries(answers)) assert.is(now[path], answer, path)
      assert.ok(Object.keys(answers).length > 100)
      assert.is((await call(server.api, 'f/readKey')).result, SECRET_LENGTH)
    } finally {
      await server.stop()
    }
  },
)

restore('stores nothing that other users can read', async ({ dir, secrets }) => {
  const dataDir = join(tempDir(), 'data')
  const open = join(tempDir(), 'secrets.json')
  copyFileSync(secrets, open)
  chmodSync(open, 0o644)
  await cliJson(['restore', dir, '--secrets', open], { env: { SVC_DATA_DIR: dataDir } })
  for (const root of [dir, dataDir])
    for (const entry of ['.', ...readdirSync(root, { recursive: true, encoding: 'utf8' })])
      assert.is(statSync(join(root, entry)).mode & 0o077, 0, join(root, entry))
})

restore('refuses a directory that contains data, and a running service', async ({ dir, secrets }) => {
  const server = await spawnEmbedded()
  try {
    const before = readdirSync(server.dataDir).sort()
    const env = { SVC_DATA_DIR: server.dataDir }
    const running = await cli(['restore', dir, '--secrets', secrets], { env })
    assert.equal([running.code, running.out], [1, ''])
    assert.match(
      running.err,
      /^svc: SVC_DATA_DIR: .* contains data \([^)]+\), and process \d+ uses it; restore into an empty directory\n$/,
    )
    await server.stop()
    const stopped = await cli(['restore', dir, '--secrets', secrets], { env })
    assert.is(stopped.code, 1)
    assert.match(stopped.err, /^svc: SVC_DATA_DIR: .* contains data .*empty directory\n$/)
    assert.equal(
      readdirSync(server.dataDir)
        .filter((name) => !name.includes('lock'))
        .sort(),
      before.filter((name) => existsSync(join(server.dataDir, name)) && !name.includes('lock')).sort(),
    )
  } finally {
    await server.stop()
  }
})

restore(
  'refuses a wrong master key and a missing one with one line, and writes nothing',
  async ({ dir, printed }) => {
    const dataDir = join(tempDir(), 'data')
    const wrong = await cli(['restore', dir], {
      env: { SVC_DATA_DIR: dataDir, SVC_MASTER_KEY: Buffer.alloc(32, 1).toString('base64') },
    })
    assert.equal([wrong.code, wrong.out], [1, ''])
    assert.match(
      wrong.err,
      new RegExp(`^svc: SVC_MASTER_KEY: .* ${printed.master_key_id}, got [0-9a-f]+; .*\n$`),
    )
    const missing = await cli(['restore', dir], { env: { SVC_DATA_DIR: dataDir } })
    assert.is(missing.code, 1)
    assert.match(missing.err, /^svc: The backup needs the master key .*--secrets.*\n$/)
    assert.not.ok(existsSync(dataDir))
  },
)

restore('uses a secrets.json that is in the directory already', async ({ dir, secrets }) => {
  const dataDir = tempDir()
  copyFileSync(secrets, join(dataDir, 'secrets.json'))
  await cliJson(['restore', dir], { env: { SVC_DATA_DIR: dataDir } })
  assert.ok(existsSync(join(dataDir, 'log.db')))
})

restore(
  'neither replaces nor removes a secrets.json that is in the directory already',
  async ({ dir, secrets }) => {
    const dataDir = tempDir()
    const there = join(dataDir, 'secrets.json')
    const env = { SVC_DATA_DIR: dataDir }
    writeFileSync(there, JSON.stringify({ master_key: Buffer.alloc(32, 1).toString('base64') }))
    const before = readFileSync(there, 'utf8')
    const refused = await cli(['restore', dir, '--secrets', secrets], { env })
    assert.is(refused.code, 1)
    assert.match(
      refused.err,
      /^svc: --secrets: .*secrets\.json exists with other content, .*; move it away\n$/,
    )
    assert.is(readFileSync(there, 'utf8'), before)
    copyFileSync(secrets, there)
    const failed = await cli(['restore', dir, '--secrets', there], { env: { ...env, ...smallDisk(100_000) } })
    assert.is(failed.code, 1)
    assert.is(readFileSync(there, 'utf8'), readFileSync(secrets, 'utf8'))
    await cliJson(['restore', dir, '--secrets', there], { env })
  },
)

restore('checks the secrets of --secrets also beside SVC_MASTER_KEY', async ({ dir, secrets }) => {
  const other = join(tempDir(), 'other.json')
  writeFileSync(other, JSON.stringify({ master_key: Buffer.alloc(32, 1).toString('base64') }))
  const { master_key } = JSON.parse(readFileSync(secrets, 'utf8')) as { master_key: string }
  const dataDir = join(tempDir(), 'data')
  const { code, err } = await cli(['restore', dir, '--secrets', other], {
    env: { SVC_DATA_DIR: dataDir, SVC_MASTER_KEY: master_key },
  })
  assert.is(code, 1)
  assert.match(err, `${other}: the backup was made with the master key`)
  assert.not.ok(existsSync(dataDir))
})

restore(
  'that did not complete keeps the service from starting, and can be repeated',
  async ({ dir, secrets }) => {
    const dataDir = tempDir()
    writeFileSync(join(dataDir, 'restoring'), dir)
    mkdirSync(join(dataDir, 'blobs'))
    writeFileSync(join(dataDir, 'log.db'), 'half')
    const refused = await spawnEmbedded(dataDir).then(
      () => '',
      (error: unknown) => String(error),
    )
    assert.match(refused, 'a restore that did not complete: run svc restore again')
    await cliJson(['restore', dir, '--secrets', secrets], { env: { SVC_DATA_DIR: dataDir } })
    await (await spawnEmbedded(dataDir)).stop()
  },
)

restore(
  'that was killed leaves a directory in which the service does not start, until it is repeated',
  async ({ dir, secrets }) => {
    const dataDir = join(tempDir(), 'data')
    const env = { SVC_DATA_DIR: dataDir }
    const killed = startCli(['restore', dir, '--secrets', secrets], { env, nodeOptions: STOPS_AT_BLOBS })
    await until(() => existsSync(join(dataDir, 'blobs')), { timeoutMs: 30_000 })
    killed.process.kill('SIGKILL')
    assert.is(await killed.ended, 'SIGKILL')
    assert.ok(existsSync(join(dataDir, 'restoring')))
    const refused = await spawnEmbedded(dataDir).then(
      () => '',
      (error: unknown) => String(error),
    )
    assert.match(refused, 'a restore that did not complete')
    await cliJson(['restore', dir, '--secrets', secrets], { env })
    await (await spawnEmbedded(dataDir)).stop()
  },
)

restore('on a full disk restores nothing, and leaves an empty directory', async ({ dir, secrets }) => {
  const dataDir = join(tempDir(), 'data')
  const { code, err } = await cli(['restore', dir, '--secrets', secrets], {
    env: { SVC_DATA_DIR: dataDir, ...smallDisk(100_000) },
  })
  assert.is(code, 1)
  assert.match(err, /^svc: [^\n]+\n$/)
  assert.equal(
    readdirSync(dataDir).filter((name) => !name.startsWith('lock')),
    [],
  )
})

restore('refuses an SVC_DATA_DIR that is a file, or is below one', async ({ dir, secrets }) => {
  const file = join(tempDir(), 'file')
  writeFileSync(file, 'mine')
  for (const dataDir of [file, join(file, 'data')])
    for (const options of [['--secrets', secrets], []]) {
      const { code, err } = await cli(['restore', dir, ...options], { env: { SVC_DATA_DIR: dataDir } })
      assert.is(code, 1)
      assert.is(err, `svc: SVC_DATA_DIR: expected a directory, got a file or a path below one: ${dataDir}\n`)
    }
  assert.is(readFileSync(file, 'utf8'), 'mine')
})

restore('names what is no backup', async ({ secrets }) => {
  const env = { SVC_DATA_DIR: join(tempDir(), 'data') }
  for (const other of [tempDir(), secrets])
    for (const command of [
      ['backup', 'verify', other],
      ['restore', other, '--secrets', secrets],
    ]) {
      const { code, err } = await cli(command, { env })
      assert.is(code, 1)
      assert.match(err, `${other} is not a backup: it contains no backup.json`)
    }
})

restore('refuses a backup of a newer version, and names its format', async ({ secrets }) => {
  const dir = tempDir()
  writeFileSync(
    join(dir, 'backup.json'),
    JSON.stringify({ format: 'svc backup', version: 2, segments: 'of another kind' }),
  )
  const { code, err } = await cli(['restore', dir, '--secrets', secrets], {
    env: { SVC_DATA_DIR: join(tempDir(), 'data') },
  })
  assert.is(code, 1)
  assert.match(err, /^svc: .*backup\.json: the backup has format 2, .*upgrade svc\n$/)
})
restore.run()
