import { existsSync, rmdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { makeFolderNow } from '../../src/disk/durableNames.ts'
import { makeFolder } from '../../src/disk/makeFolder.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const test = suite('makeFolder')

test('creates the folders that are missing, with the mode, and names the first one', () => {
  const dir = tempDir()
  const path = join(dir, 'a/b/c')
  assert.is(makeFolder(path, 0o700), join(dir, 'a'))
  for (const made of ['a', 'a/b', 'a/b/c']) assert.is(statSync(join(dir, made)).mode & 0o777, 0o700)
  assert.is(makeFolder(path), undefined)
  rmdirSync(path)
  assert.is(makeFolder(path), path)
})

test('makes the names of folders durable, up to the root', () => {
  const path = join(tempDir(), 'a/b')
  makeFolderNow(path)
  makeFolderNow(path)
  assert.ok(existsSync(path))
  makeFolderNow('/')
})

test('follows a link to a folder', () => {
  const dir = tempDir()
  symlinkSync(tempDir(), join(dir, 'link'))
  makeFolder(join(dir, 'link/a'))
  assert.ok(existsSync(join(dir, 'link/a')))
})

test('refuses a place where there is a file, or a link to nothing', () => {
  const dir = tempDir()
  writeFileSync(join(dir, 'file'), '')
  symlinkSync(join(dir, 'nothing'), join(dir, 'link'))
  assert.throws(() => makeFolder(join(dir, 'file')), /EEXIST/)
  assert.throws(() => makeFolder(join(dir, 'file/a/b')), /ENOTDIR/)
  assert.throws(() => makeFolder(join(dir, 'link')), /EEXIST/)
})

test('ends where no folder can be created', () => {
  if (!existsSync('/proc/self')) return
  assert.throws(() => makeFolder('/proc/svc/a'), /ENOENT.*'\/proc\/svc'/)
})

test.run()
