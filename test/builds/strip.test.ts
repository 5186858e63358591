import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
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
/** The heap of a thread that removes types; half of it is in use before. */
const HEAP_MB = 64
const SOURCE = `export const twice = (n: number): number => n * 2\n`
  .repeat(100)
  .replace(/twice/g, (name, at) => name + at)

process.on('SIGXFSZ', () => {}) // a write beyond the limit fails as on a full disk, and does not end the process

const strip = suite('removing the types of a build', { timeoutMs: 90_000 })

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

/** TypeScript of 80 MB in files that are written more slowly than they arrive; a character beyond Latin-1 doubles its memory. */
const MANY = 4000
const LARGE = `/*字${'a'.repeat(20_000)}*/export const f = (n: number) => n`

strip('needs little memory for a build of any size', async () => {
  const dir = join(tempDir(), 'files')
  mkdirSync(dir)
  const sources = Array.from({ length: MANY }, (_, n) => `f${n}.ts`)
  for (const source of sources) writeFileSync(join(dir, source), LARGE)
  const worker = new Worker(new URL('stripInWorker.ts', import.meta.url), {
    workerData: { dir, sources, codeDir: tempDir() },
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
  })
  const [code] = await once(worker, 'exit') // rejects if the heap was too small
  assert.is(code, 0)
  const typed = sources.filter((source) => /^.*: number/.test(readFileSync(join(dir, source), 'utf8')))
  assert.equal(typed, [])
})

strip.run()
