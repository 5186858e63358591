import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { unpack } from '../../src/builds/zip.ts'
import { tempDir } from './tempDir.ts'

/** The contents of a build by path, as the service unpacks it. */
export const unzipped = async (zip: Uint8Array): Promise<Readonly<Record<string, Buffer>>> => {
  const dir = tempDir()
  writeFileSync(join(dir, 'build.zip'), zip)
  await mkdir(join(dir, 'files'))
  await unpack(join(dir, 'build.zip'), join(dir, 'files'))
  const paths = readdirSync(join(dir, 'files'), { recursive: true, encoding: 'utf8' }).sort()
  return Object.fromEntries(
    paths
      .filter((path) => statSync(join(dir, 'files', path)).isFile())
      .map((path) => [path, readFileSync(join(dir, 'files', path))]),
  )
}
