import { join, sep } from 'node:path'
import * as assert from 'uvu/assert'
import { RESTORING } from '../../src/process/dataDir.ts'
import { notHere } from '../support/notHere.ts'
import { suite } from '../support/suite.ts'
import { imageWith, type Image } from './cut.ts'
import type { Disk } from './disk.ts'
import { type Change, isEntryChange } from './nodes.ts'
import { type Recorded, recordProgram } from './recordProgram.ts'
import { straceProblem } from './strace.ts'

/** The files after a power cut that nothing survives but what was synced. */
const leastOf = (disk: Disk): Image => imageWith(disk, () => false)

/** The path of a blob below the root of its program. */
const blobPath = ({ root }: Recorded, key: string): string =>
  join(root, 'blobs', 'objects', key.replaceAll('/', '~/'))

/** The acknowledgements whose name begins with `prefix`, without it, each with the files that are certain then. */
const certainAt = (program: Recorded, prefix: string): (readonly [name: string, image: Image])[] => {
  const found: (readonly [string, Image])[] = []
  program.replay((name, disk) => {
    if (name.startsWith(prefix)) found.push([name.slice(prefix.length), leastOf(disk)])
  })
  assert.ok(found.length > 0)
  return found
}

const problem = straceProblem()
if (problem !== null) {
  notHere('what is durable', problem)
} else {
  const durability = suite('what is acknowledged survives a power cut that loses everything unsynced (I1)')

  durability('a stored blob, also when another request has just created its folder', async () => {
    const blobs = await recordProgram('blobs')
    for (const [key, image] of certainAt(blobs, 'put:'))
      assert.ok((image.get(blobPath(blobs, key))?.bytes.length ?? 0) >= 9000, `${key} is lost`)
  })

  durability('the removal of a blob, such as an erased key', async () => {
    const blobs = await recordProgram('blobs')
    for (const [key, image] of certainAt(blobs, 'removed:'))
      assert.not(image.has(blobPath(blobs, key)), `${key} is there again`)
  })

  durability('the removal of a blob that another reader no longer finds', async () => {
    const blobs = await recordProgram('removedBlobs')
    for (const reader of ['list:', 'head:', 'get:'])
      for (const [key, image] of certainAt(blobs, reader))
        assert.not(image.has(blobPath(blobs, key)), `${reader}${key} is there again`)
  })

  durability('the content of a blob that another reader has read', async () => {
    const blobs = await recordProgram('placedBlobs')
    for (const [key, image] of certainAt(blobs, 'replaced:'))
      assert.is(image.get(blobPath(blobs, key))?.bytes.toString(), 'after', key)
  })

  durability('changes that a killed process has left without a sync', async () => {
    const blobs = await recordProgram('killedBlobs')
    for (const [, image] of certainAt(blobs, 'opened')) {
      assert.not(image.has(blobPath(blobs, 'keys/a')), 'a removed blob is there again')
      assert.is(image.get(blobPath(blobs, 'keys/b'))?.bytes.toString(), 'after')
      const uploads = join(blobs.root, 'blobs', 'uploads') + sep
      assert.not(
        [...image.keys()].some((path) => path.startsWith(uploads)),
        'an aborted upload is there again',
      )
    }
  })

  durability('a part of an upload, also while it is replaced', async () => {
    const blobs = await recordProgram('blobs')
    const parts = certainAt(blobs, 'part:')
    for (const [part, image] of parts)
      assert.ok(image.get(join(blobs.root, 'blobs', 'uploads', part)), `${part} is lost`)
    const [folder = ''] = parts[0]?.[0].split('/') ?? []
    blobs.replay((name, disk) => {
      if (!name.startsWith('part:')) return
      // The removal of the replaced part survives alone.
      const image = imageWith(
        disk,
        (change) => isEntryChange(change) && change.to === null && change.needs === null,
      )
      const left = [...image.keys()].filter((path) =>
        path.startsWith(join(blobs.root, 'blobs', 'uploads', folder, '1-')),
      )
      assert.ok(left.length > 0, 'no part is left')
    })
  })

  durability('a new data directory with its secrets', async () => {
    const program = await recordProgram('dataDir')
    for (const [path, image] of certainAt(program, ''))
      assert.match(image.get(join(program.root, path))?.bytes.toString() ?? 'lost', 'master_key')
  })

  durability('a restore that failed leaves no data without its marker, whichever names survive', async () => {
    const program = await recordProgram('failedRestore')
    const marker = join(program.root, 'data', RESTORING)
    const isOfMarker = (change: Change) => isEntryChange(change) && change.name === RESTORING
    const disk = program.newDisk()
    let seen = 0
    for (const step of program.steps) {
      disk.take(step)
      const image = imageWith(disk, isOfMarker)
      if (!image.has(join(program.root, 'data', 'log.db'))) continue
      seen++
      assert.ok(image.has(marker), 'a service starts on what the restore has left')
    }
    assert.ok(seen > 0)
  })

  durability('an unpacked build is whole or is not there, although only names survive', async () => {
    const program = await recordProgram('unpackedBuild')
    const isOfMark = (change: Change) => isEntryChange(change) && /^[0-9a-f]{64}\./.test(change.name)
    const isRemovalOfBuild = (change: Change) =>
      isEntryChange(change) && change.to === null && /^[0-9a-f]{64}$/.test(change.name)
    const patterns = [
      isEntryChange,
      (change: Change) => isEntryChange(change) && !isOfMark(change),
      (change: Change) => isEntryChange(change) && !isRemovalOfBuild(change),
    ]
    const disk = program.newDisk()
    let seen = 0
    for (const step of program.steps) {
      disk.take(step)
      for (const survives of patterns) {
        const image = imageWith(disk, survives)
        const paths = [...image.keys()]
        const hash = paths.map((path) => /[/\\]builds[/\\]([0-9a-f]{64})$/.exec(path)?.[1]).find(Boolean)
        if (hash === undefined) continue
        seen++
        const mark = join(program.root, 'cache', 'unsynced', hash)
        if (paths.some((path) => path.startsWith(mark))) continue // the next start removes the folder
        for (const [file, text] of [
          ['a.js', 'export const a = 1'],
          ['lib/deep/b.js', 'export const b = 2'],
        ] as const)
          assert.is(image.get(join(program.root, 'cache', 'builds', hash, file))?.bytes.toString(), text)
      }
    }
    assert.ok(seen > 0)
  })

  durability.run()
}
