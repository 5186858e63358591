import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import * as assert from 'uvu/assert'
import { openBlobs } from '../../src/adapters/embedded/blobs.ts'
import { isAppError } from '../../src/errors.ts'
import { blobsContract } from '../contracts/blobs.ts'
import { uploadsContract } from '../contracts/blobUploads.ts'
import { failureOf } from '../contracts/eventStore/facts.ts'
import { hasBubblewrap } from '../support/bubblewrap.ts'
import { openFilesIn } from '../support/openFiles.ts'
import { openSmallDisk } from '../support/smallDisk.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

blobsContract('disk', async () => {
  const blobs = await openBlobs({ dir: tempDir() })
  return { blobs, close: () => blobs.close() }
})

uploadsContract('disk', async () => {
  const dir = tempDir()
  const blobs = await openBlobs({ dir })
  return { blobs, reopen: () => openBlobs({ dir }), close: () => blobs.close() }
})

const disk = suite('blobs on disk')

/** Every file below a folder. */
const filesIn = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)

disk('survive a restart', async () => {
  const dir = tempDir()
  await (await openBlobs({ dir })).put('a/b', Buffer.from('kept'))
  assert.equal(await (await openBlobs({ dir })).head('a/b'), { key: 'a/b', size: 4 })
})

const onFullDisk = hasBubblewrap ? disk : disk.skip
onFullDisk('are unavailable at the start while the disk has no room, and open when it has', async () => {
  const small = await openSmallDisk(1 << 20)
  try {
    const dir = join(small.seen, 'blobs')
    small.limitNames('present')
    const refused = await failureOf(openBlobs({ dir }))
    assert.ok(isAppError(refused, 'unavailable'), String(refused))
    assert.match(refused.message, /^The blobs on disk failed: .*no space left/)
    small.limitNames('any')
    const blobs = await openBlobs({ dir })
    await blobs.put('a/b', Buffer.from('kept'))
    assert.equal(await blobs.head('a/b'), { key: 'a/b', size: 4 })
    await blobs.close()
  } finally {
    await small.close()
  }
})

disk('parts of the same number that end together leave the file of one of them', async () => {
  const dir = tempDir()
  const blobs = await openBlobs({ dir })
  const upload = await blobs.createUpload('a')
  for (let number = 1; number <= 5; number++) {
    const arrived = Promise.withResolvers<void>()
    let left = 8
    const content = async function* (byte: number) {
      if (--left === 0) arrived.resolve()
      await arrived.promise
      yield Buffer.alloc(1000, byte)
    }
    const parts = await Promise.all(
      Array.from({ length: left }, (_, byte) =>
        blobs.putPart('a', upload, number, Readable.from(content(byte)), 1000),
      ),
    )
    const kept = filesIn(dir).filter((name) => name.startsWith(`${number}-`))
    assert.is(kept.length, 1)
    assert.ok(parts.some(({ etag }) => kept[0] === `${number}-${etag}`))
  }
})

disk(
  'an upload whose description is damaged keeps no other from being listed, and can be removed',
  async () => {
    const dir = tempDir()
    const blobs = await openBlobs({ dir })
    const damaged = await blobs.createUpload('files/a')
    const upload_id = await blobs.createUpload('files/b')
    writeFileSync(join(dir, 'uploads', damaged, 'upload.json'), '{"key":"fil')
    const listed = await Array.fromAsync(blobs.listUploads())
    assert.equal(
      listed.map((each) => each.upload_id),
      [upload_id],
    )
    assert.ok(isAppError(await failureOf(blobs.completeUpload('files/a', damaged, [])), 'not_found'))
    await blobs.abortUpload('files/a', damaged)
    assert.equal(readdirSync(join(dir, 'uploads')), [upload_id])
  },
)

disk('a failed put leaves no file', async () => {
  const dir = tempDir()
  const blobs = await openBlobs({ dir })
  const torn = async function* () {
    yield Buffer.alloc(1000)
    throw new Error('torn')
  }
  await blobs.put('a', Readable.from(torn())).catch(() => {})
  assert.equal(filesIn(dir), [])
})

disk('a failed begin of an upload leaves no file', async () => {
  const dir = tempDir()
  const blobs = await openBlobs({ dir })
  rmSync(join(dir, 'uploads'), { recursive: true })
  assert.ok(isAppError(await failureOf(blobs.createUpload('a')), 'unavailable'))
  assert.equal(filesIn(dir), [])
})

disk('an unfinished put of a killed process is not visible, and removed at the next open', async () => {
  const dir = tempDir()
  const script = new URL('../fixtures/blobs/putForever.ts', import.meta.url).pathname
  const child = spawn(process.execPath, [script, dir], { stdio: 'inherit' })
  try {
    await until(() => filesIn(dir).length > 0)
  } finally {
    child.kill('SIGKILL')
  }
  await once(child, 'exit')
  assert.is(filesIn(dir).length, 1)
  const blobs = await openBlobs({ dir })
  assert.equal(filesIn(dir), [])
  assert.is(await blobs.head('endless'), null)
})

disk('a put that the disk refuses is unavailable, and leaves no file', async () => {
  const dir = tempDir()
  const script = new URL('../fixtures/blobs/fillDisk.ts', import.meta.url).pathname
  const command = 'ulimit -f 1024; exec "$0" "$1" "$2"'
  const { stdout } = await promisify(execFile)('bash', ['-c', command, process.execPath, script, dir])
  assert.is(stdout, 'unavailable')
  assert.equal(filesIn(dir), [])
})

disk('a stream that is neither read nor destroyed leaves no file open', async () => {
  const dir = tempDir()
  const blobs = await openBlobs({ dir })
  await blobs.put('a', Buffer.from('abandoned'))
  await (async () => void (await blobs.get('a')))()
  assert.is(openFilesIn(dir).length, 1)
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  await until(() => {
    collect()
    return openFilesIn(dir).length === 0
  })
})

disk('the last removal in a folder removes the folder and those above it that are empty', async () => {
  const dir = tempDir()
  const blobs = await openBlobs({ dir })
  const foldersIn = () => readdirSync(join(dir, 'objects'), { recursive: true }).length
  const keys = ['a/b/c/1', 'a/b/c/2', 'a/3']
  for (const key of keys) await blobs.put(key, Buffer.from(key))
  assert.is(foldersIn(), 3 + keys.length)
  await blobs.remove('a/b/c/1')
  assert.is(foldersIn(), 3 + keys.length - 1)
  await blobs.remove('a/b/c/2')
  assert.is(foldersIn(), 2)
  await blobs.remove('a/b/never/stored')
  assert.is(foldersIn(), 2)
  await blobs.remove('a/3')
  assert.is(foldersIn(), 0)
  await blobs.put('a/b/c/1', Buffer.from('again'))
  assert.equal(await blobs.head('a/b/c/1'), { key: 'a/b/c/1', size: 5 })
})

disk('puts and removals in one folder at the same time do not disturb each other', async () => {
  const dir = tempDir()
  const blobs = await openBlobs({ dir })
  const changeOften = async (n: number) => {
    for (let i = 0; i < 50; i++) {
      const key = `a/b/${i % 5}/${n}`
      await blobs.put(key, Buffer.from('kept'))
      assert.equal(await blobs.head(key), { key, size: 4 })
      await blobs.remove(key)
    }
  }
  await Promise.all([0, 1, 2, 3].map(changeOften))
  assert.equal(readdirSync(join(dir, 'objects')), [])
})

disk('no key leaves the folder', async () => {
  const dir = tempDir()
  writeFileSync(join(dir, 'secret'), 'x')
  const blobs = await openBlobs({ dir: join(dir, 'blobs') })
  for (const prefix of ['../', '../../secret', '/', '..'])
    assert.equal(await Array.fromAsync(blobs.list(prefix)), [])
})

disk.run()
