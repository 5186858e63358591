import { mkdirSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import * as assert from 'uvu/assert'
import { isAppError } from '../../src/errors.ts'
import { readPackage } from '../../src/package/readPackage.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

/** A directory with these files and the time of each, in seconds. */
const directoryOf = (files: Readonly<Record<string, number>>): string => {
  const dir = tempDir()
  for (const [path, time] of Object.entries({ 'README.md': 1, LICENSE: 1, 'package.json': 1, ...files })) {
    const file = join(dir, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, path === 'package.json' ? '{"files":["bin","dist"]}' : path)
    utimesSync(file, time, time)
  }
  return dir
}

const BUILT = { 'bin/svc.js': 1, 'dist/main.js': 5, 'dist/sdk/index.d.ts': 5 }

const pathsIn = (archive: Buffer): string[] => {
  const tar = gunzipSync(archive)
  const paths: string[] = []
  for (
    let at = 0;
    tar[at] !== 0;
    at += 512 * (1 + Math.ceil(Number.parseInt(tar.toString('latin1', at + 124, at + 135), 8) / 512))
  )
    paths.push(tar.toString('utf8', at, tar.indexOf(0, at)))
  return paths
}

const refusal = async (dir: string): Promise<string> => {
  try {
    await readPackage(dir)
  } catch (error) {
    if (isAppError(error, 'unavailable')) return error.message
    throw error
  }
  throw new Error('Expected a refusal')
}

const reading = suite('reading the package')

reading('takes the files that npm pack takes', async () => {
  const expected = [
    'LICENSE',
    'README.md',
    'bin/svc.js',
    'dist/main.js',
    'dist/sdk/index.d.ts',
    'package.json',
  ]
  const paths = expected.map((path) => `package/${path}`)
  assert.equal(pathsIn(await readPackage(directoryOf({ ...BUILT, 'src/main.ts': 4, 'other.txt': 9 }))), paths)
  assert.equal(pathsIn(await readPackage(directoryOf(BUILT))), paths, 'of an installed package')
})

reading('gives equal bytes for equal files, whatever their times are', async () => {
  const [one, other] = [directoryOf(BUILT), directoryOf({ ...BUILT, 'dist/main.js': 77 })]
  assert.ok((await readPackage(one)).equals(await readPackage(other)))
})

reading('is refused in a checkout whose JavaScript is older than its sources, or missing', async () => {
  assert.match(await refusal(directoryOf({ ...BUILT, 'src/sdk/index.ts': 6 })), 'is older than the sources')
  assert.match(
    await refusal(directoryOf({ 'bin/svc.js': 1, 'src/main.ts': 4 })),
    'is not built; run npm run prepare',
  )
})

reading.run()
