import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { readProfile } from '../../src/cli/profiles.ts'
import { isAppError, messageOf } from '../../src/errors.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const refusal = (dir: string): string => {
  try {
    readProfile(dir, null)
  } catch (error) {
    assert.ok(isAppError(error), messageOf(error))
    return error.message
  }
  throw new Error('Expected a refusal')
}

const profiles = suite('a file of profiles that cannot be used')

profiles('is repaired or moved, because it may contain the only copies of keys', () => {
  const dir = tempDir()
  const file = join(dir, 'profiles.json')
  for (const [text, reason] of [
    ['', 'it is no JSON'],
    ['{"default":"a","profiles":{"a":{"url":"http://h","key":"svc_hidden"}', 'it is no JSON'],
    ['svc_hidden', 'it is no JSON'],
    ['null', 'it has no default and profiles'],
    ['{"default":1}', 'it has no default and profiles'],
    ['{"default":"a","profiles":null}', 'it has no default and profiles'],
    ['{"default":"a","profiles":{"a":null}}', 'the profile a has no url or no key'],
    ['{"default":"a","profiles":{"a":{"url":"http://h"}}}', 'the profile a has no url or no key'],
  ] as const) {
    writeFileSync(file, text)
    assert.is(
      refusal(dir),
      `${file}: expected the profiles of svc login, but ${reason}; repair it, or move it away and repeat svc login`,
    )
  }
})

profiles('is not to be removed if only its rights or its kind are wrong', () => {
  const dir = tempDir()
  const file = join(dir, 'profiles.json')
  mkdirSync(file)
  assert.is(
    refusal(dir),
    `${file}: cannot be read (EISDIR): it must be a file that this user may read, in a folder that this user may enter`,
  )
})

profiles.run()
