import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { readInstance, takeFolder, writeInstance } from '../../src/cli/instance.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const instance = {
  url: 'http://127.0.0.1:8081',
  key: 'svc_key',
  project: 'orders',
  dataDir: null,
  pid: process.pid,
}

const test = suite('the instance file')

test('is found in the folder and from the folders below it, until it is removed', () => {
  const folder = tempDir()
  const below = join(folder, 'src', 'orders')
  mkdirSync(below, { recursive: true })
  const remove = writeInstance(folder, instance)
  const file = join(folder, '.svc', 'dev.json')
  for (const from of [folder, below]) assert.equal(readInstance(from), { ...instance, file })
  remove()
  assert.is(readInstance(below), null)
  assert.not(existsSync(file))
  remove() // a second removal finds nothing
})

test('is not removed by an instance whose announcement another one has replaced', () => {
  const folder = tempDir()
  const remove = writeInstance(folder, instance)
  const removeOther = writeInstance(folder, { ...instance, url: 'http://127.0.0.1:8082' })
  remove()
  assert.is(readInstance(folder)?.url, 'http://127.0.0.1:8082')
  removeOther()
  assert.is(readInstance(folder), null)
})

test('can be read by this user only, also if it replaces a file that others can read', () => {
  const folder = tempDir()
  writeInstance(folder, instance)
  const file = join(folder, '.svc', 'dev.json')
  chmodSync(file, 0o644)
  writeInstance(folder, { ...instance, project: 'other' })
  assert.is(statSync(file).mode & 0o777, 0o600)
  const { dataDir: data_dir, ...others } = instance
  assert.equal(JSON.parse(readFileSync(file, 'utf8')), { ...others, data_dir, project: 'other' })
  assert.equal(readdirSync(join(folder, '.svc')), ['dev.json'])
})

test('of a process that has ended is ignored, and a running instance above is found', () => {
  const folder = tempDir()
  const below = join(folder, 'inner')
  mkdirSync(below)
  const { pid } = spawnSync(process.execPath, ['--version'])
  writeInstance(below, { ...instance, pid })
  assert.is(readInstance(below), null)
  writeInstance(folder, instance)
  assert.is(readInstance(below)?.file, join(folder, '.svc', 'dev.json'))
})

test('of a killed process is ignored, also where another process has got its id', () => {
  const folder = tempDir()
  const release = takeFolder(folder)
  assert.is(takeFolder(folder), null)
  writeInstance(folder, instance)
  assert.equal(readInstance(folder)?.pid, process.pid)
  release?.() // as the system does at the end of a process
  assert.is(readInstance(folder), null)
  takeFolder(folder)?.()
})

test('is absent where .svc is a file', () => {
  const folder = tempDir()
  writeFileSync(join(folder, '.svc'), '')
  assert.is(readInstance(folder), null)
})

for (const [text, reason] of [
  ['{', /dev\.json: expected JSON with url, key, project and pid, but it is no JSON; remove it, /],
  ['svc_hidden', /but it is no JSON; remove it, and start svc dev again: it writes the file$/],
  ['null', /url is not an http or https URL/],
  [JSON.stringify({ ...instance, url: 'file:///x' }), /url is not an http or https URL/],
  [JSON.stringify({ ...instance, key: 1 }), /key or project is not a text/],
  [JSON.stringify({ ...instance, pid: 0 }), /pid is not the id of a process/],
] as const)
  test(`with ${text} is refused, and the error names the file`, () => {
    const folder = tempDir()
    mkdirSync(join(folder, '.svc'))
    writeFileSync(join(folder, '.svc', 'dev.json'), text)
    assert.throws(() => readInstance(folder), reason)
  })

test('that is a folder is refused, and the error names it', () => {
  const folder = tempDir()
  mkdirSync(join(folder, '.svc', 'dev.json'), { recursive: true })
  assert.throws(
    () => readInstance(folder),
    /dev\.json: cannot be read \(EISDIR\): it must be a file that this/,
  )
})

test.run()
