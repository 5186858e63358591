import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { type Embedded, put, spawnEmbedded } from '../support/backedUp.ts'
import { hasBubblewrap } from '../support/bubblewrap.ts'
import { cli, cliJson } from '../support/cli.ts'
import { folderOf } from '../support/dev.ts'
import { openSmallDisk, type SmallDisk } from '../support/smallDisk.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const DISK = 2 << 20
/** More than the disk has room for. */
const LARGE = 3 << 20

interface Context {
  server: Embedded
  /** A backup that fits the disk. */
  backup: string
}

const full = suite<Context>('a full disk', { timeoutMs: 240_000 })
const test = hasBubblewrap ? full : full.skip

full.before(async (context) => {
  context.server = await spawnEmbedded()
  context.backup = join(tempDir(), 'backup')
  await cliJson(['backup', context.backup], { env: context.server.cliEnv })
})
full.after(({ server }) => server.stop())

const onDisk = async (work: (disk: SmallDisk) => Promise<void>): Promise<void> => {
  const disk = await openSmallDisk(DISK)
  try {
    await work(disk)
  } finally {
    await disk.close()
  }
}

/** Fails with one line that names a file of the disk and says what to do. */
const refuses = async (
  disk: SmallDisk,
  args: readonly string[],
  given: { readonly env?: Readonly<Record<string, string>>; readonly input?: string } = {},
): Promise<void> => {
  const { code, out, err } = await cli(args, { ...given, within: disk.within })
  assert.equal([code, out], [1, ''], err)
  assert.match(err, /^svc: [^\n]+; free some space and repeat the command\n$/, err)
  assert.match(err, disk.path)
}

test('that has no room leaves nothing of an export, and a repetition succeeds', async ({ server }) => {
  await onDisk(async (disk) => {
    const given = { env: server.cliEnv, within: disk.within }
    for (const [args, files] of [
      [
        ['export', 'local/dev', join(disk.path, 'dev.svc')],
        ['dev.svc', 'dev.svc.key'],
      ],
      [['audit', 'export', join(disk.path, 'audit.jsonl')], ['audit.jsonl']],
    ] as const) {
      const before = disk.names()
      disk.fill()
      await refuses(disk, args, given)
      assert.equal(disk.names(), before)
      disk.free()
      await cliJson(args, given)
      assert.equal(
        disk
          .names()
          .filter((name) => !before.includes(name))
          .sort(),
        files,
      )
    }
  })
})

test('that has no room refuses a backup and a restore, and a repetition succeeds', async ({
  server,
  backup,
}) => {
  await onDisk(async (disk) => {
    const [to, data] = [join(disk.path, 'backup'), join(disk.path, 'data')]
    const secrets = join(server.dataDir, 'secrets.json')
    const restore = ['restore', backup, '--secrets', secrets]
    const given = { env: { SVC_DATA_DIR: data }, within: disk.within }
    disk.fill()
    await refuses(disk, restore, given)
    assert.equal(
      disk.names('data').filter((name) => !name.startsWith('lock')),
      [],
    )
    await refuses(disk, ['backup', to], { env: server.cliEnv })
    disk.free()
    await cliJson(['backup', to], { env: server.cliEnv, within: disk.within })
    await cliJson(restore, given)
  })
})

test('that becomes full leaves nothing of an export or a download, and its earlier backup', async ({
  server,
}) => {
  await onDisk(async (disk) => {
    const given = { env: server.cliEnv, within: disk.within }
    const backup = join(disk.path, 'backup')
    await cliJson(['backup', backup], given)
    await put(server, 'large', 'x'.repeat(LARGE))
    const before = disk.names()
    await refuses(disk, ['export', 'local/dev', join(disk.path, 'dev.svc')], given)
    await refuses(disk, ['files', 'get', 'large', join(disk.path, 'large')], given)
    await refuses(disk, ['backup', backup], given)
    assert.equal(disk.names(), before)
    assert.is((await cli(['backup', 'verify', backup], given)).code, 0)
  })
})

test('that becomes full during a restore leaves no data, and a larger one is restored', async ({
  server,
}) => {
  await put(server, 'large', 'x'.repeat(LARGE))
  const backup = join(tempDir(), 'backup')
  await cliJson(['backup', backup], { env: server.cliEnv })
  const restore = ['restore', backup, '--secrets', join(server.dataDir, 'secrets.json')]
  await onDisk(async (disk) => {
    await refuses(disk, restore, { env: { SVC_DATA_DIR: join(disk.path, 'data') } })
    assert.equal(
      disk.names('data').filter((name) => !name.startsWith('lock')),
      [],
    )
  })
  await cliJson(restore, { env: { SVC_DATA_DIR: join(tempDir(), 'data') } })
})

test('that has no room leaves no part of a build and of types', async () => {
  const folder = folderOf({ 'package.json': '{"name":"orders"}', 'src/a.ts': 'export const a = () => 1\n' })
  await onDisk(async (disk) => {
    disk.fill()
    await refuses(disk, ['build', folder, '--out', join(disk.path, 'orders.zip')])
    await refuses(disk, ['types', folder, '--out', join(disk.path, 'svc.gen.d.ts')])
    assert.equal(disk.names(), [])
  })
})

test('that has no room stores no profile, creates no project, and keeps the package.json of one', async ({
  server,
}) => {
  await onDisk(async (disk) => {
    const { api_key } = JSON.parse(readFileSync(join(server.dataDir, 'secrets.json'), 'utf8')) as {
      api_key: string
    }
    const input = `${api_key}\n`
    const login = { env: { XDG_CONFIG_HOME: disk.path }, within: disk.within, input }
    await cliJson(['login', server.url], login)
    const kept = '{"name":"orders"}\n'
    disk.write('package.json', kept)
    disk.fill()
    await refuses(disk, ['login', server.url, '--profile', 'b'], login)
    await refuses(disk, ['init', disk.path])
    assert.equal(disk.names(), ['package.json', 'svc'])
    assert.is(disk.read('package.json'), kept)
    disk.free()
    assert.is((await cli(['runs', '--profile', 'default'], login)).code, 0)
  })
})

full.run()
