import * as assert from 'uvu/assert'
import { suite } from '../support/suite.ts'
import { imageWith } from './cut.ts'
import { Disk } from './disk.ts'
import { type Change, isEntryChange } from './nodes.ts'
import type { Operation } from './operations.ts'

/** A disk with one folder, and one process that works on it. */
const diskAfter = (...operations: readonly Operation[]): Disk => {
  const disk = new Disk(['/d'])
  for (const [id, operation] of operations.entries()) {
    disk.take({ type: 'begin', id, operation })
    disk.take({ type: 'end', id })
  }
  return disk
}

const open = (handle: number, path: string): Operation => ({ kind: 'open', handle, path, truncates: false })
const write = (handle: number, text: string, at = 0): Operation => ({
  kind: 'write',
  handle,
  at,
  bytes: Buffer.from(text),
})
const sync = (handle: number): Operation => ({ kind: 'sync', handle })
const rename = (from: string, to: string): Operation => ({ kind: 'rename', from, to })
const mkdir = (path: string): Operation => ({ kind: 'mkdir', path })

const filesOf = (disk: Disk, survives: (change: Change) => boolean): Record<string, string | null> =>
  Object.fromEntries(
    [...imageWith(disk, survives)].map(([path, file]) => [path, file && file.bytes.toString()]),
  )
const nothing = () => false
const everything = () => true

const model = suite('the model of a disk')

model('loses what was not synced', () => {
  const disk = diskAfter(open(1, '/d/a'), write(1, 'text'))
  assert.equal(filesOf(disk, nothing), { '/d': null })
  assert.equal(filesOf(disk, everything), { '/d': null, '/d/a': 'text' })
})

model('keeps the bytes of a synced file, but not its name (D1, D2)', () => {
  const disk = diskAfter(open(1, '/d/a'), write(1, 'text'), sync(1))
  assert.equal(filesOf(disk, nothing), { '/d': null })
  assert.equal(filesOf(disk, isEntryChange), { '/d': null, '/d/a': 'text' })
})

model('keeps the name of a file in a synced folder, but not its bytes (D2)', () => {
  const disk = diskAfter(open(1, '/d/a'), write(1, 'text'), open(2, '/d'), sync(2))
  assert.equal(filesOf(disk, nothing), { '/d': null, '/d/a': '' })
})

model('does not create a file again that is opened while it is removed', () => {
  const disk = diskAfter(open(1, '/d/a'), open(2, '/d'), sync(2))
  disk.take({ type: 'begin', id: 10, operation: { kind: 'remove', path: '/d/a' } })
  disk.take({ type: 'begin', id: 11, operation: open(3, '/d/a') })
  disk.take({ type: 'end', id: 11 })
  disk.take({ type: 'end', id: 10 })
  assert.equal(filesOf(disk, everything), { '/d': null })
})

model('does not count a write that began before a sync and returned after it (D1)', () => {
  const disk = diskAfter(open(1, '/d/a'), open(2, '/d'), sync(2))
  disk.take({ type: 'begin', id: 10, operation: write(1, 'late') })
  disk.take({ type: 'begin', id: 11, operation: sync(1) })
  disk.take({ type: 'end', id: 10 })
  disk.take({ type: 'end', id: 11 })
  assert.is(filesOf(disk, nothing)['/d/a'], '')
})

model('does not count a sync that has not returned', () => {
  const disk = diskAfter(open(1, '/d/a'), write(1, 'text'), open(2, '/d'), sync(2))
  disk.take({ type: 'begin', id: 10, operation: sync(1) })
  assert.is(filesOf(disk, nothing)['/d/a'], '')
  disk.take({ type: 'end', id: 10 })
  assert.is(filesOf(disk, nothing)['/d/a'], 'text')
})

model('renames within a folder at once (D3)', () => {
  const disk = diskAfter(open(1, '/d/a'), open(2, '/d'), sync(2), rename('/d/a', '/d/b'))
  assert.equal(filesOf(disk, nothing), { '/d': null, '/d/a': '' })
  assert.equal(filesOf(disk, everything), { '/d': null, '/d/b': '' })
})

model(
  'may leave the old name of a file that was renamed to a synced folder, and never neither name (D3)',
  () => {
    const disk = diskAfter(
      mkdir('/d/from'),
      mkdir('/d/to'),
      open(1, '/d'),
      sync(1),
      open(2, '/d/from/a'),
      open(3, '/d/from'),
      sync(3),
      rename('/d/from/a', '/d/to/a'),
    )
    assert.equal(Object.keys(filesOf(disk, nothing)), ['/d', '/d/from', '/d/from/a', '/d/to'])
    assert.equal(
      Object.keys(filesOf(disk, (change) => isEntryChange(change) && change.to === null)).length,
      4,
    )
    disk.take({ type: 'begin', id: 20, operation: open(4, '/d/to') })
    disk.take({ type: 'begin', id: 21, operation: sync(4) })
    disk.take({ type: 'end', id: 21 })
    assert.equal(Object.keys(filesOf(disk, nothing)), ['/d', '/d/from', '/d/from/a', '/d/to', '/d/to/a'])
  },
)

model.run()
