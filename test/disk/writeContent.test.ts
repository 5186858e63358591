import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import * as assert from 'uvu/assert'
import { writeContent } from '../../src/disk/writeContent.ts'
import { openFilesIn } from '../support/openFiles.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const writing = suite('content that is written to a file')

writing('is in the file, which is closed', async () => {
  const dir = tempDir()
  const content = async function* () {
    yield Buffer.from('first ')
    yield Buffer.from('second')
  }
  await writeContent(join(dir, 'file'), content())
  assert.is(readFileSync(join(dir, 'file'), 'utf8'), 'first second')
  assert.equal(openFilesIn(dir), [])
})

const TIMES = 100

for (const [when, chunks] of [
  ['at once', 0],
  ['after a chunk', 1],
] as const)
  writing(`creates no file any more when it has failed: ${when}`, async () => {
    const dir = tempDir()
    const content = async function* () {
      for (let n = 0; n < chunks; n++) yield Buffer.alloc(60)
      throw new Error('refused')
    }
    for (let n = 0; n < TIMES; n++) {
      const path = join(dir, String(n))
      const failure = await writeContent(path, content()).catch((error: unknown) => error)
      assert.is((failure as Error).message, 'refused')
      assert.ok(existsSync(path), 'a file that is not there yet could still be created')
    }
    assert.equal(openFilesIn(dir), [])
  })

writing('closes the content when the file cannot be created', async () => {
  const content = Readable.from([Buffer.from('a')])
  const failure = await writeContent(join(tempDir(), 'none', 'file'), content).catch(
    (error: unknown) => error,
  )
  assert.is((failure as NodeJS.ErrnoException).code, 'ENOENT')
  assert.ok(content.destroyed)
})

writing.run()
