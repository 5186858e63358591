import { chmodSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { isAppError } from '../../src/errors.ts'
import { lockDataDir } from '../../src/process/dataDir.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const modeOf = (path: string): string => (statSync(path).mode & 0o7777).toString(8)

const refusal = (dir: string): string => {
  try {
    lockDataDir(dir)()
  } catch (error) {
    if (isAppError(error, 'unavailable')) return error.message
    throw error
  }
  throw new Error('Expected a refusal')
}

const modes = suite('the data directory')

modes('is created for its owner only', () => {
  const dir = join(tempDir(), 'a', 'b')
  lockDataDir(dir)()
  assert.is(modeOf(dir), '700')
})

modes('of an earlier start is closed to other users, with its entries', () => {
  const dir = tempDir()
  writeFileSync(join(dir, 'log.db'), '', { mode: 0o644 })
  mkdirSync(join(dir, 'blobs'))
  const outside = join(tempDir(), 'outside')
  writeFileSync(outside, '')
  chmodSync(outside, 0o644)
  symlinkSync(outside, join(dir, 'link'))
  chmodSync(join(dir, 'log.db'), 0o644)
  chmodSync(join(dir, 'blobs'), 0o755)
  chmodSync(dir, 0o755)
  lockDataDir(dir)()
  assert.equal(
    [modeOf(dir), modeOf(join(dir, 'log.db')), modeOf(join(dir, 'blobs')), modeOf(outside)],
    ['700', '600', '700', '644'],
  )
})

modes('that is empty is closed to other users', () => {
  const dir = tempDir()
  mkdirSync(join(dir, 'lost+found'))
  chmodSync(dir, 0o755)
  lockDataDir(dir)()
  assert.is(modeOf(dir), '700')
})

modes('with other content is refused while other users have access to it', () => {
  const dir = tempDir()
  writeFileSync(join(dir, 'notes.txt'), '')
  chmodSync(dir, 0o755)
  assert.match(refusal(dir), new RegExp(`SVC_DATA_DIR: .*${dir}.*mode 755.*chmod 700`))
  assert.is(modeOf(dir), '755')
  chmodSync(dir, 0o700)
  lockDataDir(dir)()
  assert.is(modeOf(join(dir, 'notes.txt')), '644')
})

modes('that all users share, such as /tmp, is refused', () => {
  const dir = tempDir()
  chmodSync(dir, 0o1777)
  assert.match(refusal(dir), 'chmod 700')
  assert.is(modeOf(dir), '1777')
})
modes.run()
