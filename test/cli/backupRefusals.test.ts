import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { type Embedded, filesIn, type Printed, put, smallDisk, spawnEmbedded } from '../support/backedUp.ts'
import { publish } from '../support/build.ts'
import { cli, cliJson } from '../support/cli.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { withRestored } from '../support/withRestored.ts'

const backup = suite<{ server: Embedded }>('svc backup', { timeoutMs: 120_000 })
backup.before(async (context) => {
  context.server = await spawnEmbedded()
})
backup.after(({ server }) => server.stop())

backup(
  'on a full disk leaves the earlier one usable, and continues when there is room',
  async ({ server }) => {
    const dir = join(tempDir(), 'backup')
    const first = await cliJson<Printed>(['backup', dir], { env: server.cliEnv })
    await put(server, 'too-large.txt', 'x'.repeat(3_000_000))
    const { code, err } = await cli(['backup', dir], { env: { ...server.cliEnv, ...smallDisk(2_000_000) } })
    assert.is(code, 1)
    assert.match(err, new RegExp(`^svc: ${dir}: [^\n]+\n$`))
    const verified = await cliJson<Printed & { problems: string[] }>(['backup', 'verify', dir])
    assert.equal([verified.position, verified.problems], [first.position, []])
    const second = await cliJson<Printed>(['backup', dir], { env: server.cliEnv })
    assert.ok(second.position > first.position)
  },
)

backup('that the service refuses leaves no directory', async ({ server }) => {
  for (const env of [{ SVC_URL: 'http://127.0.0.1:9' }, { SVC_OPERATOR_TOKEN: 'w'.repeat(40) }]) {
    const dir = join(tempDir(), 'backup')
    assert.is((await cli(['backup', dir], { env: { ...server.cliEnv, ...env } })).code, 1)
    assert.not.ok(existsSync(dir))
  }
})

backup('refuses a directory with other content, and a backup of another log', async ({ server }) => {
  const alien = tempDir()
  writeFileSync(join(alien, 'thesis.txt'), 'mine')
  const refused = await cli(['backup', alien], { env: server.cliEnv })
  assert.is(refused.code, 1)
  assert.match(
    refused.err,
    /expected an empty directory or an earlier backup, got a directory with thesis\.txt\n$/,
  )
  assert.equal(readdirSync(alien), ['thesis.txt'])
  const dir = join(tempDir(), 'backup')
  const other = await spawnEmbedded()
  await cliJson(['backup', dir], { env: other.cliEnv })
  await other.stop()
  const before = filesIn(dir).map((file) => [file, readFileSync(join(dir, file), 'hex')])
  const { code, err } = await cli(['backup', dir], { env: server.cliEnv })
  assert.is(code, 1)
  assert.match(
    err,
    /^svc: .*expected a backup of the log .*, got one of the log .*; use another directory\n$/,
  )
  assert.equal(
    filesIn(dir).map((file) => [file, readFileSync(join(dir, file), 'hex')]),
    before,
  )
})

backup('refuses a file, and a path below one', async ({ server }) => {
  const file = join(tempDir(), 'file')
  writeFileSync(file, 'mine')
  for (const dir of [file, join(file, 'backup')]) {
    const { code, err } = await cli(['backup', dir], { env: server.cliEnv })
    assert.is(code, 1)
    assert.is(err, `svc: ${dir}: expected a directory, got a file or a path below one\n`)
  }
  assert.is(readFileSync(file, 'utf8'), 'mine')
})

backup('refuses the folders and the manifest of something else, and changes nothing', async ({ server }) => {
  const alien = tempDir()
  const contents = (): string[] => filesIn(alien).map((file) => readFileSync(join(alien, file), 'utf8'))
  const refusal = async (): Promise<string> => {
    const before = contents()
    const { code, err } = await cli(['backup', alien], { env: server.cliEnv })
    assert.is(code, 1)
    assert.equal(contents(), before)
    assert.is(statSync(alien).mode & 0o777, 0o755)
    return err
  }
  chmodSync(alien, 0o755)
  for (const folder of ['log', 'content', 'tmp']) {
    mkdirSync(join(alien, folder))
    writeFileSync(join(alien, folder, 'page.html'), folder)
    assert.match(await refusal(), `expected an empty directory or an earlier backup, got a directory with `)
  }
  writeFileSync(join(alien, 'backup.json'), '{"hosts":["a"]}')
  assert.match(await refusal(), /backup\.json: expected the manifest of a backup/)
})

backup(
  'refuses to continue a log that continued differently after a restore of an older backup',
  async ({ server }) => {
    const [dir, older] = [join(tempDir(), 'backup'), join(tempDir(), 'older')]
    await cliJson(['backup', dir], { env: server.cliEnv })
    cpSync(dir, older, { recursive: true })
    await publish(server.api, 'only:here')
    await cliJson(['backup', dir], { env: server.cliEnv })
    await withRestored(older, server, async (restored) => {
      for (let i = 0; i < 5; i++) await publish(restored.api, 'only:there')
      const { code, err } = await cli(['backup', dir], { env: restored.cliEnv })
      assert.is(code, 1)
      assert.match(err, 'the backup is of another log than that of the service')
    })
    assert.is((await cli(['backup', 'verify', dir])).code, 0)
  },
)

backup(
  'under load contains every blob of its position, although files are replaced meanwhile',
  async ({ server }) => {
    const dir = join(tempDir(), 'backup')
    for (let i = 0; i < 40; i++) await put(server, `busy/${i}`, `${i} `.repeat(20_000))
    let writing = true
    const writers = Array.from({ length: 8 }, async (_, writer) => {
      for (let n = 0; writing; n++) {
        const text = `${writer} ${n} `.repeat(10_000)
        await put(server, `busy/${(writer * 5 + n) % 40}`, text)
      }
    })
    try {
      await cliJson(['backup', dir], { env: server.cliEnv })
    } finally {
      writing = false
      await Promise.all(writers)
    }
    await withRestored(dir, server, async ({ api }) => {
      const { data } = await api.page<{ file_id: string; size: number }>('/files?prefix=busy/&limit=100')
      assert.is(data.length, 40)
      for (const { file_id, size } of data) {
        const { status, text } = await api.send('GET', `/files/${file_id}/download`)
        assert.equal([status, text.length], [200, size])
      }
    })
  },
)

backup('is refused while another one writes the directory', async ({ server }) => {
  const dir = join(tempDir(), 'backup')
  mkdirSync(dir)
  const { lockBackup } = await import('../../src/process/lockBackup.ts')
  const unlock = lockBackup(dir)
  const { code, err } = await cli(['backup', dir], { env: server.cliEnv })
  unlock()
  assert.is(code, 1)
  assert.match(err, 'another process is writing this backup')
})
backup.run()
