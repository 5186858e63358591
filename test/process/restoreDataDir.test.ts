import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { manifestText, parseManifest } from '../../src/backup/manifest.ts'
import { verifyBackup } from '../../src/backup/verifyBackup.ts'
import { restoreDataDir } from '../../src/process/restoreDataDir.ts'
import { messageOf } from '../../src/errors.ts'
import { filesIn, put, spawnEmbedded } from '../support/backedUp.ts'
import { cli, cliJson } from '../support/cli.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

interface Context {
  dir: string
  secrets: string
  files: readonly string[]
}

const quiet = () => {}

const damaged = suite<Context>('a damaged backup', { timeoutMs: 120_000 })
damaged.before(async (context) => {
  const server = await spawnEmbedded()
  const dir = join(tempDir(), 'backup')
  await put(server, 'a.txt', 'some content')
  await put(server, 'b.bin', 'b'.repeat(200_000))
  await cliJson(['backup', dir], { env: server.cliEnv })
  await server.stop()
  const files = filesIn(dir)
  assert.ok(files.length >= 7)
  Object.assign(context, { dir, files, secrets: join(server.dataDir, 'secrets.json') })
})

/** What a check of the backup finds, as one text. */
const foundIn = async (dir: string): Promise<string> => {
  try {
    return (await verifyBackup(dir, quiet)).problems.join('\n')
  } catch (error) {
    return messageOf(error)
  }
}

const flipped = (whole: Buffer): { readonly bytes: Buffer; readonly at: number } => {
  const bytes = Buffer.from(whole)
  const at = Math.floor(Math.random() * whole.length)
  bytes[at] = (bytes[at] ?? 0) ^ (1 << Math.floor(Math.random() * 8))
  return { bytes, at }
}

damaged(
  'is found by its file, whatever byte of it is flipped, and also when it is longer, shorter or missing',
  async ({ dir, files }) => {
    assert.is(await foundIn(dir), '')
    for (const file of files) {
      const path = join(dir, file)
      const whole = readFileSync(path)
      for (let n = 0; n < 20; n++) {
        const { bytes, at } = flipped(whole)
        writeFileSync(path, bytes)
        assert.match(await foundIn(dir), file, `byte ${at} of ${file}`)
      }
      writeFileSync(path, Buffer.concat([whole, Buffer.from('x')]))
      assert.match(await foundIn(dir), file)
      writeFileSync(path, whole)
      truncateSync(path, Math.floor(Math.random() * whole.length))
      assert.match(await foundIn(dir), file)
      rmSync(path)
      assert.match(await foundIn(dir), file)
      writeFileSync(path, whole)
    }
    assert.is(await foundIn(dir), '')
  },
)

damaged('is not restored: the directory is as empty as before', async ({ dir, files, secrets }) => {
  for (const file of files) {
    const path = join(dir, file)
    const whole = readFileSync(path)
    const { bytes, at } = flipped(whole)
    writeFileSync(path, bytes)
    const dataDir = join(tempDir(), 'data')
    const error = await restoreDataDir({ dir, dataDir, masterKey: null, secrets, onProgress: quiet }).then(
      () => 'restored',
      (thrown: unknown) => messageOf(thrown),
    )
    assert.match(error, file, `byte ${at} of ${file}: ${error}`)
    const left = existsSync(dataDir) ? readdirSync(dataDir).filter((name) => !name.startsWith('lock')) : []
    assert.equal(left, [], file)
    writeFileSync(path, whole)
  }
})

/** Two contents other than the list of the blobs, which names the others. */
const twoContentsOf = (dir: string, files: readonly string[]): readonly string[] => {
  const { blobs } = parseManifest(readFileSync(join(dir, 'backup.json'), 'utf8'), 'backup.json')
  return files.filter((file) => file.startsWith('content') && !file.endsWith(blobs.sha256)).slice(0, 2)
}

damaged('with a file that cannot be read is checked to its end', async ({ dir, files }) => {
  const unreadable = twoContentsOf(dir, files)
  const kept = unreadable.map((file) => readFileSync(join(dir, file)))
  for (const file of unreadable) {
    rmSync(join(dir, file))
    mkdirSync(join(dir, file)) // reading it fails, as from a bad sector
  }
  const { problems } = await verifyBackup(dir, quiet)
  for (const [n, file] of unreadable.entries()) {
    assert.ok(
      problems.some((problem) => problem.includes(file) && problem.includes('cannot be read')),
      file,
    )
    rmSync(join(dir, file), { recursive: true })
    writeFileSync(join(dir, file), kept[n] ?? '')
  }
  assert.is(await foundIn(dir), '')
})

damaged('ends svc backup verify with code 1 and a line for each file', async ({ dir, files }) => {
  const contents = twoContentsOf(dir, files)
  const kept = contents.map((file) => readFileSync(join(dir, file)))
  for (const file of contents) truncateSync(join(dir, file), 1)
  const { code, out } = await cli(['backup', 'verify', dir])
  assert.is(code, 1)
  for (const file of contents) assert.match(out, file)
  contents.forEach((file, n) => writeFileSync(join(dir, file), kept[n] ?? ''))
  assert.is((await cli(['backup', 'verify', dir])).code, 0)
})

damaged('that refers to files outside of it is refused', async ({ dir }) => {
  const file = join(dir, 'backup.json')
  const whole = readFileSync(file, 'utf8')
  const manifest = parseManifest(whole, file)
  const segments = manifest.segments.map((segment) => ({ ...segment, file: '../../etc/passwd' }))
  writeFileSync(file, manifestText({ ...manifest, segments }))
  assert.match(await foundIn(dir), 'expected the segment log/')
  writeFileSync(file, whole)
})
damaged.run()
