import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { stripBuild } from '../../src/builds/strip.ts'
import { prepareChildCode } from '../../src/sandbox/childCode.ts'
import { DEFAULT_OPTIONS } from '../../src/sandbox/limits.ts'
import { limitFiles } from '../support/limitFiles.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { unhandledDuring } from '../support/unhandled.ts'

/** Enough files for the first failed write to come long before the last file is stripped. */
const FILES = 300
const SOURCE = `export const twice = (n: number): number => n * 2\n`
  .repeat(100)
  .replace(/twice/g, (name, at) => name + at)

process.on('SIGXFSZ', () => {}) // a write beyond the limit fails as on a full disk, and does not end the process

const strip = suite('removing the types of a build', { timeoutMs: 60_000 })

strip('rejects when the disk is full, and ends nothing else', async () => {
  const code = prepareChildCode(tempDir())
  const dir = join(tempDir(), 'files')
  mkdirSync(dir)
  const sources = Array.from({ length: FILES }, (_, n) => `f${n}.ts`)
  for (const source of sources) writeFileSync(join(dir, source), SOURCE)
  const options = { ...DEFAULT_OPTIONS, startMs: 60_000, inspectMs: 60_000 }
  assert.is(await limitFiles(process.pid, 1024), 0)
  try {
    let failure: unknown
    const unhandled = await unhandledDuring(() =>
      stripBuild(dir, sources, { code, options }).catch((error: unknown) => void (failure = error)),
    )
    assert.is((failure as NodeJS.ErrnoException).code, 'EFBIG')
    assert.equal(unhandled, [])
  } finally {
    assert.is(await limitFiles(process.pid, 'unlimited'), 0)
  }
})

strip.run()
