import * as assert from 'uvu/assert'
import { randomOf } from '../support/randomOf.ts'
import { suite } from '../support/suite.ts'
import { cut } from './cut.ts'
import { Disk } from './disk.ts'
import type { Operation } from './operations.ts'

const CUTS = 300

/** A synced file of 8 KiB of `a` that was overwritten with `b` and made longer, without a sync. */
const overwritten = (): Disk => {
  const disk = new Disk(['/d'])
  const operations: readonly Operation[] = [
    { kind: 'open', handle: 1, path: '/d/file', truncates: false },
    { kind: 'write', handle: 1, at: 0, bytes: Buffer.alloc(8192, 'a') },
    { kind: 'sync', handle: 1 },
    { kind: 'open', handle: 2, path: '/d', truncates: false },
    { kind: 'sync', handle: 2 },
    { kind: 'write', handle: 1, at: 0, bytes: Buffer.alloc(8192, 'b') },
    { kind: 'write', handle: 1, at: 8192, bytes: Buffer.alloc(4096, 'c') },
  ]
  for (const [id, operation] of operations.entries()) {
    disk.take({ type: 'begin', id, operation })
    disk.take({ type: 'end', id })
  }
  return disk
}

const contentsOf = (seeds: number): Buffer[] =>
  Array.from({ length: seeds }, (_, seed) => {
    const file = cut(overwritten(), randomOf(seed)).image.get('/d/file')
    assert.ok(file)
    return file.bytes
  })

const cuts = suite('a power cut')

cuts('with the same seed leaves the same bytes', () => {
  const [first, second] = [contentsOf(20), contentsOf(20)]
  assert.ok(first.every((bytes, n) => second[n]?.equals(bytes)))
})

cuts('leaves each sector of 512 bytes as it was or as it was written', () => {
  for (const bytes of contentsOf(CUTS))
    for (let at = 0; at < bytes.length; at += 512) {
      const sector = bytes.subarray(at, at + 512)
      assert.ok(new Set(sector).size === 1, `a sector is mixed: ${sector.toString().slice(0, 20)}`)
    }
})

cuts(
  'tears writes at both sizes of sectors, reorders them, loses them, and leaves sizes without bytes',
  () => {
    const found = contentsOf(CUTS).map((bytes) => bytes.toString())
    assert.ok(
      found.some((text) => text === 'a'.repeat(8192)),
      'lost',
    )
    assert.ok(
      found.some((text) => text === 'b'.repeat(8192) + 'c'.repeat(4096)),
      'kept',
    )
    assert.ok(
      found.some((text) => text.startsWith('a'.repeat(8192) + 'c')),
      'reordered',
    )
    assert.ok(
      found.some((text) => text.startsWith('b'.repeat(512) + 'a')),
      'torn at 512',
    )
    assert.ok(
      found.some((text) => text.startsWith('b'.repeat(4096) + 'a'.repeat(4096))),
      'torn at 4096',
    )
    assert.ok(
      found.some((text) => text.endsWith('\0'.repeat(4096))),
      'a size without bytes',
    )
  },
)

cuts('names what did not survive', () => {
  const lines = Array.from({ length: CUTS }, (_, seed) => cut(overwritten(), randomOf(seed)).dropped()).flat()
  assert.ok(lines.includes('lost 8192 bytes at 0 of /d/file'))
  assert.ok(lines.includes('torn 4096 bytes at 8192 of /d/file'))
})

cuts.run()
