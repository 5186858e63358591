import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { isOpenToAll, nodeForAll, openChildCache } from '../../src/process/childCache.ts'
import { messageOf } from '../../src/errors.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const cache = suite('the cache of children outside the data directory')

cache('can be entered but not listed by other users, also under a strict umask', () => {
  const before = process.umask(0o077)
  try {
    const dir = openChildCache(tempDir(), tempDir())
    assert.is(statSync(dir).mode & 0o777, 0o711)
    assert.is(statSync(join(dir, 'builds')).mode & 0o777, 0o711)
  } finally {
    process.umask(before)
  }
})

cache('is the same for the same data directory only', () => {
  const [root, data] = [tempDir(), tempDir()]
  assert.is(openChildCache(data, root), openChildCache(data, root))
  assert.is.not(openChildCache(data, root), openChildCache(tempDir(), root))
})

cache('is removed when its data directory no longer exists', () => {
  const [root, data, other] = [tempDir(), tempDir(), tempDir()]
  const [gone, kept] = [openChildCache(data, root), openChildCache(other, root)]
  rmSync(data, { recursive: true })
  openChildCache(tempDir(), root)
  assert.equal([existsSync(gone), existsSync(kept)], [false, true])
})

cache('stays when its owner is not written yet, and keeps the file with the name of its owner', () => {
  const [root, data] = [tempDir(), tempDir()]
  const dir = openChildCache(data, root)
  const file = join(dir, 'data-dir')
  const { ino } = statSync(file)
  openChildCache(data, root)
  assert.is(statSync(file).ino, ino)
  writeFileSync(file, '') // a power cut, or another service that starts at the same time
  openChildCache(tempDir(), root)
  assert.ok(existsSync(dir))
  openChildCache(data, root)
  assert.is(readFileSync(file, 'utf8'), realpathSync(data))
})

const refusal = (data: string, root: string): string => {
  try {
    return openChildCache(data, root)
  } catch (error) {
    return messageOf(error)
  }
}

cache('is refused if another user can write it, or if it is a link', () => {
  const [root, data] = [tempDir(), tempDir()]
  const dir = openChildCache(data, root)
  chmodSync(dir, 0o777)
  assert.match(refusal(data, root), /expected a directory of this user that no other user can write/)
  rmSync(dir, { recursive: true })
  symlinkSync(tempDir(), dir)
  assert.match(refusal(data, root), /expected a directory of this user/)
})

cache('contains a copy of Node if other users cannot reach it', () => {
  const [root, closed] = [tempDir(), join(tempDir(), 'closed')]
  chmodSync(root, 0o755)
  mkdirSync(closed, { mode: 0o700 })
  const node = join(closed, 'node')
  writeFileSync(node, '#!/bin/sh\n', { mode: 0o755 })
  const copy = nodeForAll(node, root)
  assert.ok(copy.startsWith(root))
  assert.ok(isOpenToAll(copy))
  assert.is(nodeForAll(node, root), copy)
})

cache.run()
