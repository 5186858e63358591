import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import * as assert from 'uvu/assert'
import { contentFile, prepareFolder } from '../../src/backup/backupFolder.ts'
import { copyBlobs } from '../../src/backup/copyBlobs.ts'
import type { StoredBlob } from '../../src/backup/journal.ts'
import { createFile } from '../../src/backup/newFile.ts'
import type { ListedBlob } from '../../src/backup/source.ts'
import { clock } from '../../src/clock.ts'
import { AppError } from '../../src/errors.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

/** A service ends a backup that no request has used for this time. */
const IDLE_MS = 5 * 60_000
const KNOWN = 400

const start = { backup_id: 'b', log_id: 'l', position: 9, master_key_id: '', canary: '', consumers: [] }

/** Each look at a file takes a second of the clock. */
const onSlowDisk = async (work: () => Promise<void>): Promise<void> => {
  const { stat } = promises
  const { monotonic } = clock
  let now = 0
  clock.monotonic = () => now
  promises.stat = ((...args: Parameters<typeof stat>) => {
    now += 1000
    return stat(...args)
  }) as typeof stat
  syncBuiltinESMExports()
  try {
    await work()
  } finally {
    Object.assign(promises, { stat })
    syncBuiltinESMExports()
    clock.monotonic = monotonic
  }
}

/** The blobs of a backup that ends when no request uses it. */
const leased = (blobs: ReadonlyMap<string, Buffer>) => {
  let usedAt = clock.monotonic()
  const use = (): void => {
    if (clock.monotonic() - usedAt > IDLE_MS) throw new AppError('not_found', 'No backup b is in progress')
    usedAt = clock.monotonic()
  }
  return {
    use,
    async *blobs(): AsyncGenerator<ListedBlob> {
      use()
      for (const [key, { length }] of blobs) yield { key, size: length }
      await Promise.resolve()
    },
    async *blob(_: string, key: string): AsyncGenerator<Buffer> {
      use()
      yield blobs.get(key) ?? Buffer.alloc(0)
      await Promise.resolve()
    },
    async *rows(_: string, after: number): AsyncGenerator<never> {
      use()
      assert.is(after, start.position)
      yield* await Promise.resolve([])
    },
  }
}

const storedIn = async (dir: string, key: string, content: Buffer): Promise<StoredBlob> => {
  const file = await createFile(dir)
  await file.write(content)
  const { bytes, sha256 } = await file.place((sum) => contentFile(sum.sha256))
  return { key, bytes, sha256 }
}

const copying = suite('the blobs of a backup')

copying(
  'are copied also if the look at those that are known takes longer than a backup may be idle',
  async () => {
    const dir = tempDir()
    prepareFolder(dir)
    const content = Buffer.from('content')
    const { bytes, sha256 } = await storedIn(dir, '', content)
    const known = Array.from({ length: KNOWN }, (_, n) => ({ key: `files/${n}`, bytes, sha256 }))
    const blobs = new Map(known.map(({ key }) => [key, content]))
    blobs.set('keys/k', Buffer.from('key'))
    await onSlowDisk(async () => {
      const source = leased(blobs)
      const copied = await copyBlobs({
        dir,
        source,
        start,
        known,
        journal: { add: () => Promise.resolve() },
        onCopied: () => {},
      })
      assert.is(copied.length, KNOWN + 1)
      source.use() // it is still in progress
    })
  },
)

copying.run()
